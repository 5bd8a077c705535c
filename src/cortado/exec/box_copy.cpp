#include "cortado/exec/box_copy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "cortado/kernels/element.h"
#include "cortado/kernels/gpu/passes.h"

namespace cortado {
namespace {

// Calls run(from, to, elements) for each run of memory that `box` is in both parts.
template <typename Run>
void for_each_run(const TensorPart& from, const TensorPart& to, const Box& box, Run&& run) {
  const int rank = box.rank();
  if (box.empty()) return;
  const Strides from_strides = channels_last_strides(from.box.shape());
  const Strides to_strides = channels_last_strides(to.box.shape());
  const int64_t from_size = size_of(from.type), to_size = size_of(to.type);
  const std::byte* source = from.at(box);
  std::byte* target = to.at(box);
  // The fastest axes that are whole in both join into one run.
  int outer = rank;
  int64_t elements = 1;
  while (outer > 0) {
    const int axis = memory_axis(rank, outer - 1);
    elements *= box[axis].size();
    --outer;
    if (box[axis] != from.box[axis] || box[axis] != to.box[axis]) break;
  }
  std::array<int64_t, Shape::max_rank> at{};
  while (true) {
    run(source, target, elements);
    int i = outer - 1;
    for (; i >= 0; --i) {
      const int axis = memory_axis(rank, i);
      const int64_t from_step = from_strides[axis] * from_size, to_step = to_strides[axis] * to_size;
      source += from_step;
      target += to_step;
      if (++at[i] < box[axis].size()) break;
      source -= at[i] * from_step;
      target -= at[i] * to_step;
      at[i] = 0;
    }
    if (i < 0) return;
  }
}

// use.template operator()<From, To>() for the types of the elements.
template <typename Use>
void with_types(const TensorPart& from, const TensorPart& to, Use&& use) {
  with_element_type(from.type, [&]<typename From>() {
    with_element_type(to.type, [&]<typename To>() { use.template operator()<From, To>(); });
  });
}

// The axes of a box in both parts, without those of one element; axes that are one run in both join.
gpu::BoxPlaces places_of(const TensorPart& from, const TensorPart& to, const Box& box) {
  const int rank = box.rank();
  const Strides from_strides = channels_last_strides(from.box.shape());
  const Strides to_strides = channels_last_strides(to.box.shape());
  gpu::BoxPlaces places;
  for (int place = 0; place < rank; ++place) {
    const int axis = memory_axis(rank, place);
    const int64_t extent = box[axis].size(), source = from_strides[axis], target = to_strides[axis];
    places.elements *= extent;
    if (extent == 1) continue;
    const int last = places.axes - 1;
    if (last >= 0 && places.from[last] == extent * source && places.to[last] == extent * target) {
      places.extent[last] *= extent;
      places.from[last] = source, places.to[last] = target;
      continue;
    }
    places.extent[places.axes] = extent;
    places.from[places.axes] = source;
    places.to[places.axes++] = target;
  }
  return places;
}

}  // namespace

void launch_copy(device::Queue& queue, const TensorPart& from, const TensorPart& to, const Box& box) {
  if (box.empty()) return;
  queue.launch([&queue, places = places_of(from, to, box), source = from.at(box), target = to.at(box),
                from_type = from.type, to_type = to.type] {
    gpu::copy_box(queue.stream(), places, source, from_type, target, to_type);
  });
}

void launch_add(device::Queue& queue, const TensorPart& from, const TensorPart& to, const Box& box) {
  if (box.empty()) return;
  queue.launch([&queue, places = places_of(from, to, box), source = from.at(box), target = to.at(box),
                from_type = from.type, to_type = to.type] {
    gpu::add_box(queue.stream(), places, source, from_type, target, to_type);
  });
}

void launch_zero(device::Queue& queue, const TensorPart& part) {
  queue.launch([&queue, memory = part.memory, elements = part.box.shape().size(), type = part.type] {
    gpu::zero(queue.stream(), memory, elements, type);
  });
}

std::byte* TensorPart::at(const Box& inner) const {
  const Strides strides = channels_last_strides(box.shape());
  int64_t elements = 0;
  for (int axis = 0; axis < inner.rank(); ++axis)
    elements += (inner[axis].begin - box[axis].begin) * strides[axis];
  return memory + bytes_of(elements, type).count;
}

void copy_box(const TensorPart& from, const TensorPart& to, const Box& box) {
  if (from.type == to.type) {
    for_each_run(from, to, box, [&](const std::byte* source, std::byte* target, int64_t elements) {
      std::memcpy(target, source, static_cast<size_t>(bytes_of(elements, to.type).count));
    });
    return;
  }
  with_types(from, to, [&]<typename From, typename To>() {
    for_each_run(from, to, box, [](const std::byte* source, std::byte* target, int64_t elements) {
      const auto* read = reinterpret_cast<const From*>(source);
      auto* written = reinterpret_cast<To*>(target);
      for (int64_t i = 0; i < elements; ++i) assign(written[i], widened(read[i]));
    });
  });
}

void add_box(const TensorPart& from, const TensorPart& to, const Box& box) {
  with_types(from, to, [&]<typename From, typename To>() {
    for_each_run(from, to, box, [](const std::byte* source, std::byte* target, int64_t elements) {
      const auto* read = reinterpret_cast<const From*>(source);
      auto* written = reinterpret_cast<To*>(target);
      for (int64_t i = 0; i < elements; ++i) assign(written[i], widened(written[i]) + widened(read[i]));
    });
  });
}

}  // namespace cortado
