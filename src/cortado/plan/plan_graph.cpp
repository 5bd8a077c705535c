#include "cortado/plan/plan_graph.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>

#include "cortado/base/error.h"
#include "cortado/parallel/layer_cut.h"
#include "cortado/plan/cost_the_same.h"
#include "cortado/plan/threads.h"

namespace cortado::plan {
namespace {

// The number of a value in a list that grows by those that it does not have.
template <typename Value>
int number_of(std::vector<Value>& values, Value value) {
  auto found = std::ranges::find(values, value);
  if (found == values.end()) found = values.insert(values.end(), std::move(value));
  return static_cast<int>(found - values.begin());
}

// The layouts of one tensor under all candidates of a vertex; many candidates have the same.
struct Column {
  std::vector<GridLayout> layouts;
  std::vector<int> of_candidate;
  bool operator==(const Column&) const = default;
};

// Configurations of the first devices are kept without the list of these: of a large machine there are very
// many.
ParallelConfig compact(ParallelConfig config) {
  for (size_t i = 0; i < config.devices.size(); ++i)
    if (config.devices[i] != static_cast<int>(i)) return config;
  config.devices = {};
  return config;
}

ParallelConfig with_devices(ParallelConfig config) {
  if (!config.devices.empty()) return config;
  config.devices.resize(static_cast<size_t>(config.degrees.product()));
  std::iota(config.devices.begin(), config.devices.end(), 0);
  return config;
}

Column column_of(const Candidates& candidates, std::vector<GridLayout> Priced::*member, size_t index) {
  Column column;
  std::unordered_map<size_t, std::vector<int>> known;  // by hash
  for (const Priced& candidate : candidates) {
    const GridLayout& layout = (candidate.*member)[index];
    std::vector<int>& of_one_hash = known[layout.hash()];
    auto same = std::ranges::find_if(
        of_one_hash, [&](int number) { return column.layouts[static_cast<size_t>(number)] == layout; });
    if (same == of_one_hash.end()) {
      same = of_one_hash.insert(same, static_cast<int>(column.layouts.size()));
      column.layouts.push_back(layout);
    }
    column.of_candidate.push_back(*same);
  }
  return column;
}

// Equal groups, with what they have in common.
struct Kind {
  Group group;
  std::vector<ParallelConfig> configs;  // compact()
  int vertices = 0;
  std::optional<Candidates> priced{};
  std::vector<int> reads{}, owns{};  // numbers of columns, per input and output
  double omitted = infinity;         // what the cheapest costs that was left out
};

class GraphMaker {
 public:
  GraphMaker(const Network& network, const PricingOptions& options, CostModel& costs,
             std::vector<int> node_of_device)
      : network_(network), options_(options), costs_(costs) {
    graph_.node_of_device = std::move(node_of_device);
  }

  PlanGraph run() {
    graph_.groups = groups_of(network_);
    for (std::string_view name : built_in_strategies())
      baselines_.push_back(built_in_strategy(name, network_, options_.devices));
    for (const Group& group : graph_.groups) kind_of_vertex_.push_back(kind_of(group));
    if (too_many()) leave_out();
    price_kinds();
    for (size_t v = 0; v < graph_.groups.size(); ++v) add_vertex(v);
    for (size_t v = 0; v < graph_.groups.size(); ++v) add_edges(static_cast<int>(v));
    price_edges();
    forbid_unequal_sharers();
    return std::move(graph_);
  }

 private:
  void add_vertex(size_t vertex) {
    const Group& group = graph_.groups[vertex];
    const Candidates& priced = *kinds_[kind_of_vertex_[vertex]].priced;
    std::vector<double> seconds;
    std::vector<Bytes> bytes;
    for (const Priced& candidate : priced) {
      seconds.push_back(candidate.total().count);
      bytes.push_back(candidate.memory);
    }
    const std::string& name = network_.nodes()[group.nodes[0]].name;
    graph_.costs.add_vertex(name, std::move(seconds), std::move(bytes));
    for (NodeIndex node : group.nodes) vertex_of_[node] = static_cast<int>(vertex);
    graph_.candidates.push_back(priced);
    graph_.omitted.push_back(kinds_[kind_of_vertex_[vertex]].omitted);
  }

  // What the built-in strategies choose for the group.
  std::vector<ParallelConfig> baselines_of(const Group& group) const {
    const std::string& name = network_.nodes()[group.nodes[0]].name;
    std::vector<ParallelConfig> configs;
    for (const Strategy& baseline : baselines_) configs.push_back(baseline.find(name)->config);
    return configs;
  }

  // Whether each device's part of every layer of the group reads some of its input (parts_read).
  bool every_part_reads(const Group& group, const ParallelConfig& config) const {
    return std::ranges::all_of(group.nodes, [&](NodeIndex index) {
      const auto& node = network_.nodes()[index];
      return parts_read(*node.layer, network_.shapes_of(node.inputs), network_.shapes_of(node.outputs),
                        config);
    });
  }

  // Parts follow weights where these leave each device something to read.
  std::vector<ParallelConfig> configs_of(const Group& group) const {
    std::vector<ParallelConfig> configs =
        candidates_of(network_, group, options_.devices, options_.dimensions);
    if (options_.weights.empty()) return configs;
    for (ParallelConfig& config : configs) {
      ParallelConfig other = weighed(config, options_.weights);
      if (every_part_reads(group, other)) config = std::move(other);
    }
    return configs;
  }

  size_t kind_of(const Group& group) {
    std::vector<ParallelConfig> baselines = baselines_of(group);
    std::ranges::transform(baselines, baselines.begin(), compact);
    for (size_t k = 0; k < kinds_.size(); ++k) {
      const auto has = [&](const ParallelConfig& config) {
        return std::ranges::find(kinds_[k].configs, config) != kinds_[k].configs.end();
      };
      if (!cost_the_same(network_, kinds_[k].group, group) || !std::ranges::all_of(baselines, has)) continue;
      ++kinds_[k].vertices;
      return k;
    }
    Kind kind{.group = group, .configs = {}, .vertices = 1};
    for (ParallelConfig& config : configs_of(group)) kind.configs.push_back(compact(std::move(config)));
    for (const ParallelConfig& config : baselines) number_of(kind.configs, config);
    kinds_.push_back(std::move(kind));
    return kinds_.size() - 1;
  }

  // Whether costs of all pairs of candidates would take too much memory, or too long to find out.
  bool too_many() const {
    std::map<NodeIndex, size_t> kinds;  // by node of a group
    std::set<std::pair<size_t, size_t>> edges;
    double pairs = 0, different = 0;
    for (size_t v = 0; v < graph_.groups.size(); ++v) {
      const size_t own = kind_of_vertex_[v];
      for (TensorIndex input : network_.nodes()[graph_.groups[v].nodes[0]].inputs) {
        const auto from = kinds.find(network_.tensors()[input].producer);
        if (from == kinds.end()) continue;
        const double of_edge = static_cast<double>(kinds_[own].configs.size()) *
                               static_cast<double>(kinds_[from->second].configs.size());
        pairs += of_edge;
        if (edges.emplace(from->second, own).second) different += of_edge;
      }
      for (NodeIndex node : graph_.groups[v].nodes) kinds[node] = own;
    }
    return sizeof(double) * pairs > static_cast<double>(options_.most_tables.count) ||
           different > options_.most_volumes;
  }

  // What a candidate costs and holds, whatever its neighbours take.
  struct Alone {
    double seconds = 0;
    Bytes memory;
  };
  std::vector<Alone> price_alone(const Kind& kind) {
    std::vector<Alone> alone;
    GroupPricer pricer(network_, kind.group, options_, costs_);
    for (const ParallelConfig& each : kind.configs) {
      const ParallelConfig config = with_devices(each);
      const Priced priced = pricer.price(config);
      alone.push_back({priced.total().count, priced.memory});
      if (const std::optional<Priced> other = pricer.price_replicated(config))
        alone.back().seconds = std::min(alone.back().seconds, other->total().count);
    }
    return alone;
  }

  // Leaves out candidates of every kind but some, and remembers what the others cost at least.
  void leave_out() {
    std::vector<std::vector<Alone>> alone(kinds_.size());
    parallel_for_work(std::ssize(kinds_), costs_.concurrent() ? worth_threads : 0, [&](int64_t k) {
      alone[static_cast<size_t>(k)] = price_alone(kinds_[static_cast<size_t>(k)]);
    });
    // By how much each way to cut exceeds the layers' cheapest ones, over the whole net.
    std::map<std::string, double> excess;
    for (size_t k = 0; k < kinds_.size(); ++k) {
      const double least = std::ranges::min(alone[k], {}, &Alone::seconds).seconds;
      for (size_t c = 0; c < alone[k].size(); ++c)
        excess[kinds_[k].configs[c].text()] += kinds_[k].vertices * (alone[k][c].seconds - least);
    }
    std::vector<std::set<std::string>> baselines(kinds_.size());
    for (size_t v = 0; v < graph_.groups.size(); ++v)
      for (const ParallelConfig& config : baselines_of(graph_.groups[v]))
        baselines[kind_of_vertex_[v]].insert(compact(config).text());
    for (size_t k = 0; k < kinds_.size(); ++k) leave_out_of(kinds_[k], alone[k], excess, baselines[k]);
  }

  void leave_out_of(Kind& kind, const std::vector<Alone>& alone, const std::map<std::string, double>& excess,
                    const std::set<std::string>& baselines) const {
    std::vector<double> over_all;
    for (const ParallelConfig& config : kind.configs) over_all.push_back(excess.at(config.text()));
    std::vector<bool> kept(alone.size());
    const auto keep = [&](size_t most, auto&& value) {
      std::vector<size_t> order(alone.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::ranges::stable_sort(order, {}, value);
      for (size_t i = 0; i < std::min(most, order.size()); ++i) kept[order[i]] = true;
    };
    keep(options_.kept_candidates / 2, [&](size_t c) { return alone[c].seconds; });
    keep(options_.kept_candidates / 2, [&](size_t c) { return over_all[c]; });
    keep(options_.kept_candidates / 16, [&](size_t c) { return alone[c].memory; });
    std::vector<ParallelConfig> configs;
    for (size_t c = 0; c < alone.size(); ++c) {
      if (kept[c] || baselines.contains(kind.configs[c].text())) {
        configs.push_back(std::move(kind.configs[c]));
      } else {
        kind.omitted = std::min(kind.omitted, alone[c].seconds);
      }
    }
    kind.configs = std::move(configs);
  }

  void price_kinds() {
    constexpr double operations = 60'000;  // for a candidate, about
    double work = 0;
    for (const Kind& kind : kinds_) work += operations * static_cast<double>(kind.configs.size());
    parallel_for_work(std::ssize(kinds_), costs_.concurrent() ? work : 0, [&](int64_t k) {
      Kind& kind = kinds_[static_cast<size_t>(k)];
      GroupPricer pricer(network_, kind.group, options_, costs_);
      std::vector<Priced> priced;
      for (const ParallelConfig& config : kind.configs) priced.push_back(pricer.price(with_devices(config)));
      for (const ParallelConfig& config : kind.configs) {
        if (std::optional<Priced> other = pricer.price_replicated(with_devices(config)))
          priced.push_back(std::move(*other));
      }
      kind.priced.emplace(std::move(priced));
    });
    for (Kind& kind : kinds_) {
      const Candidates& priced = *kind.priced;
      for (size_t i = 0; i < priced[0].reads.size(); ++i)
        kind.reads.push_back(number_of(columns_, column_of(priced, &Priced::reads, i)));
      for (size_t k = 0; k < priced[0].owns.size(); ++k)
        kind.owns.push_back(number_of(columns_, column_of(priced, &Priced::owns, k)));
    }
  }

  void add_edges(int to) {
    const auto& first = network_.nodes()[graph_.groups[static_cast<size_t>(to)].nodes[0]];
    for (size_t i = 0; i < first.inputs.size(); ++i) {
      const auto& tensor = network_.tensors()[first.inputs[i]];
      const auto from = vertex_of_.find(tensor.producer);
      if (from == vertex_of_.end()) continue;  // every rank reads its own samples
      graph_.edges.push_back({.from = from->second,
                              .to = to,
                              .output = static_cast<size_t>(tensor.producer_output),
                              .input = i,
                              .backward = first.propagate_down[i],
                              .type = tensor.type});
    }
  }

  const Kind& kind(int vertex) const { return kinds_[kind_of_vertex_[static_cast<size_t>(vertex)]]; }

  // Nets repeat themselves: edges between equal layouts share their costs.
  void price_edges() {
    std::vector<Exchange> exchanges;
    std::vector<int> number;  // of each edge's
    double work = 0;
    for (const PlanGraph::Edge& edge : graph_.edges) {
      const Exchange exchange{kind(edge.from).owns[edge.output], kind(edge.to).reads[edge.input],
                              edge.backward, edge.type};
      const size_t known = exchanges.size();
      number.push_back(number_of(exchanges, exchange));
      if (exchanges.size() > known) work += work_of(exchange);
    }
    std::vector<CostGraph::Edge> priced(exchanges.size());
    parallel_for_work(std::ssize(priced), work, [&](int64_t i) {
      const auto table =
          std::make_shared<const std::vector<double>>(table_of(exchanges[static_cast<size_t>(i)]));
      priced[static_cast<size_t>(i)] = CostGraph::checked_edge(0, 1, table);
    });
    for (size_t e = 0; e < graph_.edges.size(); ++e) {
      CostGraph::Edge edge = priced[static_cast<size_t>(number[e])];
      edge.from = graph_.edges[e].from;
      edge.to = graph_.edges[e].to;
      graph_.costs.add_edge(std::move(edge));
    }
  }

  // A tensor that moves between the layouts of two columns.
  struct Exchange {
    int owns, reads;
    bool backward;
    ElementType type;
    bool operator==(const Exchange&) const = default;
  };

  double work_of(const Exchange& exchange) const {
    constexpr double operations = 20;  // for a rank, about
    return operations * options_.devices *
           static_cast<double>(columns_[static_cast<size_t>(exchange.owns)].layouts.size() *
                               columns_[static_cast<size_t>(exchange.reads)].layouts.size());
  }

  // Seconds for candidates by candidates.
  std::vector<double> table_of(const Exchange& exchange) {
    const Column &owns = columns_[static_cast<size_t>(exchange.owns)],
                 &reads = columns_[static_cast<size_t>(exchange.reads)];
    const ExchangeVolumes volumes(owns.layouts, reads.layouts, graph_.node_of_device, exchange.type);
    const double times = exchange.backward ? 2 : 1;
    std::vector<std::vector<double>> rows;
    ExchangeVolumes::Room room = volumes.room();
    for (size_t a = 0; a < owns.layouts.size(); ++a) {
      std::vector<double>& row = rows.emplace_back();
      for (const ExchangeVolume& volume : volumes.row(a, room))
        row.push_back(times * costs_.exchange(volume).count);
    }
    std::vector<double> table;
    table.reserve(owns.of_candidate.size() * reads.of_candidate.size());
    for (int a : owns.of_candidate)
      for (int b : reads.of_candidate) table.push_back(rows[static_cast<size_t>(a)][static_cast<size_t>(b)]);
    return table;
  }

  // Layers that share a parameter must be cut the same way.
  void forbid_unequal_sharers() {
    for (const auto& parameter : network_.parameters()) {
      for (size_t u = 1; u < parameter.users.size(); ++u)
        forbid_unequal(vertex_of_.at(parameter.users[0]), vertex_of_.at(parameter.users[u]));
    }
  }

  void forbid_unequal(int a, int b) {
    if (a == b) return;
    const auto& ours = graph_.candidates[static_cast<size_t>(a)];
    const auto& theirs = graph_.candidates[static_cast<size_t>(b)];
    std::vector<double> table;
    for (const Priced& one : ours) {
      for (const Priced& other : theirs)
        table.push_back(
            one.strategy.config == other.strategy.config ? 0 : std::numeric_limits<double>::infinity());
    }
    graph_.costs.add_edge(a, b, std::move(table));
  }

  const Network& network_;
  const PricingOptions& options_;
  CostModel& costs_;
  PlanGraph graph_;
  std::vector<Strategy> baselines_;
  std::map<NodeIndex, int> vertex_of_;  // node to vertex
  std::vector<Kind> kinds_;
  std::vector<size_t> kind_of_vertex_;
  std::vector<Column> columns_;
};

}  // namespace

ExchangeVolume PlanGraph::volume(const Edge& edge, const std::vector<int>& assignment) const {
  const auto& chosen = [&](int vertex) -> const Priced& {
    return candidates[static_cast<size_t>(vertex)]
                     [static_cast<size_t>(assignment[static_cast<size_t>(vertex)])];
  };
  const GridLayout &owned = chosen(edge.from).owns[edge.output], &needed = chosen(edge.to).reads[edge.input];
  const auto key = std::tuple(owned.identity(), needed.identity(), edge.type);
  auto known = known_.find(key);
  if (known == known_.end()) {
    const ExchangeVolume volume = exchange_volume(owned, needed, node_of_device, edge.type);
    known = known_.emplace(key, KnownVolume{owned, needed, volume}).first;
  }
  return known->second.volume;
}

int PlanGraph::candidate(int vertex, const LayerStrategy& strategy) const {
  const auto replicates = [](const LayerStrategy& one) { return facts_of(one.sync).replicates; };
  const auto& list = candidates[static_cast<size_t>(vertex)];
  const auto found = std::ranges::find_if(list, [&](const Priced& candidate) {
    return candidate.strategy.config == strategy.config &&
           replicates(candidate.strategy) == replicates(strategy);
  });
  return found == list.end() ? -1 : static_cast<int>(found - list.begin());
}

std::vector<int> PlanGraph::assignment(const Network& network, const Strategy& strategy) const {
  std::vector<int> assignment;
  const RuleFinder rules(strategy);
  for (size_t v = 0; v < groups.size(); ++v) {
    const auto& first = network.nodes()[groups[v].nodes[0]];
    assignment.push_back(candidate(static_cast<int>(v), *rules.find(first)));
    ensure(assignment.back() >= 0, "the built-in strategies' layers are candidates");
  }
  return assignment;
}

Bytes PlanGraph::moved(const Edge& edge, const std::vector<int>& assignment) const {
  return {volume(edge, assignment).total.count * (edge.backward ? 2 : 1)};
}

Bytes PlanGraph::sent_bytes(const std::vector<int>& assignment) const {
  Bytes bytes;
  for (size_t v = 0; v < groups.size(); ++v) {
    const Priced& priced = candidates[v][static_cast<size_t>(assignment[v])];
    bytes += priced.sums_bytes + priced.sync_bytes;
  }
  for (const Edge& edge : edges) bytes += moved(edge, assignment);
  return bytes;
}

PlanGraph make_plan_graph(const Network& network, const PricingOptions& options, CostModel& costs,
                          std::vector<int> node_of_device) {
  return GraphMaker(network, options, costs, std::move(node_of_device)).run();
}

}  // namespace cortado::plan
