#include "cortado/kernels/native/broadcast.h"

#include "cortado/kernels/kernel.h"
#include "cortado/kernels/tensor_type.h"

namespace cortado::native {
namespace {

// Axes of a tensor of that rank in the order of memory, innermost last.
std::vector<int> memory_order(int rank) {
  std::vector<int> order;
  for (int place = 0; place < rank; ++place) order.push_back(memory_axis(rank, place));
  return order;
}

}  // namespace

// At most two groups of axes are the operand's: the channels and others, or two groups parted by axes that
// the operand lacks.
BroadcastLayout broadcast_layout(const Shape& x, int first, int axes) {
  BroadcastLayout layout;
  const std::array<int64_t*, 4> groups = {&layout.columns, &layout.inner, &layout.blocks, &layout.outer};
  size_t group = 0;
  const std::vector<int> order = memory_order(x.rank());
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    if (x[*axis] == 1) continue;
    const bool shared = *axis >= first && *axis < first + axes;
    if (shared != (group % 2 == 0)) ++group;
    *groups.at(group) *= x[*axis];
  }
  return layout;
}

BroadcastOperand::BroadcastOperand(const Shape& x, int first, int axes, Order order, ElementType type)
    : type_(type) {
  std::vector<int64_t> steps(axes);
  std::vector<int> own_order = memory_order(axes);
  if (order == Order::parameter) {
    for (int axis = 0; axis < axes; ++axis) own_order[axis] = axis;
  }
  for (auto axis = own_order.rbegin(); axis != own_order.rend(); ++axis) {
    steps[*axis] = size_;
    size_ *= x[first + *axis];
  }
  for (int axis : memory_order(x.rank())) {
    if (axis >= first && axis < first + axes && x[axis] != 1) axes_.push_back({x[axis], steps[axis - first]});
  }
  if (axes_.empty()) axes_.push_back({1, 1});
  packed_ = type_ == ElementType::f32;
  int64_t step = 1;
  for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
    packed_ = packed_ && axis->step == step;
    step *= axis->extent;
  }
}

// move(place of the first element among the packed ones, its place in the operand, elements, step between
// them in the operand).
template <typename Move>
void BroadcastOperand::for_each_run(Move&& move) const {
  if (size_ == 0) return;
  const Axis run = axes_.back();
  parallel_for(size_ / run.extent, [&](int64_t number) {
    int64_t place = 0, rest = number;
    for (size_t axis = axes_.size() - 1; axis-- > 0;) {
      place += rest % axes_[axis].extent * axes_[axis].step;
      rest /= axes_[axis].extent;
    }
    move(number * run.extent, place, run.extent, run.step);
  });
}

const float* BroadcastOperand::pack(const float* operand, float* room) const {
  if (packed_) return operand;
  with_tensor_type(type_, [&]<typename E>() {
    const E* source = elements<E>(operand);
    for_each_run([=](int64_t to, int64_t place, int64_t count, int64_t step) {
      for (int64_t i = 0; i < count; ++i) room[to + i] = load<float>(source + place + i * step);
    });
  });
  return room;
}

void BroadcastOperand::unpack(const float* floats, float* operand) const {
  with_tensor_type(type_, [&]<typename E>() {
    E* target = elements<E>(operand);
    for_each_run([=](int64_t from, int64_t place, int64_t count, int64_t step) {
      for (int64_t i = 0; i < count; ++i) store(target + place + i * step, floats[from + i]);
    });
  });
}

}  // namespace cortado::native
