#include "cortado/kernels/lowering/problem.h"

#include <fmt/format.h>
#include <variant>

#include "cortado/layers/pointwise.h"

namespace cortado::lowering {

namespace {

constexpr int64_t short_run = 16;  // channels

}  // namespace

bool ConvolutionProblem::flattens_taps() const {
  return groups == 1 && image_parts == 1 && image_channels < short_run && axis[2].dilation == 1;
}

Lattice ConvolutionProblem::gather_lattice() const {
  Lattice lattice;
  lattice.batch = batch;
  lattice.run = flattens_taps() ? axis[2].kernel : 1;
  lattice.depth = lattice.run * image_channels;
  lattice.columns = window_channels;
  int64_t image_stride = groups * image_channels, window_stride = groups * window_channels;
  for (int i = 2; i >= 0; --i) {
    LatticeAxis& to = lattice.axis[i];
    to = {axis[i].windows, axis[i].stride, {}, axis[i].image, image_stride, window_stride};
    for (int64_t k = 0; k < axis[i].kernel; k += i == 2 ? lattice.run : 1)
      to.offset.push_back(axis[i].offset(k));
    image_stride *= axis[i].image;
    window_stride *= axis[i].windows;
  }
  lattice.left_batch_stride = image_stride;
  lattice.out_batch_stride = window_stride;
  return lattice;
}

// Position i = residue + stride * row meets window o = (i + pad - k * dilation) / stride through tap k.
ResidueClass residue_class(const ConvolutionAxis& axis, int64_t residue) {
  ResidueClass result;
  result.axis.rows = divide_up(axis.image - residue, axis.stride);
  result.axis.offset.clear();
  result.axis.extent = axis.windows;
  for (int64_t k = 0; k < axis.kernel; ++k) {
    const int64_t distance = residue - axis.offset(k);
    if (distance % axis.stride != 0) continue;
    result.axis.offset.push_back(distance / axis.stride);
    result.taps.push_back(k);
  }
  return result;
}

std::optional<ConvolutionProblem> convolution_problem(const ConvolutionOptions& options, const Shape& image,
                                                      const Box& image_box, const Shape& windows,
                                                      const Box& window_box, std::string& refusal) {
  const int64_t groups = groups_of_part(image_box[1], image[1], window_box[1], windows[1], options.group);
  if (groups == 0) {
    refusal = fmt::format("channels of a convolution with {} groups are cut across them", options.group);
    return std::nullopt;
  }
  ConvolutionProblem problem;
  problem.batch = image_box[0].size();
  problem.groups = groups;
  problem.image_channels = image_box[1].size() / groups;
  problem.window_channels = window_box[1].size() / groups;
  const Window window = options.resolve(image.rank());
  for (size_t i = 0; i < window.size(); ++i) {
    const Range &in = image_box[i + 2], &out = window_box[i + 2];
    problem.axis[3 - window.size() + i] = {in.size(),          out.size(),
                                           window[i].kernel,   window[i].stride,
                                           window[i].dilation, in.begin - window[i].first(out.begin)};
  }
  return problem;
}

std::optional<ChainTail> chain_tail(const Task& task, std::string& refusal) {
  if (task.layers.size() == 1) return ChainTail{};
  const auto* pointwise = dynamic_cast<const Pointwise*>(task.layers[1].get());
  const auto* relu = pointwise ? std::get_if<ReluOptions>(&pointwise->function()) : nullptr;
  if (task.layers.size() > 2 || !relu) {
    refusal = fmt::format("a chain with {}", task.layers[1]->type());
    return std::nullopt;
  }
  if (relu->negative_slope < 0) {
    refusal = fmt::format(
        "fused ReLU with negative slope {}: the sign of its output does not tell that of its input",
        relu->negative_slope);
    return std::nullopt;
  }
  return ChainTail{true, static_cast<float>(relu->negative_slope)};
}

}  // namespace cortado::lowering
