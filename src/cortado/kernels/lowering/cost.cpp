#include "cortado/kernels/lowering/cost.h"

#include <algorithm>

#include "cortado/kernels/lowering/lowering.h"
#include "cortado/layers/deconvolution.h"

namespace cortado::lowering {

namespace {

// What an axis multiplies the sizes by.
struct AxisSizes {
  int64_t data = 0, product = 0, pairs = 0, added = 0;
};

// Pairs of a window and a tap that reads a position of the image, not of the padding.
int64_t inner_pairs(const ConvolutionAxis& axis) {
  int64_t pairs = 0;
  for (int64_t k = 0; k < axis.kernel; ++k)
    for (int64_t window = 0; window < axis.windows; ++window) {
      const int64_t position = window * axis.stride + axis.offset(k);
      pairs += position >= 0 && position < axis.image;
    }
  return pairs;
}

AxisSizes sizes_of(const ConvolutionAxis& axis, bool lowered) {
  if (lowered) return {axis.windows * axis.kernel, axis.windows, axis.windows * axis.kernel, axis.windows};
  AxisSizes sizes;
  sizes.added = inner_pairs(axis);
  for (int64_t residue = 0; residue < axis.stride; ++residue) {
    const ResidueClass taps = residue_class(axis, residue);
    if (taps.taps.empty()) continue;
    sizes.data += taps.axis.rows;
    sizes.pairs += taps.axis.rows * std::ssize(taps.taps);
  }
  sizes.product = sizes.pairs;
  return sizes;
}

// Counts the operations of a direct product: each window, all taps.
Flops multiplications(const ConvolutionProblem& problem) {
  double flops = 2.0 * static_cast<double>(problem.batch * problem.groups) *
                 static_cast<double>(problem.image_channels * problem.window_channels * problem.taps());
  for (const ConvolutionAxis& axis : problem.axis) flops *= static_cast<double>(axis.windows);
  return {flops};
}

int64_t image_floats(const ConvolutionProblem& problem) {
  int64_t floats = problem.batch * problem.groups * problem.image_channels;
  for (const ConvolutionAxis& axis : problem.axis) floats *= axis.image;
  return floats;
}

int64_t window_floats(const ConvolutionProblem& problem) {
  int64_t floats = problem.batch * problem.groups * problem.window_channels;
  for (const ConvolutionAxis& axis : problem.axis) floats *= axis.windows;
  return floats;
}

int64_t weight_floats(const ConvolutionProblem& problem) {
  return problem.groups * problem.image_channels * problem.window_channels * problem.taps();
}

Seconds time_of(Flops flops, int64_t floats, FlopRate peak, Bandwidth memory) {
  return flops / peak + Bytes{floats * int64_t{sizeof(float)}} / memory;
}

}  // namespace

LoweringCost lowering_cost(const ConvolutionProblem& problem, LoweringType type) {
  AxisSizes all{1, 1, 1, 1};
  for (int i = 0; i < 3; ++i) {
    const AxisSizes axis = sizes_of(problem.axis[i], lowers(type, i));
    all.data *= axis.data;
    all.product *= axis.product;
    all.pairs *= axis.pairs;
    all.added *= axis.added;
  }
  const int64_t samples = problem.batch * problem.groups;
  LoweringCost cost;
  cost.image = image_floats(problem);
  cost.windows = window_floats(problem);
  cost.lowered_data = samples * problem.image_channels * all.data;
  cost.lowered_kernel = weight_floats(problem);
  cost.product = samples * problem.window_channels * all.product;
  cost.lift_reads = cost.product;
  cost.multiply = {2.0 * static_cast<double>(problem.image_channels) *
                   static_cast<double>(samples * problem.window_channels * all.pairs)};
  if (type != LoweringType::one)
    cost.lift = {static_cast<double>(samples * problem.window_channels * all.added)};
  const Lowering lowering(problem, type);
  for (const LoweringClass& each : lowering.classes()) {
    cost.copied_data += samples * each.data.sample_elements();
    cost.copied_product += samples * each.product.sample_elements();
  }
  return cost;
}

Seconds predicted_time(const LoweringCost& cost, FlopRate peak, Bandwidth memory) {
  return time_of(cost.multiply, cost.image + cost.windows + 2 * (cost.copied_data + cost.copied_product),
                 peak, memory);
}

Seconds predicted_direct_time(const ConvolutionProblem& problem, FlopRate peak, Bandwidth memory) {
  return time_of(multiplications(problem), image_floats(problem) + window_floats(problem), peak, memory);
}

Seconds predicted_winograd_time(const ConvolutionProblem& problem, int64_t side, FlopRate peak,
                                Bandwidth memory) {
  const int64_t taps = problem.axis[2].kernel, span = side + taps - 1;
  const double windows = static_cast<double>(side * side), positions = static_cast<double>(span * span);
  const double saving = static_cast<double>(taps * taps) * windows / positions,
               expansion = positions / windows;
  const double tensors = static_cast<double>(image_floats(problem) + window_floats(problem));
  return time_of({multiplications(problem).count / saving},
                 static_cast<int64_t>((1 + 2 * expansion) * tensors), peak, memory);
}

namespace {

std::optional<ConvolutionProblem> problem_of_task(const Task& task) {
  std::string refusal;
  if (const auto* layer = dynamic_cast<const Convolution*>(&task.layer()))
    return convolution_problem(layer->options(), task.inputs[0], task.input_boxes[0], task.outputs[0],
                               task.output_boxes[0], refusal);
  if (const auto* layer = dynamic_cast<const Deconvolution*>(&task.layer()))
    return convolution_problem(layer->options(), task.outputs[0], task.output_boxes[0], task.inputs[0],
                               task.input_boxes[0], refusal);
  return std::nullopt;
}

}  // namespace

std::optional<Seconds> predicted_pass(const Task& task, const std::string& implementation, FlopRate peak,
                                      Bandwidth memory) {
  const std::optional<ConvolutionProblem> problem = problem_of_task(task);
  if (!problem) return std::nullopt;
  if (implementation == "implicit-gemm" || implementation == "onednn")
    return predicted_direct_time(*problem, peak, memory);
  if (implementation == "winograd" || implementation == "winograd-5x5")
    return predicted_winograd_time(*problem, 2, peak, memory);
  if (implementation == "winograd-4x4" || implementation == "winograd-4x4-of-5x5")
    return predicted_winograd_time(*problem, 4, peak, memory);
  for (const LoweringType type : {LoweringType::one, LoweringType::two, LoweringType::three})
    if (implementation.starts_with(name_of(type)))
      return predicted_time(lowering_cost(*problem, type), peak, memory);
  return std::nullopt;
}

}  // namespace cortado::lowering
