#include "tests/kernels/random_products.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/layers/convolution.h"
#include "cortado/layers/deconvolution.h"
#include "cortado/layers/pointwise.h"

#include "tests/kernels/native_task.h"
#include "tests/kernels/windows.h"

namespace cortado::check {

Task random_products(check::Draw& draw, bool few) {
  const int axes = static_cast<int>(draw(1, 3));
  const int64_t group = draw.chance(40) ? draw(2, 5) : 1;
  const bool depthwise = group > 1 && draw.chance(40);
  const int64_t most = few ? 6 : 20;
  const bool transposed = draw.chance(30);
  const int64_t inputs = depthwise ? group * draw(1, 9) : group * draw(1, most);
  Shape shape{draw(1, 4), inputs};
  Window window{{}, {}, {}, {}};
  for (int axis = 0; axis < axes; ++axis) {
    window.kernel.push_back(draw(1, 4));
    window.stride.push_back(draw(1, 3));
    window.dilation.push_back(draw(1, few ? 3 : 2));
    const int64_t reach = (window.kernel.back() - 1) * window.dilation.back();
    window.pad.push_back(draw(0, transposed ? reach / 2 : reach));
    const int64_t fewest = std::max<int64_t>(1, reach + 1 - 2 * window.pad.back());
    shape.append(few ? draw(fewest, fewest + 5) : draw(7, axes == 3 ? 9 : 14));
  }
  ConvolutionOptions options =
      convolution(depthwise ? inputs : group * draw(1, most), window, depthwise ? inputs : group);
  options.bias_term = draw.chance(50);
  std::vector<LayerPtr> layers;
  if (transposed) {
    layers.push_back(std::make_shared<Deconvolution>(options));
  } else {
    layers.push_back(std::make_shared<Convolution>(options));
  }
  if (draw.chance(50)) layers.push_back(relu());
  return chain_task(layers, shape);
}

Task random_part(check::Draw& draw, const Task& whole) {
  Task task = whole;
  const bool images = whole.layer().type() == "Convolution";
  Box box = whole.domain_box;
  for (int axis = 0; axis < (images ? box.rank() : 1); ++axis) {
    if (axis == 1) continue;
    const int64_t begin = draw(0, box[axis].end - 1);
    box[axis] = {begin, draw(begin + 1, box[axis].end)};
  }
  task.output_boxes[0] = task.domain_box = box;
  task.input_boxes[0] = whole.layer().input_box(whole.inputs, 0, 0, box);
  return task;
}

std::string text_of_products(const Task& task, int number) {
  const ConvolutionOptions& options = *convolution_options(task.layer());
  std::string text =
      fmt::format("case {}: {} of {} from {} {} to {} {} in {} groups", number, task.layer().type(),
                  task.inputs[0].text(), task.input_boxes[0].text(), name_of(task.input_type(0)),
                  task.output_boxes[0].text(), name_of(task.output_type(0)), options.group);
  for (const WindowAxis& axis : options.resolve(task.inputs[0].rank()))
    text += fmt::format(", window of {} by {}, {} apart, padding {}", axis.kernel, axis.stride, axis.dilation,
                        axis.pad);
  return text;
}

}  // namespace cortado::check
