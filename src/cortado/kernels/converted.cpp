#include "cortado/kernels/converted.h"

#include <algorithm>
#include <concepts>

#include "cortado/kernels/arrays.h"
#include "cortado/kernels/forwarding_kernel.h"
#include "cortado/kernels/gpu/layouts.h"
#include "cortado/kernels/tensor_type.h"

namespace cortado {
namespace {

// A tensor that is not f32, and where its f32 copy lies in scratch memory; -1: it is f32 itself.
struct Copy {
  int64_t offset = -1, elements = 0;
  ElementType type = ElementType::f32;  // of the tensor
};

// `stream`: as Arguments::stream.
template <typename From, typename To>
void convert(void* stream, const From* from, To* to, int64_t count) {
  if (stream)
    gpu::transpose(stream, from, to, {count, 1, 1});
  else if constexpr (std::same_as<From, To>)
    std::copy_n(from, count, to);
  else
    arrays::convert(from, to, count);
}

// Writes the f32 copy, or the tensor.
void widen_tensor(void* stream, const Copy& copy, const float* tensor, float* f32) {
  with_tensor_type(copy.type, [&]<typename E>() {
    if constexpr (!std::same_as<E, float>) convert(stream, elements<E>(tensor), f32, copy.elements);
  });
}
void narrow_tensor(void* stream, const Copy& copy, const float* f32, float* tensor) {
  with_tensor_type(copy.type, [&]<typename E>() {
    if constexpr (!std::same_as<E, float>) convert(stream, f32, elements<E>(tensor), copy.elements);
  });
}

// Scratch: the inner kernel's, then a copy of each tensor that is not f32. A gradient's copy lies where the
// tensor's does, unless one pass works on both.
class ConvertedKernel : public ForwardingKernel {
 public:
  ConvertedKernel(std::unique_ptr<Kernel> inner_kernel, const Task& task)
      : ForwardingKernel(std::move(inner_kernel)) {
    bytes_ = aligned(inner().scratch_bytes().count);
    reads_ = inner().backward_reads();
    // Where the backward pass is split, what computes the gradients of the inputs reads no inputs.
    reads_beside_gradients_ = {.inputs = reads_.inputs && !task.layer().splits_backward(),
                               .outputs = reads_.outputs};
    const bool learns = task.has_backward();
    for (int i = 0; i < std::ssize(task.input_boxes); ++i) {
      inputs_.push_back(place(task.input_type(i), task.local_input(i).size()));
      const bool own = learns && reads_beside_gradients_.inputs;
      input_gradients_.push_back(own ? place(inputs_.back().type, inputs_.back().elements) : inputs_.back());
    }
    for (int k = 0; k < std::ssize(task.output_boxes); ++k) {
      const int64_t elements = task.local_output(k).size();
      outputs_.push_back(place(task.output_type(k), elements));
      const bool own = learns && reads_beside_gradients_.outputs;
      output_gradients_.push_back(own ? place(task.output_type(k), elements) : outputs_.back());
      gradient_elements_.push_back(elements);
    }
  }

  std::string name() const override { return inner().name() + ", converted"; }
  Bytes scratch_bytes() const override { return {bytes_}; }
  // The inner kernel works on copies, and what it passes on is copied.
  bool in_place() const override { return false; }
  bool passes_output_gradient() const override { return false; }

  void forward_partial(const Arguments& arguments) override {
    inner().forward_partial(forward_arguments(arguments));
  }
  void forward(const Arguments& arguments) override {
    Arguments f32 = forward_arguments(arguments);
    inner().forward(f32);
    narrow(arguments.stream, f32.outputs, outputs_, arguments.outputs);
  }
  void backward_partial(const Arguments& arguments) override {
    Arguments f32 = backward_arguments(arguments, reads_beside_gradients_);
    inner().backward_partial(f32);
    keep_output_gradients(f32, arguments);
  }
  void backward_weights(const Arguments& arguments) override {
    Arguments f32 = backward_arguments(arguments, reads_);
    inner().backward_weights(f32);
    keep_output_gradients(f32, arguments);
  }
  void backward(const Arguments& arguments) override {
    Arguments f32 = backward_arguments(arguments, reads_beside_gradients_);
    if (inner().passes_output_gradient()) {
      for (float*& gradient : f32.input_gradients)
        if (gradient) gradient = f32.output_gradients[0];
    }
    inner().backward(f32);
    keep_output_gradients(f32, arguments);
    for (size_t i = 0; i < f32.input_gradients.size(); ++i) {
      if (!arguments.input_gradients[i] || f32.input_gradients[i] == arguments.input_gradients[i]) continue;
      if (input_gradients_[i].offset >= 0) {
        narrow_tensor(arguments.stream, input_gradients_[i], f32.input_gradients[i],
                      arguments.input_gradients[i]);
      } else {  // the output's gradient, of another type, is passed on
        convert(arguments.stream, f32.input_gradients[i], arguments.input_gradients[i],
                gradient_elements_[0]);
      }
    }
  }

 private:
  Copy place(ElementType type, int64_t elements) {
    if (type == ElementType::f32) return {};
    const Copy copy{bytes_, elements, type};
    bytes_ += aligned(bytes_of(elements, ElementType::f32).count);
    return copy;
  }
  template <typename Pointers>
  static void redirect(Pointers& pointers, const std::vector<Copy>& copies, const Arguments& arguments) {
    for (size_t i = 0; i < pointers.size(); ++i) {
      if (pointers[i] && copies[i].offset >= 0)
        pointers[i] = reinterpret_cast<float*>(arguments.scratch + copies[i].offset);
    }
  }
  template <typename Pointers>
  static void widen(Pointers& pointers, const std::vector<Copy>& copies, const Arguments& arguments) {
    const Pointers own = pointers;
    redirect(pointers, copies, arguments);
    for (size_t i = 0; i < own.size(); ++i) {
      if (own[i] != pointers[i])
        widen_tensor(arguments.stream, copies[i], own[i], const_cast<float*>(pointers[i]));
    }
  }
  static void narrow(void* stream, const std::vector<float*>& copied, const std::vector<Copy>& copies,
                     const std::vector<float*>& own) {
    for (size_t i = 0; i < own.size(); ++i)
      if (own[i] != copied[i]) narrow_tensor(stream, copies[i], copied[i], own[i]);
  }

  Arguments forward_arguments(const Arguments& arguments) const {
    Arguments f32 = arguments;
    widen(f32.inputs, inputs_, arguments);
    redirect(f32.outputs, outputs_, arguments);
    return f32;
  }
  Arguments backward_arguments(const Arguments& arguments, BackwardReads reads) const {
    Arguments f32 = arguments;
    if (reads.inputs) widen(f32.inputs, inputs_, arguments);
    if (reads.outputs) widen(f32.outputs, outputs_, arguments);
    widen(f32.output_gradients, output_gradients_, arguments);
    redirect(f32.input_gradients, input_gradients_, arguments);
    return f32;
  }
  void keep_output_gradients(const Arguments& f32, const Arguments& arguments) const {
    if (inner().overwrites_output_gradients())
      narrow(arguments.stream, f32.output_gradients, output_gradients_, arguments.output_gradients);
  }

  BackwardReads reads_;                   // of the whole backward pass
  BackwardReads reads_beside_gradients_;  // of the pass that writes the gradients of the inputs
  std::vector<Copy> inputs_, outputs_, input_gradients_, output_gradients_;  // per tensor of the task
  std::vector<int64_t> gradient_elements_;                                   // per output
  int64_t bytes_ = 0;
};

}  // namespace

Task in_f32(const Task& task) {
  Task f32 = task;
  f32.input_types.clear();
  f32.output_types.clear();
  f32.f32_products = false;
  return f32;
}

std::unique_ptr<Kernel> make_converted(std::unique_ptr<Kernel> inner, const Task& task) {
  return std::make_unique<ConvertedKernel>(std::move(inner), task);
}

}  // namespace cortado
