#include "cortado/kernels/cudnn/problem.h"

#include "cortado/kernels/fused_relu.h"

namespace cortado::cudnn {
namespace {

std::string misfit(const Task& task, int64_t groups, bool spreads) {
  if (auto reason = chain_refusal(task); !reason.empty()) return reason;
  if (groups == 0) return "channels cut across groups";
  if (task.input_boxes[0].empty() || task.output_boxes[0].empty()) return "an empty part";
  if (task.all_f32()) return "";
  if (task.output_type(0) != ElementType::bf16) return "an output that is not bf16";
  if (task.input_type(0) == ElementType::bf16) return "";
  if (task.input_type(0) != ElementType::f32) return "an input of another type than f32 and bf16";
  if (spreads) return "an input in f32";
  return task.input_gradients[0] ? "an input in f32 that wants a gradient" : "";
}

// Padding before and after the part of the image that is held. After it as much as before it where that gives
// the same windows: few of cuDNN's engines take others. False: no padding gives these windows.
bool add_axis(Convolution& to, const WindowAxis& axis, const Range& held, const Range& windows) {
  const int64_t before = held.begin - axis.first(windows.begin);
  int64_t after = before;
  const auto count = [&] {
    const int64_t room = held.size() + before + after - axis.extent();
    return room < 0 ? 0 : room / axis.stride + 1;
  };
  if (before < 0) return false;
  if (count() != windows.size()) after = axis.first(windows.end - 1) + axis.extent() - held.end;
  if (after < 0 || count() != windows.size()) return false;
  to.stride.push_back(axis.stride);
  to.dilation.push_back(axis.dilation);
  to.before.push_back(before);
  to.after.push_back(after);
  return true;
}

}  // namespace

Problem problem_of(const Task& task, const ConvolutionOptions& options, bool spreads, bool tf32) {
  const Box &input = task.input_boxes[0], &output = task.output_boxes[0];
  const Box &image = spreads ? output : input, &windows = spreads ? input : output;
  const Shape &whole_image = spreads ? task.outputs[0] : task.inputs[0],
              &all_windows = spreads ? task.inputs[0] : task.outputs[0];
  const int64_t groups = groups_of_part(image[1], whole_image[1], windows[1], all_windows[1], options.group);
  Problem problem{.refusal = misfit(task, groups, spreads),
                  .spreads = spreads,
                  .bias = options.bias_term,
                  .relu = task.layers.size() > 1};
  if (!problem.refusal.empty()) return problem;
  Convolution& made = problem.convolution;
  made.type = task.all_f32() ? ElementType::f32 : ElementType::bf16;
  made.tf32 = tf32;
  problem.narrows_source = task.input_type(0) != made.type;
  made.x = {image[0].size(), image[1].size()};
  made.w = {windows[1].size(), image[1].size() / groups};
  made.y = {windows[0].size(), windows[1].size()};
  Window window = options.resolve(task.inputs[0].rank());
  const auto add = [&](const WindowAxis& axis, const Range& held, const Range& places) {
    made.x.push_back(held.size());
    made.w.push_back(axis.kernel);
    made.y.push_back(places.size());
    return add_axis(made, axis, held, places);
  };
  bool fits = window.size() > 1 || add({}, {0, 1}, {0, 1});  // cuDNN has two spatial axes or three
  for (size_t i = 0; i < window.size(); ++i)
    fits = fits && add(window[i], image[static_cast<int>(i) + 2], windows[static_cast<int>(i) + 2]);
  if (!fits) problem.refusal = "a part whose windows no padding gives";
  return problem;
}

}  // namespace cortado::cudnn
