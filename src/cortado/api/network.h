#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cortado/api/layer.h"
#include "cortado/api/tensor.h"

namespace cortado::api {

enum class Phase { train, test };

// bf16: activations, their gradients and the weights that kernels read are bfloat16, all else stays f32.
enum class Precision { f32, bf16 };

// Says which network of a model file to make, and what replaces what the file says.
struct NetworkOptions {
  Phase phase = Phase::train;
  int level = 0;
  std::vector<std::string> stages{};
  int64_t batch = 0;          // samples, of all source layers; 0: as the file says
  std::string input_shape{};  // of a sample where the data are not at hand: "3x224x224", "1x64x64,64x64"
  std::vector<std::string> sources{};  // "PATH" or "LAYER=PATH": data in place of what the file names
  Precision precision = Precision::f32;
  MakeUserLayer user_layers{};  // makes layers of type Python, one rank; null: there are none
};

// Types of Caffe's layers that can be in a network, in alphabetical order.
std::vector<std::string> layer_types();

// A network of a Caffe prototxt. A value: copies share what they hold, which never changes.
class Network {
 public:
  // Throw UserError naming file, line and field. They only read the file. The first of the functions below
  // that needs shapes builds the network, and throws where these do not fit.
  static Network from_file(const std::string& path, const NetworkOptions& options = {});
  static Network from_text(const std::string& text, const NetworkOptions& options = {},
                           const std::string& name_in_errors = "net");

  // What the user should know of the file though the work goes on, a line each.
  std::vector<std::string> warnings() const;

  // These build the network, once. Throw UserError where a source layer's shape is not known: neither the
  // file nor NetworkOptions::input_shape says it, and its data are not at hand.
  std::string name() const;
  struct Layer {
    std::string name, type;
    std::vector<std::string> inputs, outputs, parameters;
    std::vector<double> loss_weights;  // of the outputs
    double forward_flops = 0;          // a multiply-add counts two
  };
  std::vector<Layer> layers() const;            // in execution order
  std::vector<NamedShape> tensors() const;      // in the order of the layers that make them
  std::vector<NamedShape> parameters() const;   // "conv1/weight", in the order of their layers
  Shape tensor(const std::string& name) const;  // shape of the last tensor of that name
  int64_t parameter_count() const;              // elements of all learnable parameters
  int64_t batch() const;                        // samples of an iteration; 0: there is no source layer

  Network with_batch(int64_t samples) const;  // the same net with another batch size

  struct Impl;
  explicit Network(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }  // for Cortado's own sources

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace cortado::api
