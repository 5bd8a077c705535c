#include "cortado/plan/priced.h"

#include "cortado/base/element_type.h"

namespace cortado::plan {

int64_t largest(const GridLayout& layout) { return bytes_of(layout.most_elements(), ElementType::f32).count; }

int64_t largest(const std::vector<GridLayout>& layouts) {
  int64_t sum = 0;
  for (const GridLayout& layout : layouts) sum += largest(layout);
  return sum;
}

int64_t elements(const GridLayout& layout) {
  int64_t sum = 0;
  for (int rank = 0; rank < layout.ranks(); ++rank)
    if (layout.holds(rank)) sum += layout.elements(rank);
  return sum;
}

Bytes held_bytes(const Network& network, const Group& group, const Priced& priced) {
  int64_t sum = priced.parameters.count + largest(priced.owns);
  const auto& inputs = network.nodes()[group.nodes[0]].inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& tensor = network.tensors()[inputs[i]];
    const bool sample = network.nodes()[tensor.producer].layer->is_source();
    if (sample || elements(priced.reads[i]) > tensor.shape.size()) sum += largest(priced.reads[i]);
  }
  return {sum};
}

}  // namespace cortado::plan
