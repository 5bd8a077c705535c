#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cortado/api/data.h"
#include "cortado/api/network.h"
#include "cortado/api/tensor.h"
#include "cortado/api/weights.h"

namespace cortado::api {

struct NetOptions {
  int threads = 0;  // compute threads; 0: as many as OpenMP gives the calling thread
  int reader_threads = 1;
  std::string kernels{};                             // only this implementation; empty: the best of all
  uint64_t seed = 1;                                 // of fillers, dropout and the order of data
  bool gradients = true;                             // backward() can run
  std::function<void(const std::string&)> notice{};  // a line that is worth knowing; any thread
};

// A network on one rank, whose layers run one by one and whose every value can be read and written between.
// Layers are not fused and tensors share no memory, so a Trainer is faster. Values are f32. A blob is a
// tensor's name in the file. A layer in place makes a second tensor of one name: reading gives the one that
// was computed last, writing sets both. Values are in the order of their shapes, and are copied out and in.
// Functions that name a layer, a blob or a parameter throw UserError where there is none.
class Net {
 public:
  // `network` was read from a file or a text. Throws UserError: its data are not at hand and `data` does not
  // have them, or it is bf16.
  explicit Net(const Network& network, const Data& data = {}, const NetOptions& options = {});
  Net(Net&&) noexcept;
  Net& operator=(Net&&) noexcept;
  ~Net();

  const Network& network() const;
  Phase phase() const;

  // Computes the layers from `first` to `last`, by name; empty: the first and the last of all. Returns the
  // sum of their losses. Source layers among them bring their next batch: that of `data`, else of the file.
  // Input and MemoryData layers have what was written, at first zeros.
  double forward(const std::string& first = {}, const std::string& last = {});
  // Computes gradients from the layer `first` back to `last`; empty: the last and the first of all. It begins
  // with the gradients that the outputs of `first` have: those of losses are their weights, until others are
  // written. Gradients of parameters are added to what there is. What no loss depends on has none, as in
  // Caffe, unless the file says force_backward: then any output may begin.
  void backward(const std::string& first = {}, const std::string& last = {});

  std::vector<std::string> blobs() const;    // in the order of the layers that make them
  std::vector<std::string> inputs() const;   // of Input layers
  std::vector<std::string> outputs() const;  // that no layer reads
  Shape shape(const std::string& blob) const;
  bool has_gradient(const std::string& blob) const;  // backward() computes one
  // `to` and `values` have as many elements as the blob.
  void values(const std::string& blob, std::span<float> to) const;
  Tensor values(const std::string& blob) const;
  void set_values(const std::string& blob, std::span<const float> values);
  // Zeros, and passed over, where backward() computes none.
  void gradient(const std::string& blob, std::span<float> to) const;
  Tensor gradient(const std::string& blob) const;
  void set_gradient(const std::string& blob, std::span<const float> values);

  // "conv1/weight", as Caffe's files have it. Gradients are zeros where none is computed.
  void parameter(const std::string& name, std::span<float> to) const;
  Tensor parameter(const std::string& name) const;
  void set_parameter(const std::string& name, std::span<const float> values);
  void parameter_gradient(const std::string& name, std::span<float> to) const;
  Tensor parameter_gradient(const std::string& name) const;
  void set_parameter_gradient(const std::string& name, std::span<const float> values);
  void clear_parameter_gradients();

  // Gives blobs of Input layers other shapes, and all blobs after them. Parameters stay, and so do the values
  // of source layers whose shapes do; all other values are zeros. Throws UserError where the shapes do not
  // fit; then nothing has changed.
  void reshape(const std::map<std::string, Shape>& inputs);
  // From now on, layers of the same names have the parameters of `other`. Gradients stay apart. Where `other`
  // is a trainer's, the trainer must outlive this net.
  void share_with(const Net& other);
  // From now on, source layers that `data` names bring its batches, of the shapes that they have.
  void feed(const Data& data);

  PassedOver load_weights(const std::string& path);        // .caffemodel, .h5, .safetensors
  enum class WeightsFormat { by_name, caffemodel, hdf5 };  // by_name: hdf5 where the path ends in .h5
  void save_weights(const std::string& path, WeightsFormat format = WeightsFormat::by_name) const;

  struct Impl;
  explicit Net(std::unique_ptr<Impl> impl);
  Impl& impl() const { return *impl_; }  // for Cortado's own sources

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace cortado::api
