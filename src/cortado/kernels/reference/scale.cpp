#include "cortado/layers/scale.h"

#include <vector>

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"
#include "cortado/layers/bias.h"

namespace cortado {
namespace {

// Scale and Bias: y = x * factor + summand, each operand a parameter, the second input or absent.
template <typename T>
class BroadcastReference : public KernelOf<T> {
 public:
  enum class Operand { absent, input, parameter };
  struct Source {
    Operand from = Operand::absent;
    int number = 0;  // of the input or parameter
    const T* value(const ArgumentsOf<T>& a) const {
      return from == Operand::input ? a.inputs[number] : a.parameters[number];
    }
    T* gradient(const ArgumentsOf<T>& a) const {
      if (from == Operand::absent) return nullptr;
      return from == Operand::input ? a.input_gradients[number] : a.parameter_gradients[number];
    }
  };

  BroadcastReference(const Task& task, const Broadcast& broadcast, Source factor, Source summand)
      : first_axis_(broadcast.first_axis(task.inputs)),
        factor_(factor),
        summand_(summand),
        place_(tensor_place(task.output_boxes[0])),
        input_operand_(tensor_place(broadcast.operand_box(task.inputs, task.output_boxes[0]))),
        parameter_operand_(parameter_place(input_operand_.box())) {}

  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  void forward(const ArgumentsOf<T>& a) override {
    for_each_index(place_.box(), [&](const Index& index) {
      double y = a.inputs[0][place_(index)];
      if (factor_.from != Operand::absent) y *= factor_.value(a)[offset(factor_, index)];
      if (summand_.from != Operand::absent) y += summand_.value(a)[offset(summand_, index)];
      a.outputs[0][place_(index)] = y;
    });
  }

  void backward(const ArgumentsOf<T>& a) override {
    std::vector<double> factor(input_operand_.size()), summand(input_operand_.size());
    for_each_index(place_.box(), [&](const Index& index) {
      int64_t i = place_(index);
      double dy = a.output_gradients[0][i];
      if (factor_.from != Operand::absent) factor[offset(factor_, index)] += dy * a.inputs[0][i];
      if (summand_.from != Operand::absent) summand[offset(summand_, index)] += dy;
      if (!a.input_gradients[0]) return;
      bool scaled = factor_.from != Operand::absent;
      a.input_gradients[0][i] = scaled ? dy * factor_.value(a)[offset(factor_, index)] : dy;
    });
    if (T* gradient = factor_.gradient(a)) std::copy(factor.begin(), factor.end(), gradient);
    if (T* gradient = summand_.gradient(a)) std::copy(summand.begin(), summand.end(), gradient);
  }

 private:
  int64_t offset(const Source& source, const Index& index) const {
    const Place& operand = source.from == Operand::input ? input_operand_ : parameter_operand_;
    Index at{};
    for (int i = 0; i < operand.box().rank(); ++i) at[i] = index[first_axis_ + i];
    return operand(at);
  }

  int first_axis_;
  Source factor_, summand_;
  Place place_, input_operand_, parameter_operand_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_scale_reference(const Task& task) {
  using Kernel = BroadcastReference<T>;
  const ScaleOptions& options = dynamic_cast<const Scale&>(task.layer()).options();
  bool two = task.inputs.size() == 2;
  typename Kernel::Source factor{two ? Kernel::Operand::input : Kernel::Operand::parameter, two ? 1 : 0},
      summand;
  if (options.bias_term) summand = {Kernel::Operand::parameter, two ? 0 : 1};
  return std::make_unique<Kernel>(task, options.broadcast, factor, summand);
}

template <typename T>
std::unique_ptr<KernelOf<T>> make_bias_reference(const Task& task) {
  using Kernel = BroadcastReference<T>;
  const BiasOptions& options = dynamic_cast<const Bias&>(task.layer()).options();
  bool two = task.inputs.size() == 2;
  typename Kernel::Source summand{two ? Kernel::Operand::input : Kernel::Operand::parameter, two ? 1 : 0};
  return std::make_unique<Kernel>(task, options.broadcast, typename Kernel::Source{}, summand);
}

template std::unique_ptr<KernelOf<float>> make_scale_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_scale_reference<double>(const Task&);
template std::unique_ptr<KernelOf<float>> make_bias_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_bias_reference<double>(const Task&);

}  // namespace cortado
