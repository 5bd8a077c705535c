#include "cortado/plan/priced.h"

#include <cmath>

namespace cortado::plan {

Bytes largest(const GridLayout& layout, ElementType type) { return bytes_of(layout.most_elements(), type); }

Bytes largest_outputs(const Priced& priced, std::optional<ElementType> type) {
  Bytes sum;
  for (size_t k = 0; k < priced.owns.size(); ++k)
    sum += largest(priced.owns[k], type ? *type : priced.own_types[k]);
  return sum;
}

Bytes largest_input(const Priced& priced, size_t i) { return largest(priced.reads[i], priced.read_types[i]); }

// Ranks hold every combination equally often: sums over ranks are products of sums over axes.
int64_t elements(const GridLayout& layout) {
  const int holders = layout.holders();
  if (holders == 0) return 0;
  __extension__ __int128 sum = holders;
  for (const GridLayout::AxisPtr& axis : layout.axes()) {
    int64_t of_axis = 0;
    for (size_t i = 0; i < axis->ranges.size(); ++i)
      of_axis += std::llround(axis->share[i] * holders) * axis->ranges[i].size();
    sum = sum * of_axis / holders;
  }
  return static_cast<int64_t>(sum);
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
