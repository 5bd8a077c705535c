#include "cortado/kernels/lowering/lowering.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/parallel_for.h"

namespace cortado::lowering {

namespace {

// A class of an axis and the image residue it stands for; a lowered axis has one of all taps.
struct AxisClass {
  ResidueClass taps;
  int64_t residue = 0;
};

// Returns the classes in the order of k * dilation modulo the stride, which no padding changes: the weight's
// order is the same for all parts of a tensor.
std::vector<AxisClass> classes_of(const ConvolutionAxis& axis, bool lowered) {
  std::vector<AxisClass> classes;
  if (lowered) {
    AxisClass all;
    for (int64_t k = 0; k < axis.kernel; ++k) all.taps.taps.push_back(k);
    return {all};
  }
  for (int64_t of_taps = 0; of_taps < axis.stride; ++of_taps) {
    const int64_t residue = ((of_taps - axis.pad) % axis.stride + axis.stride) % axis.stride;
    ResidueClass taps = residue_class(axis, residue);
    if (!taps.taps.empty()) classes.push_back({std::move(taps), residue});
  }
  return classes;
}

LatticeAxis data_axis(const ConvolutionAxis& axis, bool lowered, const AxisClass& part, int64_t stride) {
  if (!lowered) return {part.taps.axis.rows, axis.stride, {part.residue}, axis.image, stride, 0};
  LatticeAxis all{axis.windows, axis.stride, {}, axis.image, stride, 0};
  for (int64_t k = 0; k < axis.kernel; ++k) all.offset.push_back(axis.offset(k));
  return all;
}

LatticeAxis product_axis(const ConvolutionAxis& axis, bool lowered, const AxisClass& part, int64_t stride) {
  if (lowered) return {axis.windows, 1, {0}, axis.windows, stride, 0};
  return {part.taps.axis.rows, 1, part.taps.axis.offset, axis.windows, stride, 0};
}

LoweringClass make_class(const ConvolutionProblem& problem, LoweringType type,
                         const std::array<const AxisClass*, 3>& parts, int64_t kernel) {
  Lattice data, product;
  data.depth = problem.image_channels;
  product.depth = problem.window_channels;
  data.left_batch_stride = problem.groups * problem.image_channels;
  product.left_batch_stride = problem.groups * problem.window_channels;
  for (int i = 2; i >= 0; --i) {
    const ConvolutionAxis& axis = problem.axis[i];
    data.axis[i] = data_axis(axis, lowers(type, i), *parts[i], data.left_batch_stride);
    product.axis[i] = product_axis(axis, lowers(type, i), *parts[i], product.left_batch_stride);
    data.left_batch_stride *= axis.image;
    product.left_batch_stride *= axis.windows;
  }
  LoweringClass made{LoweredMatrix(data), LoweredMatrix(product), {}, data.taps(), product.taps(), kernel};
  made.taps.resize(made.lowered_taps * made.lifted_taps);
  for (int64_t kd : parts[0]->taps.taps)
    for (int64_t kh : parts[1]->taps.taps)
      for (int64_t kw : parts[2]->taps.taps) {
        int64_t lowered = 0, lifted = 0;
        const std::array<int64_t, 3> tap = {kd, kh, kw};
        for (int i = 0; i < 3; ++i) {
          const std::vector<int64_t>& of_axis = parts[i]->taps.taps;
          int64_t& index = lowers(type, i) ? lowered : lifted;
          index = index * std::ssize(of_axis) + (std::ranges::find(of_axis, tap[i]) - of_axis.begin());
        }
        made.taps[lowered * made.lifted_taps + lifted] =
            (kd * problem.axis[1].kernel + kh) * problem.axis[2].kernel + kw;
      }
  return made;
}

}  // namespace

Lowering::Lowering(const ConvolutionProblem& problem, LoweringType type)
    : problem_(problem),
      type_(type),
      image_sample_(problem.groups * problem.image_channels),
      windows_sample_(problem.groups * problem.window_channels) {
  std::array<std::vector<AxisClass>, 3> axes;
  for (int i = 0; i < 3; ++i) {
    axes[i] = classes_of(problem.axis[i], lowers(type, i));
    image_sample_ *= problem.axis[i].image;
    windows_sample_ *= problem.axis[i].windows;
  }
  int64_t kernel = 0;
  for (const AxisClass& d : axes[0])
    for (const AxisClass& h : axes[1])
      for (const AxisClass& w : axes[2]) {
        classes_.push_back(make_class(problem, type, {&d, &h, &w}, kernel));
        kernel += std::ssize(classes_.back().taps) * problem.image_channels * problem.window_channels;
      }
}

int64_t Lowering::data_elements() const {
  int64_t most = 0;
  for (const LoweringClass& each : classes_) most = std::max(most, each.data.sample_elements());
  return most;
}

int64_t Lowering::product_elements() const {
  int64_t most = 0;
  for (const LoweringClass& each : classes_) most = std::max(most, each.product.sample_elements());
  return most;
}

namespace {

// Calls copy(own, canonical) with the offset of each element of the weight in both orders.
template <typename Copy>
void for_each_weight(const Lowering& lowering, Copy&& copy) {
  const ConvolutionProblem& problem = lowering.problem();
  const int64_t depth = problem.image_channels, columns = problem.window_channels, taps = problem.taps();
  for (int64_t group = 0; group < problem.groups; ++group)
    for (const LoweringClass& each : lowering.classes()) {
      const int64_t first = group * lowering.group_weight() + each.kernel;
      parallel_for(each.lowered_taps * depth, [&](int64_t row) {
        const int64_t lowered = row / depth, channel = row % depth;
        for (int64_t lifted = 0; lifted < each.lifted_taps; ++lifted) {
          const int64_t tap = each.taps[lowered * each.lifted_taps + lifted];
          for (int64_t column = 0; column < columns; ++column)
            copy(first + (row * each.lifted_taps + lifted) * columns + column,
                 ((group * columns + column) * depth + channel) * taps + tap);
        }
      });
    }
}

std::string extents(const ConvolutionProblem& problem, int64_t ConvolutionAxis::*extent) {
  const auto& [d, h, w] = problem.axis;
  return fmt::format("{}x{}x{}", d.*extent, h.*extent, w.*extent);
}

}  // namespace

ParameterFormat Lowering::weight_format() const {
  std::string name =
      fmt::format("{}-g{}-k{}", name_of(type_), problem_.groups, extents(problem_, &ConvolutionAxis::kernel));
  if (classes_.size() > 1)
    name += fmt::format("-s{}-d{}", extents(problem_, &ConvolutionAxis::stride),
                        extents(problem_, &ConvolutionAxis::dilation));
  return {std::move(name), problem_.groups * group_weight(),
          [lowering = *this](const float* canonical, float* own) {
            for_each_weight(lowering, [&](int64_t to, int64_t from) { own[to] = canonical[from]; });
          },
          [lowering = *this](const float* own, float* canonical) {
            for_each_weight(lowering, [&](int64_t from, int64_t to) { canonical[to] = own[from]; });
          }};
}

}  // namespace cortado::lowering
