#include "cortado/plan/priced.h"

namespace cortado::plan {

Bytes largest(const GridLayout& layout, ElementType type) { return bytes_of(layout.most_elements(), type); }

Bytes largest_outputs(const Priced& priced, std::optional<ElementType> type) {
  Bytes sum;
  for (size_t k = 0; k < priced.owns.size(); ++k)
    sum += largest(priced.owns[k], type ? *type : priced.own_types[k]);
  return sum;
}

Bytes largest_input(const Priced& priced, size_t i) { return largest(priced.reads[i], priced.read_types[i]); }

int64_t elements(const GridLayout& layout) {
  int64_t sum = 0;
  for (int rank = 0; rank < layout.ranks(); ++rank)
    if (layout.holds(rank)) sum += layout.elements(rank);
  return sum;
}

Bytes held_bytes(const Network& network, const Group& group, const Priced& priced) {
  Bytes sum = priced.parameters + largest_outputs(priced);
  const auto& inputs = network.nodes()[group.nodes[0]].inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& tensor = network.tensors()[inputs[i]];
    const bool sample = network.nodes()[tensor.producer].layer->is_source();
    if (sample || elements(priced.reads[i]) > tensor.shape.size()) sum += largest_input(priced, i);
  }
  return sum;
}

}  // namespace cortado::plan
