#pragma once

#include <vector>

#include "cortado/base/element_type.h"
#include "cortado/base/shape.h"
#include "cortado/cost/cost_model.h"
#include "cortado/plan/cost_graph.h"
#include "cortado/plan/priced.h"

namespace cortado::plan {

// The layouts of one tensor under all candidates of a vertex; many candidates have the same.
struct Column {
  std::vector<GridLayout> layouts;
  std::vector<int> of_candidate;
  bool operator==(const Column&) const = default;
};
// `member`: Priced::reads or Priced::owns; `index`: of the input or output.
Column column_of(const Candidates& candidates, std::vector<GridLayout> Priced::*member, size_t index);

// A tensor that moves between the layouts of two columns, given by their numbers.
struct Exchange {
  int owns = 0, reads = 0;
  bool backward = false;  // its gradient comes back
  Shape shape;
  ElementType type = ElementType::f32;
  bool operator==(const Exchange&) const = default;
};

// Per exchange the seconds of candidates by candidates; the ends of these edges mean nothing. Tensors of one
// shape and type move between much the same layouts, which are priced once for all of their exchanges.
std::vector<CostGraph::Edge> exchange_tables(const std::vector<Column>& columns,
                                             const std::vector<Exchange>& exchanges,
                                             const std::vector<int>& node_of_device, CostModel& costs);

}  // namespace cortado::plan
