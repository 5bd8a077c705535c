#include "cortado/program/held_memory.h"

#include <algorithm>

#include "cortado/base/error.h"

namespace cortado {
namespace {

// Each array begins on a cache line.
Bytes padded(Bytes size) { return {(size.count + 63) / 64 * 64}; }

// Elements of the memory of each parameter of which this rank holds a slice; 0: none.
std::vector<int64_t> elements_of_slices(const Program& program, size_t parameters) {
  std::vector<int64_t> elements(parameters);
  for (size_t p = 0; p < parameters; ++p)
    if (const auto& own = program.placement->slices[p][static_cast<size_t>(program.rank)])
      elements[p] = own->shape().size();
  for (const Work& work : program.works)
    for (size_t p = 0; p < work.parameters.size() && p < work.facts.parameter_elements.size(); ++p)
      if (const int64_t padded = work.facts.parameter_elements[p])
        elements[static_cast<size_t>(work.parameters[p])] = padded;
  return elements;
}

}  // namespace

HeldMemory held_memory(const Program& program, const Network& network, int history) {
  const auto& parameters = network.parameters();
  const std::vector<int64_t> elements = elements_of_slices(program, parameters.size());
  HeldMemory held{.arena = program.arena};
  for (size_t p = 0; p < parameters.size(); ++p) {
    held.parameters += padded(bytes_of(elements[p], parameters[p].type));
    if (!parameters[p].wants_gradient) continue;
    held.gradients += padded(bytes_of(elements[p], parameters[p].type));
    const Range updated = program.updated_elements(static_cast<int>(p), elements[p]);
    held.history += {history * padded(bytes_of(updated.size(), ElementType::f32)).count};
  }
  return held;
}

}  // namespace cortado
