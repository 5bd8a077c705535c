#include "cortado/data/hdf5_source.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <hdf5.h>
#include <list>
#include <optional>

#include "cortado/base/crash_guard.h"
#include "cortado/base/spoken_order.h"
#include "cortado/data/image.h"
#include "cortado/data/shuffle.h"

namespace cortado {

namespace {

// An HDF5 identifier, closed at the end of its scope.
struct Hdf5Handle {
  hid_t id;
  herr_t (*close)(hid_t);
  Hdf5Handle(hid_t id, herr_t (*close)(hid_t)) : id(id), close(close) {}
  Hdf5Handle(const Hdf5Handle&) = delete;
  ~Hdf5Handle() {
    if (id >= 0) close(id);
  }
};

std::vector<std::string> read_file_list(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw UserError(fmt::format("cannot open the list of HDF5 files {}; check `source`", path));
  std::vector<std::string> files;
  for (std::string line; std::getline(file, line);) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (!line.empty()) files.push_back(line);
  }
  if (files.empty()) throw UserError(fmt::format("the list of HDF5 files {} is empty", path));
  return files;
}

class Hdf5File {
 public:
  explicit Hdf5File(const std::string& path)
      : path_(path),
        guard_(path),
        file_(
            (H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr), H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)),
            H5Fclose) {
    if (file_.id < 0)
      throw UserError(fmt::format("cannot open HDF5 file {}: missing, or not an HDF5 file", path));
  }

  Shape shape(const std::string& name) const {
    const Hdf5Handle data = open(name);
    const Hdf5Handle space(H5Dget_space(data.id), H5Sclose);
    const int rank = H5Sget_simple_extent_ndims(space.id);
    if (rank < 1 || rank > Shape::max_rank)
      throw UserError(
          fmt::format("{}: dataset '{}' has {} axes; 1 to {} are read", path_, name, rank, Shape::max_rank));
    std::vector<hsize_t> extents(rank);
    H5Sget_simple_extent_dims(space.id, extents.data(), nullptr);
    Shape shape;
    for (hsize_t extent : extents) shape.append(static_cast<int64_t>(extent));
    check_size(name, shape);
    return shape;
  }

  // Writes a box of a dataset, row-major.
  void read(const std::string& name, const Box& box, float* to) const {
    const Hdf5Handle data = open(name);
    const Hdf5Handle space(H5Dget_space(data.id), H5Sclose);
    std::vector<hsize_t> first, count;
    for (int axis = 0; axis < box.rank(); ++axis) {
      first.push_back(static_cast<hsize_t>(box[axis].begin));
      count.push_back(static_cast<hsize_t>(box[axis].size()));
    }
    const Hdf5Handle memory(H5Screate_simple(box.rank(), count.data(), nullptr), H5Sclose);
    if (H5Sget_simple_extent_ndims(space.id) != box.rank() ||
        H5Sselect_hyperslab(space.id, H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr) < 0 ||
        H5Dread(data.id, H5T_NATIVE_FLOAT, memory.id, space.id, H5P_DEFAULT, to) < 0)
      throw UserError(
          fmt::format("{}: dataset '{}' cannot be read as numbers; the file may be truncated", path_, name));
  }

 private:
  // A corrupt file may claim any extent. What it has of bytes tells, even compressed, how much there can be.
  void check_size(const std::string& name, const Shape& shape) const {
    constexpr int64_t best_compression = 1024;
    hsize_t bytes = 0;
    if (H5Fget_filesize(file_.id, &bytes) < 0 ||
        shape.size() / best_compression > static_cast<int64_t>(bytes))
      throw UserError(fmt::format("{}: dataset '{}' of {} cannot be in a file of {} bytes; make it again",
                                  path_, name, shape.text(), bytes));
  }

  Hdf5Handle open(const std::string& name) const {
    const hid_t id = H5Dopen2(file_.id, name.c_str(), H5P_DEFAULT);
    if (id < 0)
      throw UserError(
          fmt::format("{} has no dataset '{}'; datasets are named as the layer's tops", path_, name));
    return {id, H5Dclose};
  }

  std::string path_;
  CrashGuard guard_;  // libhdf5 trusts what is in a file
  Hdf5Handle file_;
};

class Hdf5Source : public SampleSource {
 public:
  Hdf5Source(const SourceOptions& source, const ReaderOptions& options)
      : source_(source),
        names_(options.top_names),
        stream_{options.seed, 0, RandomStream::owner_of(options.layer_name)},
        files_(read_file_list(source.source)) {
    ensure(!names_.empty(), "an HDF5 reader needs the names of its tops");
    if (source.batch_size < 1)
      throw UserError(fmt::format("batch_size is {}; it must be at least 1", source.batch_size));
    for (size_t f = 0; f < files_.size(); ++f) add_file(f);
    order_.emplace(records(), [this](int64_t epoch) { return shuffled_rows(epoch); });
  }

  std::vector<Shape> shapes() const override {
    std::vector<Shape> shapes = rows_;
    for (Shape& shape : shapes) shape.set(0, source_.batch_size);
    return shapes;
  }
  int64_t records() const override { return first_row_.back(); }
  int64_t record_at(int64_t position) override {
    return source_.shuffle ? order_->at(position) : position % records();
  }
  std::string record_name(int64_t record) override {
    const size_t f = file_of(record);
    return fmt::format("{} row {}", files_[f], record - first_row_[f]);
  }

  bool restrict_to(const std::vector<Box>& sample) override {
    boxes_ = sample;
    return true;
  }

  void load(int64_t record, int64_t, std::span<float* const> tops) override {
    const size_t f = file_of(record);
    const int64_t row = record - first_row_[f];
    if (reads_row_by_row()) return load_row(f, row, tops);
    const std::shared_ptr<const Contents> contents = contents_of(f);
    for (size_t t = 0; t < names_.size(); ++t) {
      const Shape shape = boxes_[t].shape();
      from_spoken(shape, (*contents)[t].data() + row * shape.size(), tops[t]);
    }
  }

 private:
  using Contents = std::vector<std::vector<float>>;  // per top, the boxes of all rows as in the file

  // Rows that are large, as volumes are, are read when they are needed; of others whole files at once.
  bool reads_row_by_row() const {
    constexpr int64_t large = 1 << 20;  // values
    int64_t values = 0;
    for (const Shape& shape : rows_) values += shape.count(1);
    return values >= large;
  }

  static Box with_rows(const Box& box, Range rows) {
    Box all = box;
    all[0] = rows;
    return all;
  }

  // Where the memory's order is the file's, nothing but what is wanted ever lies in memory.
  void load_row(size_t f, int64_t row, std::span<float* const> tops) {
    std::vector<std::vector<float>> turned(names_.size());
    {
      std::lock_guard lock(mutex_);
      const Hdf5File file(files_[f]);
      for (size_t t = 0; t < names_.size(); ++t) {
        const Box box = with_rows(boxes_[t], {row, row + 1});
        if (box.empty()) continue;
        if (box.rank() > 2 && box[1].size() > 1) turned[t].resize(static_cast<size_t>(box.shape().size()));
        file.read(names_[t], box, turned[t].empty() ? tops[t] : turned[t].data());
      }
    }
    for (size_t t = 0; t < names_.size(); ++t)
      if (!turned[t].empty()) from_spoken(boxes_[t].shape(), turned[t].data(), tops[t]);
  }

  void add_file(size_t f) {
    const Hdf5File file(files_[f]);
    int64_t rows = 0;
    for (size_t t = 0; t < names_.size(); ++t) {
      const Shape shape = file.shape(names_[t]);
      if (t == 0) rows = shape[0];
      if (shape[0] != rows)
        throw UserError(fmt::format("{}: dataset '{}' has {} rows, '{}' has {}; they must agree", files_[f],
                                    names_[t], shape[0], names_[0], rows));
      if (shape.size() == 0)
        throw UserError(fmt::format("{}: dataset '{}' of {} is empty", files_[f], names_[t], shape.text()));
      if (f == 0) {
        rows_.push_back(shape);
        boxes_.push_back(with_rows(Box::whole(shape), {0, 1}));
      }
      Shape same = shape;
      same.set(0, rows_[t][0]);
      if (same != rows_[t])
        throw UserError(fmt::format("{}: dataset '{}' is {}, but {} in {}; only the first extent may differ",
                                    files_[f], names_[t], shape.text(), rows_[t].text(), files_[0]));
    }
    first_row_.push_back(first_row_.back() + rows);
  }

  size_t file_of(int64_t record) const {
    return std::upper_bound(first_row_.begin(), first_row_.end(), record) - first_row_.begin() - 1;
  }

  std::vector<int64_t> shuffled_rows(int64_t epoch) const {
    std::vector<int64_t> rows;
    for (int64_t f : shuffled_order(stream_, epoch, static_cast<int64_t>(files_.size()))) {
      RandomStream own = stream_;
      own.owner ^= RandomStream::owner_of(files_[f]);
      for (int64_t row : shuffled_order(own, epoch, first_row_[f + 1] - first_row_[f]))
        rows.push_back(first_row_[f] + row);
    }
    return rows;
  }

  // All rows of the file, as Caffe reads them; the last few files stay in memory.
  std::shared_ptr<const Contents> contents_of(size_t f) {
    constexpr size_t files_kept = 3;
    std::lock_guard lock(mutex_);
    for (auto it = kept_.begin(); it != kept_.end(); ++it)
      if (it->first == f) return it->second;
    const Hdf5File file(files_[f]);
    auto contents = std::make_shared<Contents>();
    for (size_t t = 0; t < names_.size(); ++t) {
      const Box box = with_rows(boxes_[t], {0, first_row_[f + 1] - first_row_[f]});
      contents->emplace_back(static_cast<size_t>(box.shape().size()));
      if (!box.empty()) file.read(names_[t], box, contents->back().data());
    }
    kept_.emplace_back(f, contents);
    if (kept_.size() > files_kept) kept_.pop_front();
    return contents;
  }

  SourceOptions source_;
  std::vector<std::string> names_;
  RandomStream stream_;
  std::vector<std::string> files_;
  std::vector<int64_t> first_row_{0};  // of each file, and their total
  std::vector<Shape> rows_;            // per top, as in the first file
  std::vector<Box> boxes_;             // per top, what is read of a row
  std::optional<EpochOrder> order_;
  std::mutex mutex_;
  std::list<std::pair<size_t, std::shared_ptr<const Contents>>> kept_;
};

}  // namespace

std::unique_ptr<SampleSource> open_hdf5_list(const SourceOptions& source, const ReaderOptions& options) {
  return std::make_unique<Hdf5Source>(source, options);
}

}  // namespace cortado
