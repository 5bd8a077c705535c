#include "cortado/program/program.h"

#include <algorithm>

namespace cortado {

Range part_of(const Range& samples, int number, int count) {
  const auto end = [&](int parts) { return samples.begin + (samples.size() * parts + count - 1) / count; };
  return {end(number), end(number + 1)};
}

Movement Program::movement_of(const Step& step) const {
  const Movement& movement = works[step.work()].movement;
  return step.as<steps::Exchange>()->backward ? adjoint(movement) : movement;
}

Collective Program::collective_of(const Step& step) const {
  if (step.is<steps::ScatterGradient>() && step.as<steps::ScatterGradient>()->served) return Collective::push;
  if (step.is<steps::GatherParameter>() && step.as<steps::GatherParameter>()->served) return Collective::pull;
  if (const auto collective = step.facts().collective) return *collective;
  return movement_of(step).sums ? Collective::reduce_scatter : Collective::allgather;
}

WorkIndex Program::whole_of(WorkIndex work) const {
  return work && works[work].part.whole ? works[work].part.whole : work;
}

Layout Program::layout_of(ValueIndex value, const Work& work) const {
  Layout layout = placement->values[value].layout;
  for (auto& box : layout)
    if (box && work.part.count > 1) (*box)[0] = part_of((*box)[0], work.part.number, work.part.count);
  return layout;
}

View Program::whole(BufferIndex buffer) const {
  return buffer ? View{buffer, {0, buffers[buffer].size.count}} : View{};
}

std::map<std::string, BatchPart> Program::samples() const {
  std::map<std::string, BatchPart> samples;
  for (const auto& [source, parts] : placement->batches) samples[source] = parts[static_cast<size_t>(rank)];
  return samples;
}

const Placement::Operation& Program::first_operation(const Work& work) const {
  return placement->operations[work.operations.front()];
}

const Placement::Operation& Program::last_operation(const Work& work) const {
  return placement->operations[work.operations.back()];
}

Range Program::updated_elements(ParameterIndex parameter, int64_t elements) const {
  for (const Step& step : steps) {
    const auto* scatter = step.as<steps::ScatterGradient>();
    if (!scatter || scatter->parameter != parameter) continue;
    const auto& group = scatter->group;
    const auto member = std::ranges::find(group, rank) - group.begin();
    return block_of(elements, static_cast<int>(group.size()), static_cast<int>(member));
  }
  return {0, elements};
}

View Program::add_buffer(std::string name, Buffer::Kind kind, Bytes size, ElementType type) {
  const BufferIndex added = buffers.end_index();
  buffers.push_back({.name = std::move(name), .kind = kind, .type = type, .size = size});
  return whole(added);
}

BufferIndex Program::tensor_buffer(TensorIndex tensor) const {
  const ValueIndex report = placement->report_values[tensor];
  if (report && value_buffers[report]) return value_buffers[report];
  return value_buffers[placement->tensor_values[tensor]];
}

std::optional<Box> Program::tensor_box(TensorIndex tensor) const {
  const ValueIndex report = placement->report_values[tensor];
  if (report && value_buffers[report]) return placement->values[report].layout[rank];
  return placement->values[placement->tensor_values[tensor]].layout[rank];
}

BufferIndex Program::gradient_buffer(TensorIndex tensor) const {
  return value_gradient_buffers[placement->tensor_values[tensor]];
}

}  // namespace cortado
