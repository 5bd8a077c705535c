// Concat, Slice and Split: parts of a whole, and copies.
#include "cortado/kernels/gpu/elements.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/kernels/gpu/pointers.h"
#include "cortado/kernels/gpu/values.h"
#include "cortado/layers/concat.h"
#include "cortado/layers/slice.h"
#include "cortado/layers/split.h"

namespace cortado {
namespace gpu {
namespace {

// A part of a tensor along an axis of its memory. What follows the axis is one run of elements in each row of
// the part, and lies `begin` elements after the beginning of a row of the whole.
struct AxisPart {
  int64_t rows = 0, run = 0, begin = 0, whole = 0;  // whole: elements of its rows
};

template <typename E>
struct RunColumn {
  const E* from;  // of the column, in the first row
  int64_t stride;
  CORTADO_EVERYWHERE E operator()(int64_t row) const { return from[row * stride]; }
};
template <typename E>
struct RunColumns {
  const E* from;
  int64_t stride;
  CORTADO_EVERYWHERE RunColumn<E> operator()(int64_t column) const { return {from + column, stride}; }
};

std::vector<AxisPart> axis_parts(const std::vector<Box>& boxes, const Shape& whole, int axis) {
  axis = whole.canonical_axis(axis);
  int64_t after = 1, begin = 0;
  for (int place = whole.rank() - 1; memory_axis(whole.rank(), place) != axis; --place)
    after *= whole[memory_axis(whole.rank(), place)];
  const int64_t row = whole[axis] * after;
  std::vector<AxisPart> parts;
  for (const Box& box : boxes) {
    const int64_t run = box.empty() ? 0 : box[axis].size() * after;
    parts.push_back({run == 0 ? 0 : box.shape().size() / run, run, begin, row});
    begin += run;
  }
  return parts;
}

class JoinedKernel : public Kernel {
 public:
  JoinedKernel(std::vector<AxisPart> parts, bool concat, ElementType type)
      : parts_(std::move(parts)), concat_(concat), type_(type) {}
  std::string name() const override { return concat_ ? "gpu concat" : "gpu slice"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }
  void forward(const Arguments& a) override {
    if (concat_)
      join(a.stream, a.inputs, a.outputs[0]);
    else
      part(a.stream, a.inputs[0], a.outputs);
  }
  void backward(const Arguments& a) override {
    if (concat_)
      part(a.stream, a.output_gradients[0], a.input_gradients);
    else if (a.input_gradients[0])
      join(a.stream, a.output_gradients, a.input_gradients[0]);
  }

 private:
  template <typename Pointer>
  void join(void* stream, const std::vector<Pointer>& from, float* to) const {
    with_tensor_type(type_, [&]<typename E>() {
      for (size_t i = 0; i < parts_.size(); ++i) {
        const AxisPart& part = parts_[i];
        const E* source = elements<E>(static_cast<const float*>(from[i]));
        for_each_in_columns(stream, Columns<E>{part.rows, part.run, elements<E>(to) + part.begin, part.whole},
                            RunColumns<E>{source, part.run});
      }
    });
  }
  void part(void* stream, const float* from, const std::vector<float*>& to) const {
    with_tensor_type(type_, [&]<typename E>() {
      for (size_t i = 0; i < parts_.size(); ++i) {
        const AxisPart& part = parts_[i];
        if (!to[i]) continue;
        for_each_in_columns(stream, Columns<E>{part.rows, part.run, elements<E>(to[i]), part.run},
                            RunColumns<E>{elements<E>(from) + part.begin, part.whole});
      }
    });
  }

  std::vector<AxisPart> parts_;
  bool concat_;
  ElementType type_;
};

// A null counts as zero.
template <typename E>
struct SumOfGradients {
  Pointers<const E> terms;
  CORTADO_EVERYWHERE E operator()(int64_t i) const {
    double total = 0;
    for (int k = 0; k < terms.count; ++k) total += terms.of[k] ? value_of(terms.of[k][i]) : 0;
    return rounded<E>(static_cast<float>(total));
  }
};

class SplitKernel : public Kernel {
 public:
  SplitKernel(int64_t size, ElementType type) : size_(size), type_(type) {}
  std::string name() const override { return "gpu split"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }
  void forward(const Arguments& a) override {
    with_tensor_type(type_, [&]<typename E>() {
      for (float* output : a.outputs)
        for_each_value(a.stream, size_, elements<E>(output), CopyValue<E>{elements<E>(a.inputs[0])});
    });
  }
  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    with_tensor_type(type_, [&]<typename E>() {
      const auto given = [&](int i) { return elements<E>(static_cast<const float*>(a.output_gradients[i])); };
      if (a.output_gradients.size() == 2 && given(0) && given(1))
        return for_each_value(a.stream, size_, elements<E>(a.input_gradients[0]),
                              SumOfTwo<E>{given(0), given(1)});
      std::vector<const E*> terms;
      for (const float* gradient : a.output_gradients) terms.push_back(elements<E>(gradient));
      for_each_value(a.stream, size_, elements<E>(a.input_gradients[0]),
                     SumOfGradients<E>{pointers<const E>(terms)});
    });
  }

 private:
  int64_t size_;
  ElementType type_;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_concat(const Task& task) {
  const auto* layer = dynamic_cast<const Concat*>(&task.layer());
  if (!layer) return {nullptr, "not a Concat"};
  if (auto refusal = gpu::one_type_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  return gpu::offered<gpu::JoinedKernel>(
      gpu::axis_parts(task.input_boxes, task.local_output(0), layer->options().axis), true,
      task.input_type(0));
}

KernelOffer make_gpu_slice(const Task& task) {
  const auto* layer = dynamic_cast<const Slice*>(&task.layer());
  if (!layer) return {nullptr, "not a Slice"};
  if (auto refusal = gpu::one_type_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  return gpu::offered<gpu::JoinedKernel>(
      gpu::axis_parts(task.output_boxes, task.local_input(0), layer->options().axis), false,
      task.input_type(0));
}

KernelOffer make_gpu_split(const Task& task) {
  if (!dynamic_cast<const Split*>(&task.layer())) return {nullptr, "not a Split"};
  if (auto refusal = gpu::one_type_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  if (task.outputs.size() > gpu::most_pointers) return {nullptr, "more than 64 outputs"};
  return gpu::offered<gpu::SplitKernel>(task.local_input(0).size(), task.input_type(0));
}

}  // namespace cortado
