#include "cortado/tune/recompute.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

#include "cortado/base/error.h"
#include "cortado/program/held_memory.h"
#include "cortado/sim/step_seconds.h"
#include "cortado/tune/recompute_model.h"

namespace cortado {
namespace {

// How often a choice is made anew for a smaller arena, where the arena of the last one is larger than what
// lives in it at a time.
constexpr int most_attempts = 12;

std::string mebibytes(Bytes bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes.count) / (1 << 20));
}

NodeStrategies with_all(NodeStrategies strategies, bool recompute) {
  for (LayerStrategy& strategy : strategies) strategy.recompute = recompute;
  return strategies;
}

// A job's choices, beginning with none recomputed.
class Chooser {
 public:
  Chooser(const SimulatedMachine& machine, const Network& network, const Strategy& start, int history,
          const std::string& where)
      : machine_(machine),
        network_(network),
        history_(history),
        strategy_(start),
        nodes_(with_all(resolve(start, network, machine.graph.devices(), where), false)) {
    set_recompute(strategy_, network_, IndexedVector<NodeIndex, bool>(network_.nodes().size(), false));
    none_ = judged({});
    Schedule whole = strategy_.schedule;
    whole.halves = false;
    const std::vector<Program> programs = compiled(nodes_, whole);
    const auto largest = std::ranges::max_element(programs, {}, [&](const Program& program) {
      return held_memory(program, network_, history_).total();
    });
    program_ = *largest;
    const HeldMemory held = held_memory(program_, network_, history_);
    beside_arena_ = {held.total().count - held.arena.count};
    make_model();
  }

  const RecomputedStrategy& none() const { return none_; }
  Bytes beside_arena() const { return beside_arena_; }
  const RecomputeModel& model() const { return *model_; }

  // Nothing: no choice that is known fits.
  std::optional<RecomputedStrategy> within(Bytes limit) {
    if (none_.memory <= limit) return none_;
    const Bytes arena{limit.count - beside_arena_.count};
    Seconds bound = model_->bound(arena);
    Bytes tried = arena;
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
      const auto choice = model_->cheapest(tried);
      if (!choice) break;
      if (attempt == 0 && choice->cheapest && model_->is_chain()) bound = std::max(bound, choice->added);
      RecomputedStrategy found = judged(choice->works);
      found.added = choice->added;
      found.lower_bound = bound;
      if (found.memory <= limit) return found;
      tried.count -= std::max<int64_t>(found.memory.count - limit.count, tried.count / 100);
    }
    return std::nullopt;
  }

 private:
  std::vector<Program> compiled(const NodeStrategies& nodes, const Schedule& schedule) {
    return compile_job(network_,
                       {.strategies = nodes, .schedule = schedule, .ranks = machine_.graph.devices()},
                       machine_.kernels);
  }

  void make_model() {
    const Placement all = place(network_, with_all(nodes_, true), machine_.graph.devices());
    const std::vector<int> node_of_rank = machine_.graph.node_of_devices();
    StepSeconds seconds(program_, machine_.costs, node_of_rank);
    IndexedVector<WorkIndex, bool> may_drop;
    IndexedVector<WorkIndex, Seconds> forward(program_.works.size());
    for (const Work& work : program_.works)
      may_drop.push_back(all.operations[work.operations.back()].recomputed);
    for (const Step& step : program_.steps)
      if (step.runs(Pass::forward)) forward[step.work()] += seconds.of(step);
    model_.emplace(program_, may_drop, forward);
  }

  // The strategy that runs these works again, compiled and simulated.
  RecomputedStrategy judged(const std::vector<WorkIndex>& works) {
    RecomputedStrategy result{.strategy = strategy_};
    IndexedVector<NodeIndex, bool> again(network_.nodes().size(), false);
    for (WorkIndex work : works)
      for (NodeIndex node : program_.works[work].nodes)
        again[node] = program_.works[work].is_layer() || again[node];
    NodeStrategies nodes = nodes_;
    for (NodeIndex node : indices(nodes)) nodes[node].recompute = again[node];
    result.layers = static_cast<int>(std::ranges::count(again, true));
    if (result.layers > 0) set_recompute(result.strategy, network_, again);
    const SimulatedJob job = simulate_job(network_, nodes, strategy_.schedule, machine_);
    for (const Program& program : job.programs)
      result.memory = std::max(result.memory, held_memory(program, network_, history_).total());
    result.iteration = job.simulation.iteration;
    result.before = works.empty() ? result.memory : none_.memory;
    result.iteration_before = works.empty() ? result.iteration : none_.iteration;
    return result;
  }

  const SimulatedMachine& machine_;
  const Network& network_;
  const int history_;
  Strategy strategy_;
  const NodeStrategies nodes_;
  RecomputedStrategy none_;
  Program program_;  // of the rank that holds most
  Bytes beside_arena_;
  std::optional<RecomputeModel> model_;
};

}  // namespace

std::string RecomputedStrategy::text() const {
  std::string text = fmt::format("{} layers computed again: {} in place of {}", layers, mebibytes(memory),
                                 mebibytes(before));
  if (layers == 0) return text;
  text += fmt::format("; {:.3f} ms in place of {:.3f} ms (simulated), {:.3f} ms of computing added",
                      1e3 * iteration.count, 1e3 * iteration_before.count, 1e3 * added.count);
  const double gap = added.count > 0 ? 1 - lower_bound.count / added.count : 0;
  return text + (gap > 1e-9 ? fmt::format(", at most {:.0f} % too much", 100 * gap) : ", the least there is");
}

RecomputedStrategy recompute_within(Bytes limit, const SimulatedMachine& machine, const Network& network,
                                    const Strategy& start, int history, const std::string& where) {
  Chooser chooser(machine, network, start, history, where);
  if (auto found = chooser.within(limit)) return *found;
  const Bytes least = chooser.model().least() + chooser.beside_arena();
  throw UserError(
      fmt::format("{}: a rank would hold more than {} whatever is computed again: {} without, about {} at "
                  "least, of which "
                  "{} are parameters, gradients and history; give more memory, a smaller batch or more ranks",
                  where, mebibytes(limit), mebibytes(chooser.none().memory), mebibytes(least),
                  mebibytes(chooser.beside_arena())));
}

std::vector<RecomputedStrategy> recompute_frontier(int most, const SimulatedMachine& machine,
                                                   const Network& network, const Strategy& start,
                                                   int history) {
  Chooser chooser(machine, network, start, history, "recomputation");
  const int64_t least = (chooser.model().least() + chooser.beside_arena()).count;
  const int64_t all = chooser.none().memory.count;
  std::vector<RecomputedStrategy> frontier;
  for (int i = 0; i < most; ++i) {
    const int64_t limit = least + (all - least) * i / std::max(1, most - 1);
    auto point = chooser.within({limit});
    if (!point) continue;
    if (!frontier.empty() && frontier.back().memory >= point->memory) continue;
    frontier.push_back(std::move(*point));
  }
  return frontier;
}

}  // namespace cortado
