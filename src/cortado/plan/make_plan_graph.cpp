#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "cortado/base/error.h"
#include "cortado/parallel/layer_cut.h"
#include "cortado/plan/cost_the_same.h"
#include "cortado/plan/exchange_tables.h"
#include "cortado/plan/plan_graph.h"
#include "cortado/plan/search.h"
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

// A configuration by itself: what it costs and holds, whatever its neighbours take.
struct Alone {
  double seconds = 0;
  Bytes memory;
  double over_all = 0;  // by how much it exceeds the cheapest ones, over the whole net
  bool kept = false;    // a built-in strategy takes it, or one that is known to be good
};

// Equal groups, with what they have in common.
struct Kind {
  Group group;
  std::vector<ParallelConfig> configs;  // compact()
  int vertices = 0;
  // Where some configurations are left out: all of them.
  std::vector<ParallelConfig> all{};
  std::vector<Alone> alone{};
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
      graph_.built_in.push_back(built_in_strategy(name, network_, options_.devices));
    for (const Strategy& baseline : graph_.built_in) finders_.emplace_back(baseline);
    for (const Strategy& good : options_.good) good_.emplace_back(good);
    for (const Group& group : graph_.groups) kind_of_vertex_.push_back(kind_of(group));
    too_many(pairs_of(sizes())) ? make_of_some() : make();
    return std::move(graph_);
  }

 private:
  // Makes the graph of the kinds' configurations.
  void make() {
    graph_.costs = {};
    graph_.candidates.clear();
    graph_.edges.clear();
    graph_.omitted.clear();
    columns_.clear();
    price_kinds();
    for (size_t v = 0; v < graph_.groups.size(); ++v) add_vertex(v);
    for (size_t v = 0; v < graph_.groups.size(); ++v) add_edges(static_cast<int>(v));
    price_edges();
    forbid_unequal_sharers();
  }

  // Makes a graph of the candidates that may be part of a cheaper plan than the best one of a few. Where
  // these are too many, tries it with more; at last makes one of as many as the options let each kind keep.
  void make_of_some() {
    weigh_alone();
    constexpr size_t least_part = 8;
    for (size_t kept = std::max<size_t>(options_.kept_candidates / least_part, 1);;
         kept = std::min(2 * kept, options_.kept_candidates)) {
      for (Kind& kind : kinds_) keep_good_ones(kind, kept);
      if (graph_.costs.size() > 0 && pairs_of(sizes()).volumes > options_.most_tried_volumes) return;
      make();
      const Wider wider = keep_what_may_be_cheaper();
      if (wider == Wider::yes) make();
      if (wider != Wider::too_many || kept == options_.kept_candidates) return;
    }
  }

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

  // What strategies choose for the group.
  std::vector<ParallelConfig> configs_by(const std::vector<RuleFinder>& finders, const Group& group) const {
    const std::string& name = network_.nodes()[group.nodes[0]].name;
    std::vector<ParallelConfig> configs;
    for (const RuleFinder& finder : finders)
      if (const LayerStrategy* layer = finder.find(name)) configs.push_back(layer->config);
    return configs;
  }
  std::vector<ParallelConfig> baselines_of(const Group& group) const { return configs_by(finders_, group); }

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

  std::vector<size_t> sizes() const {
    std::vector<size_t> sizes;
    for (const Kind& kind : kinds_) sizes.push_back(kind.configs.size());
    return sizes;
  }

  // Pairs of candidates at the ends of edges, with so many of each kind.
  struct Pairs {
    double all = 0;
    double volumes = 0;  // that differ, each counted once for each device
  };
  Pairs pairs_of(const std::vector<size_t>& sizes) const {
    std::map<NodeIndex, size_t> kinds;  // by node of a group
    std::set<std::pair<size_t, size_t>> edges;
    Pairs pairs;
    for (size_t v = 0; v < graph_.groups.size(); ++v) {
      const size_t own = kind_of_vertex_[v];
      for (TensorIndex input : network_.nodes()[graph_.groups[v].nodes[0]].inputs) {
        const auto from = kinds.find(network_.tensors()[input].producer);
        if (from == kinds.end()) continue;
        const double of_edge = static_cast<double>(sizes[own]) * static_cast<double>(sizes[from->second]);
        pairs.all += of_edge;
        if (edges.emplace(from->second, own).second) pairs.volumes += of_edge * options_.devices;
      }
      for (NodeIndex node : graph_.groups[v].nodes) kinds[node] = own;
    }
    return pairs;
  }

  // Whether their costs would take too much memory, or too long to find out.
  bool too_many(const Pairs& pairs) const {
    return sizeof(double) * pairs.all > static_cast<double>(options_.most_tables.count) ||
           pairs.volumes > options_.most_volumes;
  }

  void price_alone(Kind& kind) {
    GroupPricer pricer(network_, kind.group, options_, costs_);
    for (const ParallelConfig& each : kind.all) {
      const GroupPricer::Ways ways = pricer.price_all_ways(with_devices(each));
      kind.alone.push_back({ways.summed.total().count, ways.summed.memory});
      if (ways.replicated)
        kind.alone.back().seconds = std::min(kind.alone.back().seconds, ways.replicated->total().count);
    }
  }

  // Finds out what every configuration is by itself.
  void weigh_alone() {
    for (Kind& kind : kinds_) kind.all = kind.configs;
    parallel_for_each(std::ssize(kinds_), costs_.concurrent() ? worth_threads : 0,
                      [&](int64_t k) { price_alone(kinds_[static_cast<size_t>(k)]); });
    std::map<std::string, double> excess;
    for (const Kind& kind : kinds_) {
      const double least = std::ranges::min(kind.alone, {}, &Alone::seconds).seconds;
      for (size_t c = 0; c < kind.all.size(); ++c)
        excess[kind.all[c].text()] += kind.vertices * (kind.alone[c].seconds - least);
    }
    for (Kind& kind : kinds_)
      for (size_t c = 0; c < kind.all.size(); ++c) kind.alone[c].over_all = excess.at(kind.all[c].text());
    for (size_t v = 0; v < graph_.groups.size(); ++v) {
      Kind& kind = kinds_[kind_of_vertex_[v]];
      for (const auto* finders : {&finders_, &good_}) {
        for (const ParallelConfig& config : configs_by(*finders, graph_.groups[v])) {
          const auto found = std::ranges::find(kind.all, compact(config));
          if (found != kind.all.end()) kind.alone[static_cast<size_t>(found - kind.all.begin())].kept = true;
        }
      }
    }
  }

  void keep_good_ones(Kind& kind, size_t most) const {
    std::vector<bool> kept(kind.all.size());
    const auto keep = [&](size_t count, auto&& value) {
      std::vector<size_t> order(kept.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::ranges::stable_sort(order, {}, value);
      for (size_t i = 0; i < std::min(count, order.size()); ++i) kept[order[i]] = true;
    };
    keep(most / 2, [&](size_t c) { return kind.alone[c].seconds; });
    keep(most / 2, [&](size_t c) { return kind.alone[c].over_all; });
    keep(most / 16, [&](size_t c) { return kind.alone[c].memory; });
    for (size_t c = 0; c < kept.size(); ++c) kept[c] = kept[c] || kind.alone[c].kept;
    keep_only(kind, kept);
  }

  void keep_only(Kind& kind, const std::vector<bool>& kept) const {
    kind.configs.clear();
    kind.omitted = infinity;
    for (size_t c = 0; c < kept.size(); ++c) {
      if (kept[c]) kind.configs.push_back(kind.all[c]);
      if (!kept[c]) kind.omitted = std::min(kind.omitted, kind.alone[c].seconds);
    }
  }

  // What a configuration of each kind may cost by itself in a plan that is cheaper than the best one of this
  // graph. Those that were left out move nothing in the bound.
  std::vector<double> most_of_cheaper_plans() const {
    std::vector<double> most(kinds_.size(), -infinity);
    if (std::ranges::all_of(graph_.omitted, [](double seconds) { return std::isinf(seconds); })) return most;
    const double known = search(graph_.costs).seconds;
    const auto least = min_marginals(with_free_candidates(graph_.costs, graph_.omitted));
    for (size_t v = 0; v < graph_.groups.size(); ++v) {
      if (std::isinf(graph_.omitted[v])) continue;
      double& of_kind = most[kind_of_vertex_[v]];
      of_kind = std::max(of_kind, graph_.omitted[v] + known - least[v].back());
    }
    return most;
  }

  enum class Wider { no, yes, too_many };
  // Lets every kind keep what may be part of a cheaper plan, too, unless that is too much.
  Wider keep_what_may_be_cheaper() {
    const std::vector<double> most = most_of_cheaper_plans();
    std::vector<std::vector<bool>> kept;
    std::vector<size_t> sizes;
    bool more = false;
    for (size_t k = 0; k < kinds_.size(); ++k) {
      const Kind& kind = kinds_[k];
      std::vector<bool>& of_kind = kept.emplace_back();
      auto next = kind.configs.begin();  // they are in the order of all
      for (size_t c = 0; c < kind.all.size(); ++c) {
        const bool is_kept = next != kind.configs.end() && *next == kind.all[c];
        if (is_kept) ++next;
        of_kind.push_back(is_kept || kind.alone[c].seconds < most[k]);
        more |= of_kind.back() && !is_kept;
      }
      sizes.push_back(static_cast<size_t>(std::ranges::count(of_kind, true)));
    }
    if (!more) return Wider::no;
    if (too_many(pairs_of(sizes))) return Wider::too_many;
    for (size_t k = 0; k < kinds_.size(); ++k) keep_only(kinds_[k], kept[k]);
    return Wider::yes;
  }

  void price_kinds() {
    constexpr double operations = 60'000;  // for a candidate, about
    double work = 0;
    for (const Kind& kind : kinds_) work += operations * static_cast<double>(kind.configs.size());
    struct Columns {
      std::vector<Column> reads, owns;
    };
    std::vector<Columns> columns(kinds_.size());
    parallel_for_each(std::ssize(kinds_), costs_.concurrent() ? work : 0, [&](int64_t k) {
      Kind& kind = kinds_[static_cast<size_t>(k)];
      GroupPricer pricer(network_, kind.group, options_, costs_);
      std::vector<Priced> priced, replicated;
      for (const ParallelConfig& config : kind.configs) {
        GroupPricer::Ways ways = pricer.price_all_ways(with_devices(config));
        priced.push_back(std::move(ways.summed));
        if (ways.replicated) replicated.push_back(std::move(*ways.replicated));
      }
      std::ranges::move(replicated, std::back_inserter(priced));
      const Candidates& all = kind.priced.emplace(std::move(priced));
      Columns& made = columns[static_cast<size_t>(k)];
      for (size_t i = 0; i < all[0].reads.size(); ++i)
        made.reads.push_back(column_of(all, &Priced::reads, i));
      for (size_t o = 0; o < all[0].owns.size(); ++o) made.owns.push_back(column_of(all, &Priced::owns, o));
    });
    for (size_t k = 0; k < kinds_.size(); ++k) {
      Kind& kind = kinds_[k];
      kind.reads.clear();
      kind.owns.clear();
      for (Column& column : columns[k].reads) kind.reads.push_back(number_of(columns_, std::move(column)));
      for (Column& column : columns[k].owns) kind.owns.push_back(number_of(columns_, std::move(column)));
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
    std::vector<size_t> number;  // of each edge's
    for (const PlanGraph::Edge& edge : graph_.edges) {
      const NodeIndex reader = graph_.groups[static_cast<size_t>(edge.to)].nodes[0];
      const Shape& shape = network_.tensors()[network_.nodes()[reader].inputs[edge.input]].shape;
      number.push_back(static_cast<size_t>(
          number_of(exchanges, {kind(edge.from).owns[edge.output], kind(edge.to).reads[edge.input],
                                edge.backward, shape, edge.type})));
    }
    const std::vector<CostGraph::Edge> priced =
        exchange_tables(columns_, exchanges, graph_.node_of_device, costs_);
    for (size_t e = 0; e < graph_.edges.size(); ++e) {
      CostGraph::Edge edge = priced[number[e]];
      edge.from = graph_.edges[e].from;
      edge.to = graph_.edges[e].to;
      graph_.costs.add_edge(std::move(edge));
    }
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
  std::vector<RuleFinder> finders_;     // of the built-in strategies
  std::vector<RuleFinder> good_;        // of the strategies that are known to be good
  std::map<NodeIndex, int> vertex_of_;  // node to vertex
  std::vector<Kind> kinds_;
  std::vector<size_t> kind_of_vertex_;
  std::vector<Column> columns_;
};

}  // namespace

PlanGraph make_plan_graph(const Network& network, const PricingOptions& options, CostModel& costs,
                          std::vector<int> node_of_device) {
  return GraphMaker(network, options, costs, std::move(node_of_device)).run();
}

}  // namespace cortado::plan
