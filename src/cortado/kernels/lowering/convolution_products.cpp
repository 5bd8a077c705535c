#include "cortado/kernels/lowering/convolution_products.h"

#include <algorithm>
#include <array>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/lowering/microkernel.h"
#include "cortado/kernels/lowering/typed_vectors.h"

namespace cortado::lowering {

ConvolutionProducts implicit_products(const ConvolutionProblem& problem) {
  return {std::make_unique<GatherProduct>(problem), std::make_unique<SpreadProduct>(problem),
          std::make_unique<CorrelateProduct>(problem), "implicit-gemm", WeightPanels(problem).format()};
}

GatherProduct::GatherProduct(const ConvolutionProblem& problem)
    : problem_(problem),
      panels_(problem),
      product_(problem.gather_lattice(), problem.image_parts, {problem.image_type, problem.window_type}) {}

void GatherProduct::run(const float* image, const float* weight, float* windows, const Epilogue& epilogue,
                        std::byte* scratch) const {
  for (int64_t group = 0; group < problem_.groups; ++group) {
    const int64_t first_channel = group * problem_.window_channels;
    product_.run(image + group * problem_.image_channels, weight + group * panels_.group_elements(),
                 windows + first_channel, epilogue.from_channel(first_channel), scratch);
  }
}

SpreadProduct::SpreadProduct(const ConvolutionProblem& problem) : problem_(problem), panels_(problem) {
  Lattice lattice;
  lattice.batch = problem.batch;
  lattice.depth = problem.window_channels;
  lattice.columns = problem.image_channels;
  std::array<int64_t, 3> image_stride, window_stride;
  lattice.out_batch_stride = problem.groups * problem.image_channels;
  lattice.left_batch_stride = problem.groups * problem.window_channels;
  for (int i = 2; i >= 0; --i) {
    image_stride[i] = lattice.out_batch_stride;
    window_stride[i] = lattice.left_batch_stride;
    lattice.out_batch_stride *= problem.axis[i].image;
    lattice.left_batch_stride *= problem.axis[i].windows;
  }
  const auto& [d, h, w] = problem.axis;
  for (int64_t residue = 0; residue < d.stride * h.stride * w.stride; ++residue) {
    const std::array<int64_t, 3> residues = {residue / w.stride / h.stride, residue / w.stride % h.stride,
                                             residue % w.stride};
    std::array<ResidueClass, 3> axes;
    int64_t image_offset = 0;
    bool empty = false;
    for (int i = 0; i < 3; ++i) {
      axes[i] = residue_class(problem.axis[i], residues[i]);
      axes[i].axis.left_stride = window_stride[i];
      axes[i].axis.out_stride = image_stride[i] * problem.axis[i].stride;
      lattice.axis[i] = axes[i].axis;
      image_offset += residues[i] * image_stride[i];
      empty = empty || axes[i].axis.rows <= 0;
    }
    if (empty) continue;
    Class part{RowProduct(lattice, problem.window_parts, {problem.window_type, problem.image_type}),
               {},
               image_offset,
               right_elements_};
    for (int64_t kd : axes[0].taps)
      for (int64_t kh : axes[1].taps)
        for (int64_t kw : axes[2].taps) part.taps.push_back((kd * h.kernel + kh) * w.kernel + kw);
    right_elements_ += part.product.right_elements();
    classes_.push_back(std::move(part));
  }
}

size_t SpreadProduct::scratch_bytes() const {
  size_t bytes = 0;
  for (const Class& part : classes_) bytes = std::max(bytes, part.product.scratch_bytes());
  return bytes + right_elements_ * sizeof(float);
}

// weight [window channel / tile_columns][tap][image channel][panel_width] to
// right [image channel / tile_columns][tap of the class][window channel][panel_width].
void SpreadProduct::repack(const float* weight, const Class& part, float* right) const {
  const int64_t taps = part.taps.size(), columns = problem_.image_channels, depth = problem_.window_channels;
  parallel_for(divide_up(columns, tile_columns) * taps, [&](int64_t item) {
    const int64_t first = item / taps * tile_columns,
                  count = std::min<int64_t>(tile_columns, columns - first);
    const int64_t width = panel_width(columns, first);
    float* to = right + (first * taps + item % taps * width) * depth;
    for (int64_t k = 0; k < depth; k += tile_columns) {
      const int64_t from_width = panel_width(depth, k);
      const float* from =
          weight + k * panels_.taps * columns + (part.taps[item % taps] * columns + first) * from_width;
      const int64_t channels = std::min<int64_t>(tile_columns, depth - k);
      if (count < width) std::fill_n(to + k * width, channels * width, 0.0f);
      transpose(from, from_width, to + k * width, width, count, channels);
    }
  });
}

void SpreadProduct::run(const float* windows, const float* weight, float* image, const Epilogue& epilogue,
                        std::byte* scratch) const {
  auto* right = reinterpret_cast<float*>(scratch);
  std::byte* rest = scratch + right_elements_ * sizeof(float);
  for (int64_t group = 0; group < problem_.groups; ++group) {
    const int64_t first_channel = group * problem_.image_channels;
    for (const Class& part : classes_) {
      repack(weight + group * panels_.group_elements(), part, right + part.right_offset);
      part.product.run(windows + group * problem_.window_channels, right + part.right_offset,
                       from_element(image, problem_.image_type, first_channel + part.image_offset),
                       epilogue.from_channel(first_channel), rest);
    }
  }
}

CorrelateProduct::CorrelateProduct(const ConvolutionProblem& problem)
    : problem_(problem),
      panels_(problem),
      product_(problem.gather_lattice(), problem.all_window_channels,
               {problem.image_type, problem.window_type}) {}

void CorrelateProduct::run(const WeightProduct::Operands& operands, float* weight_gradient,
                           float* bias_gradient, std::byte* scratch) const {
  for (int64_t group = 0; group < problem_.groups; ++group) {
    const int64_t first_channel = group * problem_.window_channels;
    product_.run(operands.from_channels(group * problem_.image_channels, first_channel),
                 weight_gradient ? weight_gradient + group * panels_.group_elements() : nullptr,
                 bias_gradient ? bias_gradient + first_channel : nullptr, scratch);
  }
}

}  // namespace cortado::lowering
