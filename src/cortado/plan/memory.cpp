#include "cortado/plan/memory.h"

#include <algorithm>

#include "cortado/base/element_type.h"

namespace cortado::plan {
namespace {

// Walks through an iteration, forward and back, one group after the other.
class MemoryWalk {
 public:
  MemoryWalk(const PlanGraph& graph, std::span<const int> assignment)
      : graph_(graph),
        assignment_(assignment.begin(), assignment.end()),
        into_(graph.groups.size()),
        out_of_(graph.groups.size()) {
    for (const PlanGraph::Edge& edge : graph.edges) {
      into_[static_cast<size_t>(edge.to)].push_back(&edge);
      out_of_[static_cast<size_t>(edge.from)].push_back(&edge);
    }
  }

  Bytes run() {
    for (size_t v = 0; v < graph_.groups.size(); ++v) live_ += chosen(v).parameters;
    for (size_t v = 0; v < graph_.groups.size(); ++v) {
      live_ += activations(v);
      see(messages(v));
    }
    for (size_t v = graph_.groups.size(); v-- > 0;) go_back(v);
    return peak_;
  }

 private:
  const Priced& chosen(size_t vertex) const {
    return graph_.candidates[vertex][static_cast<size_t>(assignment_[vertex])];
  }
  const GridLayout& owned(const PlanGraph::Edge& edge) const {
    return chosen(static_cast<size_t>(edge.from)).owns[edge.output];
  }
  const GridLayout& read(const PlanGraph::Edge& edge) const {
    return chosen(static_cast<size_t>(edge.to)).reads[edge.input];
  }
  bool moves(const PlanGraph::Edge& edge) const { return !graph_.volume(edge, assignment_).nothing(); }

  // Outputs of the net are whole on the first device, for the report.
  Bytes reported(size_t v) const {
    const auto& owns = chosen(v).owns;
    Bytes sum;
    for (size_t k = 0; k < owns.size(); ++k) {
      const bool read = std::ranges::any_of(out_of_[v], [&](const auto* edge) { return edge->output == k; });
      const ElementType type = chosen(v).own_types[k];
      const Bytes whole = bytes_of(elements(owns[k]), type);
      if (!read && whole > largest(owns[k], type)) sum += whole;
    }
    return sum;
  }

  // Outputs, copies of inputs that move, and samples.
  Bytes activations(size_t v) const {
    const Priced& priced = chosen(v);
    Bytes sum = largest_outputs(priced) + reported(v);
    std::vector<bool> in_place(priced.reads.size());
    for (const PlanGraph::Edge* edge : into_[v]) in_place[edge->input] = !moves(*edge);
    for (size_t i = 0; i < in_place.size(); ++i)
      if (!in_place[i]) sum += largest_input(priced, i);
    return sum;
  }

  // What passes while a group computes: messages, packed where they leave and where they arrive, and addends.
  Bytes messages(size_t v) const {
    Bytes sum;
    for (const PlanGraph::Edge* edge : into_[v])
      if (moves(*edge)) sum += largest(owned(*edge), edge->type) + largest(read(*edge), edge->type);
    sum += reported(v);
    const int addends = chosen(v).strategy.config.degrees.r;
    if (addends > 1) sum += {addends * largest_outputs(chosen(v), ElementType::f32).count};
    return sum;
  }

  // A gradient lies where the tensor does, once for each layer that reads it, until its producer goes back;
  // while a layer goes back, also where it read the tensor.
  void go_back(size_t v) {
    Bytes passing = messages(v);
    for (const PlanGraph::Edge* edge : into_[v]) {
      if (!edge->backward) continue;
      live_ += largest(owned(*edge), edge->type);
      if (moves(*edge)) passing += largest(read(*edge), edge->type);
    }
    if (out_of_[v].empty()) passing += largest_outputs(chosen(v));
    see(passing);
    for (const PlanGraph::Edge* edge : out_of_[v])
      if (edge->backward) live_.count -= largest(owned(*edge), edge->type).count;
    live_.count -= activations(v).count;
  }

  void see(Bytes passing) { peak_ = std::max(peak_, live_ + passing); }

  const PlanGraph& graph_;
  std::vector<int> assignment_;
  std::vector<std::vector<const PlanGraph::Edge*>> into_, out_of_;
  Bytes live_, peak_;
};

}  // namespace

namespace {

// Bytes of copies of the edge's tensor that its reader's own bytes do not count, by candidates of both ends.
std::vector<double> copied_bytes(const PlanGraph& graph, const PlanGraph::Edge& edge, const Costs& seconds) {
  std::vector<double> bytes(seconds->size());
  const Candidates& from = graph.candidates[static_cast<size_t>(edge.from)];
  const Candidates& to = graph.candidates[static_cast<size_t>(edge.to)];
  const int64_t tensor = elements(from[0].owns[edge.output]);
  for (size_t b = 0; b < to.size(); ++b) {
    const GridLayout& reads = to[b].reads[edge.input];
    if (elements(reads) > tensor) continue;  // counted by held_bytes
    const double copy = static_cast<double>(largest(reads, edge.type).count);
    for (size_t a = 0; a < from.size(); ++a) {
      const size_t pair = a * to.size() + b;
      if ((*seconds)[pair] > 0) bytes[pair] = copy;
    }
  }
  return bytes;
}

}  // namespace

// Edges of equal costs between equal candidates share their bytes, too.
CostGraph held_graph(const PlanGraph& graph) {
  std::vector<size_t> made;  // edges
  CostGraph held;
  for (const CostGraph::Vertex& vertex : graph.costs.vertices()) {
    std::vector<double> bytes;
    for (const Bytes& each : vertex.bytes) bytes.push_back(static_cast<double>(each.count));
    held.add_vertex(vertex.name, std::move(bytes));
  }
  for (size_t e = 0; e < graph.costs.edges().size(); ++e) {
    const auto& costs = graph.costs.edges()[e];
    if (e >= graph.edges.size()) {  // cuts layers of one parameter the same way: what cannot be stays so
      held.add_edge(costs.from, costs.to, costs.seconds);
      continue;
    }
    const PlanGraph::Edge& edge = graph.edges[e];
    const auto candidates = [&](int vertex) -> const Candidates& {
      return graph.candidates[static_cast<size_t>(vertex)];
    };
    const auto known = std::ranges::find_if(made, [&](size_t other) {
      const PlanGraph::Edge& that = graph.edges[other];
      return graph.costs.edges()[other].seconds == costs.seconds &&
             candidates(that.from).shares_with(candidates(edge.from)) &&
             candidates(that.to).shares_with(candidates(edge.to)) && that.output == edge.output &&
             that.input == edge.input && that.type == edge.type;
    });
    if (known == made.end()) {
      made.push_back(e);
      held.add_edge(costs.from, costs.to, copied_bytes(graph, edge, costs.seconds));
    } else {
      held.add_edge(costs.from, costs.to, held.edges()[*known].seconds);
    }
  }
  return held;
}

Bytes peak_bytes(const PlanGraph& graph, std::span<const int> assignment) {
  return MemoryWalk(graph, assignment).run();
}

}  // namespace cortado::plan
