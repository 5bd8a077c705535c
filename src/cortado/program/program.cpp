#include "cortado/program/program.h"

namespace cortado {

Bytes bytes_of(const Shape& shape) { return {shape.size() * static_cast<int64_t>(sizeof(float))}; }

Movement Program::movement_of(const Step& step) const {
  const Movement& movement = works[step.work].movement;
  return step.backward ? adjoint(movement) : movement;
}

int Program::add_buffer(std::string name, Buffer::Kind kind, Bytes size) {
  buffers.push_back({std::move(name), kind, size, -1, -1, -1});
  return static_cast<int>(buffers.size()) - 1;
}

int Program::tensor_buffer(int tensor) const {
  const int report = placement.report_values[tensor];
  if (report >= 0 && value_buffers[report] >= 0) return value_buffers[report];
  return value_buffers[placement.tensor_values[tensor]];
}

std::optional<Box> Program::tensor_box(int tensor) const {
  const int report = placement.report_values[tensor];
  if (report >= 0 && value_buffers[report] >= 0) return placement.values[report].layout[rank];
  return placement.values[placement.tensor_values[tensor]].layout[rank];
}

int Program::gradient_buffer(int tensor) const {
  return value_gradient_buffers[placement.tensor_values[tensor]];
}

}  // namespace cortado
