#include "cortado/layers/convolution.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "cortado/kernels/native/few_outputs.h"
#include "cortado/kernels/onednn/engine.h"
#include "cortado/kernels/onednn/merged_groups.h"
#include "cortado/kernels/onednn/onednn.h"
#include "cortado/kernels/onednn/weighted.h"
#include "cortado/layers/deconvolution.h"

namespace cortado {

namespace onednn {

namespace {

using Dims = dnnl::memory::dims;

// Strides, dilations (0: dense) and padding of a convolution, one each per spatial axis.
struct WindowDims {
  Dims stride, dilation, left, right;
};

// The window over a part of the image: `image` is the tensor that windows slide over. Padding is what the
// windows read outside the part that is held.
WindowDims local_window(const Window& window, const Box& image, const Box& windows) {
  WindowDims dims;
  for (size_t i = 0; i < window.size(); ++i) {
    const WindowAxis& axis = window[i];
    const Range held = image[static_cast<int>(i) + 2], local = windows[static_cast<int>(i) + 2];
    const int64_t end = axis.first(local.end - 1) + axis.extent();
    dims.stride.push_back(axis.stride);
    dims.dilation.push_back(axis.dilation - 1);
    dims.left.push_back(held.begin - axis.first(local.begin));
    dims.right.push_back(std::max<int64_t>(0, end - held.end));
  }
  return dims;
}

// Extents of the weights as oneDNN counts them, group first where there are several.
Dims weight_extents(const Window& window, int64_t group, int64_t outputs, int64_t inputs) {
  Dims extents;
  if (group > 1) extents.push_back(group);
  extents.push_back(outputs / group);
  extents.push_back(inputs / group);
  for (const WindowAxis& axis : window) extents.push_back(axis.kernel);
  return extents;
}

// Groups of the part that the task computes; 0: it is no convolution of groups.
int64_t local_groups(const Task& task, const ConvolutionOptions& options) {
  return groups_of_part(task.input_boxes[0][1], task.inputs[0][1], task.output_boxes[0][1],
                        task.outputs[0][1], options.group);
}

std::string misfit(const Task& task, const ConvolutionOptions& options) {
  if (auto reason = misfit_of(task); !reason.empty()) return reason;
  if (local_groups(task, options) == 0) return "channels cut across groups";
  if (task.input_boxes[0].empty() || task.output_boxes[0].empty()) return "an empty part";
  return "";
}

// Whether each point of the window lies on the image in some of its places.
bool meets_image(const Window& window, const Box& image, const Box& windows) {
  for (size_t i = 0; i < window.size(); ++i) {
    const WindowAxis& axis = window[i];
    const Range held = image[static_cast<int>(i) + 2], local = windows[static_cast<int>(i) + 2];
    for (int64_t point = 0; point < axis.kernel; ++point) {
      bool meets = false;
      for (int64_t place = local.begin; place < local.end && !meets; ++place) {
        const int64_t pixel = axis.first(place) + point * axis.dilation;
        meets = held.begin <= pixel && pixel < held.end;
      }
      if (!meets) return false;
    }
  }
  return true;
}

// Whether the axis's windows begin before the image and end after it, and none lies within.
bool none_within(const WindowAxis& axis, Range held, Range local) {
  const auto within = [&](int64_t place) {
    return axis.first(place) >= held.begin && axis.first(place) + axis.extent() <= held.end;
  };
  for (int64_t place = local.begin; place < local.end; ++place)
    if (within(place)) return false;
  return axis.first(local.begin) < held.begin && axis.first(local.end - 1) + axis.extent() > held.end;
}

// Why oneDNN 2.6 does not make, or makes wrongly, the gradient of the weights from factors in bf16. Empty: it
// makes it right.
std::string flaw_of_bf16_gradient(const Window& window, const Box& image, const Box& windows) {
  if (!meets_image(window, image, windows)) return "weights that meet only padding";
  const int last = windows.rank() - 1;
  if (image[1].size() == 1 && windows[last].size() == 1 && window.back().stride > 1)
    return "a gradient of one place of one channel";
  if (window.size() < 3) return "";
  if (std::ranges::any_of(window, [](const WindowAxis& axis) { return axis.dilation > 1; }))
    return "a gradient of dilated 3-D weights";
  const bool strided = window[0].stride > 1;
  return strided && none_within(window[0], image[2], windows[2])
             ? "a gradient of volumes' windows none of which is whole"
             : "";
}

// The kernel of a window that slides over `image`.
template <typename Plan>
KernelOffer offer_of_window(const WeightedProblem& problem, const Window& window, const Box& image,
                            const Box& windows, Plan&& plan) {
  if (problem.in_bf16() && problem.parameter_gradient())
    if (auto flaw = flaw_of_bf16_gradient(window, image, windows); !flaw.empty()) return {nullptr, flaw};
  PassPlanner of_problem = [plan, dims = local_window(window, image, windows)](const WeightedProblem& p) {
    return plan(p, dims);
  };
  return offer_weighted_kernel(problem, of_problem(problem), of_problem);
}

WeightedPasses plan_convolution(const WeightedProblem& p, const WindowDims& w) {
  using namespace dnnl;
  const auto direct = algorithm::convolution_direct;
  const auto weights = p.any_weights();
  return plan_passes(
      p,
      [&](const primitive_attr& attributes) {
        return convolution_forward::primitive_desc(
            {p.forward_kind(), direct, p.source, weights, p.bias_or_none(), p.target, w.stride, w.dilation,
             w.left, w.right},
            attributes, engine());
      },
      [&](const primitive_attr& attributes, const convolution_forward::primitive_desc& hint) {
        return convolution_backward_data::primitive_desc(
            {direct, p.source, weights, p.target_gradient, w.stride, w.dilation, w.left, w.right}, attributes,
            engine(), hint);
      },
      [&](const primitive_attr& attributes, const convolution_forward::primitive_desc& hint) {
        return convolution_backward_weights::primitive_desc(
            {direct, p.source, p.any_weight_gradient(), p.bias_gradient_or_none(), p.target_gradient,
             w.stride, w.dilation, w.left, w.right},
            attributes, engine(), hint);
      });
}

WeightedPasses plan_deconvolution(const WeightedProblem& p, const WindowDims& w) {
  using namespace dnnl;
  const auto direct = algorithm::deconvolution_direct;
  const auto weights = p.any_weights();
  return plan_passes(
      p,
      [&](const primitive_attr& attributes) {
        return deconvolution_forward::primitive_desc(
            {p.forward_kind(), direct, p.source, weights, p.bias_or_none(), p.target, w.stride, w.dilation,
             w.left, w.right},
            attributes, engine());
      },
      [&](const primitive_attr& attributes, const deconvolution_forward::primitive_desc& hint) {
        return deconvolution_backward_data::primitive_desc(
            {direct, p.source, weights, p.target_gradient, w.stride, w.dilation, w.left, w.right}, attributes,
            engine(), hint);
      },
      [&](const primitive_attr& attributes, const deconvolution_forward::primitive_desc& hint) {
        return deconvolution_backward_weights::primitive_desc(
            {direct, p.source, p.any_weight_gradient(), p.bias_gradient_or_none(), p.target_gradient,
             w.stride, w.dilation, w.left, w.right},
            attributes, engine(), hint);
      });
}

}  // namespace

}  // namespace onednn

KernelOffer make_onednn_convolution(const Task& task) try {
  using namespace onednn;
  auto* layer = dynamic_cast<const Convolution*>(&task.layer());
  if (!layer) return {nullptr, "not a Convolution"};
  const ConvolutionOptions& options = layer->options();
  if (auto reason = misfit(task, options); !reason.empty()) return {nullptr, reason};
  const Window window = options.resolve(task.inputs[0].rank());
  WeightedProblem problem = weighted_problem(task, options.bias_term);
  const int64_t groups = local_groups(task, options);
  problem.canonical =
      row_major(weight_extents(window, groups, task.local_output(0)[1], task.local_input(0)[1]));
  const bool few_outputs = native::has_few_outputs(task);
  if (few_outputs) {
    problem.source_gradient = problem.weight_gradient = problem.bias_gradient = false;
    problem.canonical_weights = true;
  }
  KernelOffer offer =
      offer_of_window(problem, window, task.input_boxes[0], task.output_boxes[0], plan_convolution);
  if (offer.kernel && groups > 1)
    offer.kernel = with_merged_gradient(std::move(offer.kernel), task, groups, make_onednn_convolution);
  if (offer.kernel && few_outputs && task.has_backward())
    offer.kernel = native::with_gradients_of_few_outputs(std::move(offer.kernel), task);
  return offer;
} catch (const dnnl::error& error) {
  return {nullptr, error.what()};
}

// Caffe keeps the weights as inputs x outputs/group x kernel.
KernelOffer make_onednn_deconvolution(const Task& task) try {
  using namespace onednn;
  auto* layer = dynamic_cast<const Deconvolution*>(&task.layer());
  if (!layer) return {nullptr, "not a Deconvolution"};
  const ConvolutionOptions& options = layer->options();
  if (auto reason = misfit(task, options); !reason.empty()) return {nullptr, reason};
  for (int axis = 2; axis < task.inputs[0].rank(); ++axis) {
    const bool whole = task.local_input(0)[axis] == task.inputs[0][axis] &&
                       task.local_output(0)[axis] == task.outputs[0][axis];
    if (!whole) return {nullptr, "a part of the image"};
  }
  const Window window = options.resolve(task.inputs[0].rank());
  WeightedProblem problem = weighted_problem(task, options.bias_term);
  const int64_t groups = local_groups(task, options);
  const Dims extents = weight_extents(window, groups, task.local_output(0)[1], task.local_input(0)[1]);
  std::vector<int> axes(extents.size());
  std::iota(axes.begin(), axes.end(), 0);
  const int first_channel_axis = groups > 1;
  std::swap(axes[first_channel_axis], axes[first_channel_axis + 1]);
  problem.canonical = ordered(extents, axes);
  return offer_of_window(problem, window, task.output_boxes[0], task.input_boxes[0], plan_deconvolution);
} catch (const dnnl::error& error) {
  return {nullptr, error.what()};
}

}  // namespace cortado
