#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

// Layers that the user's program computes: `type: "Python"` in a model file. A public header: programs derive
// from UserLayer.
namespace cortado {

// A tensor of such a layer, row-major in the order of its shape (N, C, (D,) H, W).
class UserTensor {
 public:
  explicit UserTensor(std::vector<int64_t> shape = {}) { reshape(std::move(shape)); }

  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t size() const { return static_cast<int64_t>(memory_->size()) / 2; }
  // Gives it another shape. Where that has another number of elements, they are new and zero. Throws
  // UserError unless all extents are positive, and at most 8.
  void reshape(std::vector<int64_t> shape);

  std::span<float> values() const { return {memory_->data(), memory_->size() / 2}; }
  std::span<float> gradient() const { return {memory_->data() + memory_->size() / 2, memory_->size() / 2}; }
  // What the spans lie in; it lives as long as somebody holds it.
  std::shared_ptr<void> memory() const { return memory_; }

 private:
  std::vector<int64_t> shape_;
  std::shared_ptr<std::vector<float>> memory_ = std::make_shared<std::vector<float>>();
};

using UserTensors = std::vector<std::shared_ptr<UserTensor>>;

// A layer as the program computes it: one object for each such layer of a net, used by one thread at a time.
// What its functions throw, the calls throw that compute the net.
class UserLayer {
 public:
  virtual ~UserLayer() = default;

  // Called once, when `bottoms` have their shapes: fills `parameters`, with their first values.
  virtual void set_up() {}
  // Gives `tops` their shapes. Called after set_up(), and before each forward(), which may not change them.
  virtual void reshape() = 0;
  // Computes the values of `tops` from those of `bottoms` and `parameters`. It may write `parameters`.
  virtual void forward() = 0;
  // Computes gradients from those of `tops`: of each bottom that is to be propagated down, and of all
  // parameters, whose gradients are zero before.
  virtual void backward(const std::vector<bool>& propagate_down) = 0;

  UserTensors bottoms, tops;  // of a layer in place both are the same tensor
  UserTensors parameters;

 private:
  friend class UserDefined;
  bool is_set_up_ = false;
};

// What a model file says of such a layer.
struct UserLayerText {
  std::string name;           // no other layer's of the net
  std::string module, layer;  // which one it is, by python_param
  std::string parameters;     // param_str
  bool is_training = true;    // of phase TRAIN
};

// Makes the layer that a model file names. Null: there is none.
using MakeUserLayer = std::function<std::shared_ptr<UserLayer>(const UserLayerText&)>;

}  // namespace cortado
