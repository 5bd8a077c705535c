#include "cortado/layers/hdf5_output.h"

#include <algorithm>
#include <fmt/format.h>
#include <hdf5.h>
#include <optional>
#include <utility>

#include "cortado/base/error.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/spoken.h"
#include "cortado/kernels/reference/whole.h"

namespace cortado {
namespace {

// An HDF5 object, closed with its owner.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// A file whose data sets "data" and "label" grow by a batch at a time along the sample axis. They have four
// axes at least, as Caffe writes them: the last ones are 1 where the samples have fewer.
class SampleFile {
 public:
  explicit SampleFile(const std::string& name)
      : name_(name),
        file_((H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr),
               H5Fcreate(name.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)),
              H5Fclose) {
    check(file_);
  }

  // Appends samples given in spoken order.
  void append(const char* data_set, const Shape& shape, const std::vector<float>& samples) {
    std::vector<hsize_t> batch(shape.extents().begin(), shape.extents().end());
    batch.resize(std::max<size_t>(batch.size(), 4), 1);
    Handle data = H5Lexists(file_, data_set, H5P_DEFAULT) > 0
                      ? Handle(H5Dopen2(file_, data_set, H5P_DEFAULT), H5Dclose)
                      : create(data_set, batch);
    check(data);
    std::vector<hsize_t> whole(batch.size()), begin(batch.size(), 0);
    check(H5Sget_simple_extent_dims(Handle(H5Dget_space(data), H5Sclose), whole.data(), nullptr));
    begin[0] = whole[0];
    whole[0] += batch[0];
    check(H5Dset_extent(data, whole.data()));
    Handle place(H5Dget_space(data), H5Sclose);
    Handle memory(H5Screate_simple(static_cast<int>(batch.size()), batch.data(), nullptr), H5Sclose);
    check(H5Sselect_hyperslab(place, H5S_SELECT_SET, begin.data(), nullptr, batch.data(), nullptr));
    check(H5Dwrite(data, H5T_NATIVE_FLOAT, memory, place, H5P_DEFAULT, samples.data()));
    check(H5Fflush(file_, H5F_SCOPE_GLOBAL));
  }

 private:
  Handle create(const char* data_set, const std::vector<hsize_t>& batch) {
    std::vector<hsize_t> empty = batch, limit = batch;
    empty[0] = 0;
    limit[0] = H5S_UNLIMITED;
    Handle space(H5Screate_simple(static_cast<int>(batch.size()), empty.data(), limit.data()), H5Sclose);
    Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    check(H5Pset_chunk(properties, static_cast<int>(batch.size()), batch.data()));
    return {H5Dcreate2(file_, data_set, H5T_IEEE_F32LE, space, H5P_DEFAULT, properties, H5P_DEFAULT),
            H5Dclose};
  }

  void check(int64_t status) const {
    if (status < 0)
      throw UserError(fmt::format("cannot write {}: does its folder exist, and is there space?", name_));
  }

  std::string name_;
  Handle file_;
};

// Writes each batch; the file is made anew by the first one.
template <typename T>
class Hdf5OutputReference : public KernelOf<T> {
 public:
  explicit Hdf5OutputReference(const Task& task)
      : file_name_(dynamic_cast<const Hdf5Output&>(task.layer()).options().file_name) {
    require_whole_tensors(task);
    for (size_t i = 0; i < task.inputs.size(); ++i) shapes_.push_back(task.local_input(i));
  }
  std::string name() const override { return "reference"; }

  void forward(const ArgumentsOf<T>& arguments) override {
    if (!file_) file_.emplace(file_name_);
    const char* data_sets[] = {"data", "label"};
    for (size_t input = 0; input < shapes_.size(); ++input) {
      reference::Spoken<const T> values(shapes_[input], arguments.inputs[input]);
      std::vector<float> samples(shapes_[input].size());
      for (size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<float>(values[i]);
      file_->append(data_sets[input], shapes_[input], samples);
    }
  }

  void backward(const ArgumentsOf<T>&) override {}

 private:
  std::string file_name_;
  std::vector<Shape> shapes_;
  std::optional<SampleFile> file_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_hdf5_output_reference(const Task& task) {
  return std::make_unique<Hdf5OutputReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_hdf5_output_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_hdf5_output_reference<double>(const Task&);

}  // namespace cortado
