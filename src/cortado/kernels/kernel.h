#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cortado/base/random.h"
#include "cortado/base/units.h"
#include "cortado/layers/task.h"

namespace cortado {

// Pointers for one run of a kernel. Tensors are dense, channels last (base/shape.h), of the task's local
// shapes. T is float; double in the tests that compare reference kernels with finite differences.
//
// Tensors whose elements are of another type (Task::input_types, output_types) lie at pointers of T, too:
// elements<bf16>() is where. Parameters and their gradients are always of T.
template <typename T>
struct ArgumentsOf {
  std::vector<const T*> inputs;
  std::vector<T*> outputs;
  std::vector<T*> output_gradients;     // backward; a scalar loss finds its loss weight here
  std::vector<T*> input_gradients;      // backward; null where none is wanted; overwritten, not added to
  std::vector<T*> parameters;           // in parameter_format order; forward may write non-learnable ones
  std::vector<T*> parameter_gradients;  // null where none is wanted; *overwritten*
  std::byte* saved = nullptr;           // saved_bytes(), kept from forward to backward (argmax, dropout mask)
  std::byte* scratch = nullptr;         // scratch_bytes(), contents undefined between calls
  double* sums = nullptr;               // forward_sums() or backward_sums() numbers, see below
  RandomStream random;                 // owner = layer name; draw per *global* element index (see Task boxes)
  bool input_gradients_first = false;  // backward() runs before backward_weights()
  bool again = false;      // forward() repeats what it did in this iteration, and writes no parameters
  void* stream = nullptr;  // of the GPU that all memory is of (gpu/grid.h); null: the host
};

// Order of a parameter in memory. `name` identifies it: equal names, equal order. The canonical format is
// row-major in the shape of ParameterSpec, the order of Caffe's files.
struct ParameterFormat {
  std::string name = "canonical";
  int64_t elements = 0;  // including padding, which from_canonical sets to zero and updates keep at zero
  std::function<void(const float* canonical, float* own)> from_canonical;  // null: the same order
  std::function<void(const float* own, float* canonical)> to_canonical;
  bool operator==(const ParameterFormat& other) const { return name == other.name; }
};

// The tensors that the backward pass reads besides output gradients and parameters. All others may be freed
// or overwritten as soon as the forward pass has used them.
struct BackwardReads {
  bool inputs = true;
  bool outputs = true;
};

// The local mathematics of one task on one device. A kernel is made once for its task (all set-up happens
// in the constructor) and run many times; it owns no tensor memory but the states of sequences that go on
// from batch to batch (layers/recurrent.h).
template <typename T>
class KernelOf {
 public:
  virtual ~KernelOf() = default;
  // Name for --verbose: "reference", "onednn jit:avx2", "implicit-gemm avx2".
  virtual std::string name() const = 0;

  virtual void forward(const ArgumentsOf<T>& arguments) = 0;
  // Gradients of the inputs; for a layer whose backward pass is not split (Layer::splits_backward), also
  // those of the parameters.
  virtual void backward(const ArgumentsOf<T>& arguments) = 0;
  // Gradients of the parameters, for layers whose backward pass is split. Runs before backward() or, with
  // arguments.input_gradients_first, after it.
  virtual void backward_weights(const ArgumentsOf<T>&) {}

  // Sums over a cut dimension (statistics of batch normalization, labels counted by a loss): where several
  // devices share the layer (Task::cut), forward_partial() writes this device's addends to arguments.sums,
  // the executor sums them over the devices, and forward() reads the totals there; likewise backward. 0:
  // none, and then *_partial() is not called. On one device a kernel needs none.
  virtual int64_t forward_sums() const { return 0; }
  virtual int64_t backward_sums() const { return 0; }
  virtual void forward_partial(const ArgumentsOf<T>&) {}
  virtual void backward_partial(const ArgumentsOf<T>&) {}

  virtual Bytes saved_bytes() const { return {}; }
  // True when what is saved of each sample lies by itself, one sample after the other.
  virtual bool saves_by_samples() const { return false; }
  virtual Bytes scratch_bytes() const { return {}; }
  virtual BackwardReads backward_reads() const { return {}; }
  // True when output 0 may use the memory of input 0 (and, backward, gradient of input 0 that of output 0).
  virtual bool in_place() const { return false; }
  // True when a backward step writes into output_gradients (a fused ReLU masks them); then nobody else uses
  // that memory. Whatever the first of backward_weights() and backward() leaves there, the other finds.
  virtual bool overwrites_output_gradients() const { return false; }
  // True when, after backward(), the gradient of every input is what lies in output_gradients[0] (a sum of
  // inputs): then input_gradients point to that same memory and nothing is copied.
  virtual bool passes_output_gradient() const { return false; }
  virtual ParameterFormat parameter_format(int) const { return {}; }  // elements 0: the canonical size
};

template <typename E, typename T>
E* elements(T* pointer) {
  return reinterpret_cast<E*>(pointer);
}
template <typename E, typename T>
const E* elements(const T* pointer) {
  return reinterpret_cast<const E*>(pointer);
}

using Arguments = ArgumentsOf<float>;
using Kernel = KernelOf<float>;

// One way to compute a task: makes the kernel or gives the reason for its refusal.
struct KernelOffer {
  std::unique_ptr<Kernel> kernel;  // null when refused
  std::string refusal;             // "group 2 is not supported"
};
struct Implementation {
  std::string name;  // "implicit-gemm", "onednn", "lowering-1", "reference"
  std::function<KernelOffer(const Task&)> make;
  std::string first_type;  // of a lowering: the name of type 1 by the same library; of others: empty
};

}  // namespace cortado
