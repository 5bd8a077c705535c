#include "cortado/program/held_memory.h"

#include <algorithm>

#include "cortado/base/error.h"

namespace cortado {
namespace {

// Each array begins on a cache line.
Bytes padded(Bytes size) { return {(size.count + 63) / 64 * 64}; }

// Elements of the memory of each parameter of which this rank holds a slice; 0: none.
IndexedVector<ParameterIndex, int64_t> elements_of_slices(const Program& program) {
  const auto& slices = program.placement->slices;
  IndexedVector<ParameterIndex, int64_t> elements(slices.size());
  for (ParameterIndex p : indices(slices))
    if (const auto& own = slices[p][static_cast<size_t>(program.rank)]) elements[p] = own->shape().size();
  for (const Work& work : program.works)
    for (size_t p = 0; p < work.parameters.size() && p < work.facts.parameter_elements.size(); ++p)
      if (const int64_t padded = work.facts.parameter_elements[p]) elements[work.parameters[p]] = padded;
  return elements;
}

// Gradients that lie in the arena.
IndexedVector<ParameterIndex, bool> passing_gradients(const Program& program) {
  IndexedVector<ParameterIndex, bool> passing(program.placement->slices.size(), false);
  for (const Step& step : program.steps)
    if (const auto* update = step.as<steps::Update>()) passing[update->parameter] = !step.reads.empty();
  return passing;
}

}  // namespace

HeldMemory held_memory(const Program& program, const Network& network, int history) {
  const auto& parameters = network.parameters();
  const auto elements = elements_of_slices(program);
  const auto passing = passing_gradients(program);
  HeldMemory held{.arena = program.arena};
  for (ParameterIndex p : indices(parameters)) {
    held.parameters += padded(bytes_of(elements[p], parameters[p].type));
    if (!parameters[p].wants_gradient) continue;
    if (!passing[p]) held.gradients += padded(bytes_of(elements[p], parameters[p].type));
    const Range updated = program.updated_elements(p, elements[p]);
    held.history += {history * padded(bytes_of(updated.size(), ElementType::f32)).count};
  }
  return held;
}

}  // namespace cortado
