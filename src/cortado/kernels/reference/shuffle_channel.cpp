#include "cortado/layers/shuffle_channel.h"

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/spoken.h"

namespace cortado {
namespace {

using reference::Spoken;

template <typename T>
class ShuffleChannelReference : public KernelOf<T> {
 public:
  explicit ShuffleChannelReference(const Task& task)
      : shape_(task.local_input(0)),
        group_(dynamic_cast<const ShuffleChannel&>(task.layer()).options().group) {}
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }

  void forward(const ArgumentsOf<T>& arguments) override {
    Spoken<const T> x(shape_, arguments.inputs[0]);
    Spoken<T> y(shape_, arguments.outputs[0]);
    for_each_pair([&](int64_t from, int64_t to) { y[to] = x[from]; });
  }

  void backward(const ArgumentsOf<T>& arguments) override {
    if (!arguments.input_gradients[0]) return;
    Spoken<const T> dy(shape_, arguments.output_gradients[0]);
    Spoken<T> dx(shape_, arguments.input_gradients[0]);
    for_each_pair([&](int64_t from, int64_t to) { dx[from] = dy[to]; });
  }

 private:
  // Calls function(index in the input, index in the output) for every element, in spoken order.
  template <typename Function>
  void for_each_pair(const Function& function) const {
    const AxisView view(shape_, 1);
    const int64_t run = view.extent / group_;
    for (int64_t sample = 0; sample < view.before; ++sample) {
      for (int64_t c = 0; c < view.extent; ++c) {
        const int64_t shuffled = c % run * group_ + c / run;
        for (int64_t j = 0; j < view.after; ++j) {
          function((sample * view.extent + c) * view.after + j,
                   (sample * view.extent + shuffled) * view.after + j);
        }
      }
    }
  }

  Shape shape_;
  int64_t group_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_shuffle_channel_reference(const Task& task) {
  return std::make_unique<ShuffleChannelReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_shuffle_channel_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_shuffle_channel_reference<double>(const Task&);

}  // namespace cortado
