#include "cortado/tune/branches.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace cortado {
namespace {

// The network as a graph with one begin and one end. Vertex 0 stands for all layers that read data, vertex
// n + 1 for layer n, the last vertex for the end. Edges lead to vertices of higher numbers.
class Flow {
 public:
  explicit Flow(const Network& network) : next_(network.nodes().size() + 2) {
    for (NodeIndex n : indices(network.nodes())) {
      const Network::Node& node = network.nodes()[n];
      std::vector<size_t>& next = next_[vertex_of(network, n)];
      for (TensorIndex output : node.outputs)
        for (NodeIndex consumer : network.tensors()[output].consumers)
          next.push_back(vertex_of(network, consumer));
      std::ranges::sort(next);
      next.erase(std::ranges::unique(next).begin(), next.end());
    }
    find_joins();
  }

  size_t end() const { return next_.size() - 1; }
  const std::vector<size_t>& next(size_t vertex) const { return next_[vertex]; }
  // The first vertex that all paths from this one go through.
  size_t join(size_t vertex) const { return join_[vertex]; }

  // The vertices between `fork` and its join, in parts that no edge connects.
  std::vector<std::vector<size_t>> between(size_t fork) const {
    std::vector<bool> inside(next_.size());
    std::vector<size_t> part(next_.size());
    std::iota(part.begin(), part.end(), size_t{0});
    const auto part_of = [&](size_t vertex) {
      while (part[vertex] != vertex) vertex = part[vertex];
      return vertex;
    };
    for (size_t v = fork; v < join_[fork]; ++v) {
      if (v != fork && !inside[v]) continue;
      for (size_t to : next_[v]) {
        if (to >= join_[fork]) continue;
        inside[to] = true;
        if (v != fork) part[std::max(part_of(v), part_of(to))] = std::min(part_of(v), part_of(to));
      }
    }
    std::map<size_t, std::vector<size_t>> parts;
    for (size_t v = fork + 1; v < join_[fork]; ++v)
      if (inside[v]) parts[part_of(v)].push_back(v);
    std::vector<std::vector<size_t>> all;
    for (auto& [first, vertices] : parts) all.push_back(std::move(vertices));
    return all;
  }

 private:
  static size_t vertex_of(const Network& network, NodeIndex node) {
    return network.nodes()[node].layer->is_source() ? 0 : static_cast<size_t>(node.value()) + 1;
  }

  // Immediate postdominators (Cooper, Harvey, Kennedy 2001, on the reversed graph).
  void find_joins() {
    join_.assign(next_.size(), end());
    for (size_t v = end(); v-- > 0;) {
      if (next_[v].empty()) continue;
      size_t common = next_[v][0];
      for (size_t other : next_[v]) {
        while (common != other) {
          size_t& nearer = common < other ? common : other;
          nearer = join_[nearer];
        }
      }
      join_[v] = common;
    }
  }

  std::vector<std::vector<size_t>> next_;
  std::vector<size_t> join_;
};

bool shares_parameters(const Network& network, const BranchSet& set) {
  const auto shares = [&](NodeIndex node) {
    return std::ranges::any_of(network.nodes()[node].parameters, [&](ParameterIndex parameter) {
      return network.parameters()[parameter].users.size() > 1;
    });
  };
  return std::ranges::any_of(set.branches,
                             [&](const auto& branch) { return std::ranges::any_of(branch, shares); });
}

}  // namespace

std::vector<BranchSet> branch_sets(const Network& network) {
  const Flow flow(network);
  std::vector<BranchSet> sets;
  const auto node_at = [](size_t vertex) { return NodeIndex(static_cast<int>(vertex) - 1); };
  for (size_t fork = 0; fork < flow.end(); ++fork) {
    if (flow.next(fork).size() < 2) continue;
    BranchSet set;
    if (fork > 0) set.fork = node_at(fork);
    if (flow.join(fork) < flow.end()) set.join = node_at(flow.join(fork));
    for (const std::vector<size_t>& part : flow.between(fork)) {
      std::vector<NodeIndex>& branch = set.branches.emplace_back();
      for (size_t vertex : part) branch.push_back(node_at(vertex));
    }
    if (set.branches.size() > 1 && !shares_parameters(network, set)) sets.push_back(std::move(set));
  }
  return sets;
}

}  // namespace cortado
