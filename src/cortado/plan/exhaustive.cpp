#include "cortado/plan/exhaustive.h"

#include <cmath>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/plan/prepared.h"

namespace cortado::plan {

void for_each_assignment(const CostGraph& graph, int64_t most,
                         const std::function<void(const std::vector<int>&, double)>& see) {
  double count = 1;
  for (int v = 0; v < graph.size(); ++v) count *= graph.candidates(v);
  if (count > static_cast<double>(most))
    throw UserError(
        fmt::format("exhaustive search would try {:.3g} assignments and may try {}. Allow fewer "
                    "candidates, or use the search by elimination.",
                    count, most));
  const CostGraph exact = rounded(graph, quantum_of(graph));
  std::vector<int> assignment(static_cast<size_t>(graph.size()));
  for (;;) {
    see(assignment, exact.seconds(assignment));
    int v = graph.size() - 1;
    for (; v >= 0 && ++assignment[v] == graph.candidates(v); --v) assignment[v] = 0;
    if (v < 0) return;
  }
}

Optimum exhaustive_search(const CostGraph& graph, int64_t most) {
  Optimum best;
  best.seconds = INFINITY;
  for_each_assignment(graph, most, [&](const std::vector<int>& assignment, double seconds) {
    if (seconds >= best.seconds) return;
    best.seconds = seconds;
    best.assignment = assignment;
  });
  if (std::isinf(best.seconds)) refuse_impossible(graph);
  best.bytes = graph.bytes(best.assignment);
  return best;
}

}  // namespace cortado::plan
