#include "cortado/program/program.h"

namespace cortado {

Bytes bytes_of(const Shape& shape) { return {shape.size() * static_cast<int64_t>(sizeof(float))}; }

Range half_of(const Range& samples, int which) {
  const int64_t middle = samples.begin + (samples.size() + 1) / 2;
  return which == 0 ? Range{samples.begin, middle} : Range{middle, samples.end};
}

Movement Program::movement_of(const Step& step) const {
  const Movement& movement = works[step.work].movement;
  return step.backward ? adjoint(movement) : movement;
}

int Program::whole_of(int work) const {
  return work >= 0 && works[work].half ? works[work].half->whole : work;
}

int Program::half_of(const Step& step) const {
  return step.work >= 0 && works[step.work].half ? works[step.work].half->which : -1;
}

Bytes Program::begin_of(const Work& work, int buffer) const {
  if (!work.half) return {};
  return {buffers[buffer].size.count / work.half->of * work.half->samples.begin};
}

std::map<std::string, Range> Program::samples() const {
  std::map<std::string, Range> samples;
  for (const auto& [source, layout] : placement->samples) {
    const auto& own = layout[static_cast<size_t>(rank)];
    samples[source] = own ? (*own)[0] : Range{};
  }
  return samples;
}

int Program::add_buffer(std::string name, Buffer::Kind kind, Bytes size) {
  buffers.push_back({std::move(name), kind, size, -1, -1, -1});
  return static_cast<int>(buffers.size()) - 1;
}

int Program::tensor_buffer(int tensor) const {
  const int report = placement->report_values[tensor];
  if (report >= 0 && value_buffers[report] >= 0) return value_buffers[report];
  return value_buffers[placement->tensor_values[tensor]];
}

std::optional<Box> Program::tensor_box(int tensor) const {
  const int report = placement->report_values[tensor];
  if (report >= 0 && value_buffers[report] >= 0) return placement->values[report].layout[rank];
  return placement->values[placement->tensor_values[tensor]].layout[rank];
}

int Program::gradient_buffer(int tensor) const {
  return value_gradient_buffers[placement->tensor_values[tensor]];
}

}  // namespace cortado
