#include "cortado/report/layer_means.h"

#include <fmt/format.h>

namespace cortado {

IndexedVector<NodeIndex, double> means_of_nodes(const Network& network, const Program& program,
                                                const std::vector<IterationTimes>& times,
                                                IndexedVector<WorkIndex, Seconds> IterationTimes::*pass) {
  IndexedVector<NodeIndex, double> means(network.nodes().size());
  for (WorkIndex w : indices(program.works)) {
    const Work& work = program.works[w];
    if (work.kind != Work::Kind::compute || work.nodes.empty()) continue;
    double sum = 0;
    for (const IterationTimes& iteration : times) sum += (iteration.*pass)[w].count;
    means[work.nodes.front()] += 1e3 * sum / static_cast<double>(times.size());
  }
  return means;
}

std::string layers_within(const Network& network, const Program& program) {
  std::string text;
  for (const Work& work : program.works) {
    if (!work.is_layer()) continue;
    for (size_t i = 1; i < work.nodes.size(); ++i)
      text += fmt::format("{}{} (in {})", text.empty() ? "" : ", ", network.nodes()[work.nodes[i]].name,
                          network.nodes()[work.nodes.front()].name);
  }
  return text;
}

}  // namespace cortado
