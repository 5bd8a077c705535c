#include "cortado/layers/tile.h"

#include <algorithm>

#include "cortado/kernels/reference/parts.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/spoken.h"

namespace cortado {
namespace {

using reference::for_each_part_element;
using reference::Spoken;

template <typename T>
class TileReference : public KernelOf<T> {
 public:
  explicit TileReference(const Task& task)
      : axis_(dynamic_cast<const Tile&>(task.layer()).options().axis),
        input_(task.local_input(0)),
        output_(task.local_output(0)),
        parts_(dynamic_cast<const Tile&>(task.layer()).options().tiles, input_) {}
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }

  void forward(const ArgumentsOf<T>& arguments) override {
    Spoken<const T> x(input_, arguments.inputs[0]);
    Spoken<T> y(output_, arguments.outputs[0]);
    for_each_part_element(parts_, output_, axis_, [&](size_t, int64_t from, int64_t to) { y[to] = x[from]; });
  }

  void backward(const ArgumentsOf<T>& arguments) override {
    if (!arguments.input_gradients[0]) return;
    std::fill_n(arguments.input_gradients[0], input_.size(), T{0});
    Spoken<const T> dy(output_, arguments.output_gradients[0]);
    Spoken<T> dx(input_, arguments.input_gradients[0]);
    for_each_part_element(parts_, output_, axis_,
                          [&](size_t, int64_t to, int64_t from) { dx[to] += dy[from]; });
  }

 private:
  int axis_;
  Shape input_, output_;
  std::vector<Shape> parts_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_tile_reference(const Task& task) {
  return std::make_unique<TileReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_tile_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_tile_reference<double>(const Task&);

}  // namespace cortado
