#include "cortado/measure/algorithms.h"

#include <algorithm>
#include <fmt/format.h>
#include <sstream>

#include "cortado/base/error.h"
#include "cortado/cost/analytic.h"
#include "cortado/kernels/kernel.h"
#include "cortado/kernels/lowering/cost.h"
#include "cortado/kernels/select.h"
#include "cortado/layers/problem.h"
#include "cortado/measure/job_machine.h"

namespace cortado {
namespace {

constexpr double far_slower = 1.5;  // times the prediction of the best lowering: not measured
// What is quick is also easily disturbed, for some rounds on end.
bool is_quick(Seconds best) { return best.count < 0.02; }
int rounds(Algorithms::Effort effort, Seconds best) {
  if (effort == Algorithms::Effort::quick) return 2;
  return is_quick(best) ? 16 : 8;
}
constexpr double hopeless = 1.5;
// A contender that took more than this many times the best one so far is not measured in this round.
// Measurements differ by a tenth, so most rounds take the close ones; now and then slower ones get a chance.
double out_of_reach(int round, Seconds best) {
  if (round < (is_quick(best) ? 4 : 2)) return is_quick(best) ? 2 : 1.3;
  return is_quick(best) && round % 4 == 0 ? hopeless : 1.1;
}

bool is_lowering(const Algorithm& algorithm) { return !algorithm.first_type.empty(); }

// The type-1 lowering by the same library, which all types are where windows are single positions.
const Algorithm& first_lowering(const AlgorithmTable& table, const Algorithm& other) {
  return *std::ranges::find(table.algorithms, other.first_type, &Algorithm::name);
}

}  // namespace

bool is_convolution(const Task& task) { return task.layer().products() == Products::convolution; }

// Predicts each algorithm, and marks those that the model leaves out.
void Algorithms::rank(const Task& task, AlgorithmTable& table) const {
  const Device& device = times_.machine().device(0);
  const double passes = 1.0 + any_wanted(task.input_gradients) + any_wanted(task.parameter_gradients);
  double best = 0;
  for (Algorithm& algorithm : table.algorithms) {
    const auto pass = lowering::predicted_pass(task, algorithm.name, device.peak, device.memory_bandwidth);
    algorithm.predicted = {passes * pass.value_or(Seconds{}).count};
    if (!is_lowering(algorithm) || !algorithm.refusal.empty()) continue;
    if (best == 0 || algorithm.predicted.count < best) best = algorithm.predicted.count;
  }
  // A lowering that copies nothing is BLAS on the tensors as they lie: the same in each type.
  const auto direct = lowering::predicted_pass(task, "implicit-gemm", device.peak, device.memory_bandwidth)
                          .value_or(Seconds{});
  const auto copies_nothing = [&](const Algorithm& algorithm) {
    return algorithm.predicted == Seconds{passes * direct.count};
  };
  for (size_t i = 0; i < table.algorithms.size(); ++i) {
    Algorithm& algorithm = table.algorithms[i];
    if (!is_lowering(algorithm) || !algorithm.refusal.empty() || static_cast<int>(i) == table.listed)
      continue;
    const Algorithm& first = first_lowering(table, algorithm);
    if (algorithm.predicted.count > far_slower * best) {
      algorithm.pruned = "far slower by the model";
    } else if (&algorithm != &first && first.refusal.empty() && copies_nothing(algorithm) &&
               copies_nothing(first)) {
      algorithm.pruned = "the same as " + first.name;
    }
  }
}

Algorithms::Contest Algorithms::contest(const Task& task, AlgorithmTable& table) {
  Contest contest{task, {}, {}};
  for (Algorithm& algorithm : table.algorithms) {
    if (!algorithm.refusal.empty() || !algorithm.pruned.empty()) continue;
    if (const TaskTime* known = times_.known(task, algorithm.name)) {
      algorithm.time = *known;
    } else {
      contest.contenders.push_back(&algorithm);
    }
  }
  return contest;
}

// Measures once more each contender that may still win, and keeps its best time.
void Algorithms::take_turn(int round, Effort effort, Contest& contest) {
  auto& [task, contenders, best] = contest;
  const auto within = [&, &best = best](double factor) {
    return [&best, factor](const Algorithm* contender) {
      return !contender->time || contender->time->total().count <= factor * best.count;
    };
  };
  for (Algorithm* contender : contenders) {
    if (!within(out_of_reach(round, best))(contender)) continue;
    const TaskTime time = times_.measure(task, contender->name, 1);
    if (!contender->time || time.total() < contender->time->total()) contender->time = time;
    if (best == Seconds{} || contender->time->total() < best) best = contender->time->total();
    if (effort == Effort::thorough) times_.keep(task, contender->name, *contender->time);
  }
  const bool decided = round >= 2 && std::ranges::count_if(contenders, within(hopeless)) == 1;
  if (decided || round + 1 >= rounds(effort, best)) contenders.clear();
}

// Puts the algorithms into the first rank's order (ranks with other processors have another one), and refuses
// what another rank refuses.
void Algorithms::agree(std::vector<Algorithm>& algorithms) const {
  Communicator& job = times_.job();
  if (job.size() == 1) return;
  std::string names;
  for (const Algorithm& algorithm : algorithms) names += algorithm.name + "\n";
  std::istringstream first(from_first_rank(job, names));
  std::vector<Algorithm> ordered;
  std::vector<std::byte> refused;
  for (std::string name; std::getline(first, name);) {
    auto own = std::ranges::find(algorithms, name, &Algorithm::name);
    ensure(own != algorithms.end(), "all ranks know the same implementations");
    refused.push_back(std::byte{!own->refusal.empty()});
    ordered.push_back(std::move(*own));
  }
  const std::vector<std::vector<std::byte>> all = job.all_to_all_bytes(refused);
  for (size_t rank = 0; rank < all.size(); ++rank)
    for (size_t i = 0; i < ordered.size(); ++i)
      if (all[rank][i] == std::byte{1} && ordered[i].refusal.empty())
        ordered[i].refusal = fmt::format("rank {} cannot", rank);
  algorithms = std::move(ordered);
}

// The index of what runs unasked at the first rank, or of the first that accepts; -1 where none does. In bf16
// that need not be the first of the list: kernels for bf16 tensors go before those that convert them.
int Algorithms::listed(const Task& task, const std::vector<Algorithm>& algorithms) const {
  std::string name = select_kernel(task, kernels_).implementation;
  if (times_.job().size() > 1) name = from_first_rank(times_.job(), name);
  const auto accepts = [](const Algorithm& algorithm) { return algorithm.refusal.empty(); };
  auto found = std::ranges::find(algorithms, name, &Algorithm::name);
  if (found == algorithms.end() || !accepts(*found)) found = std::ranges::find_if(algorithms, accepts);
  return found == algorithms.end() ? -1 : static_cast<int>(found - algorithms.begin());
}

AlgorithmTable Algorithms::ranked(const Task& task) const {
  AlgorithmTable table;
  table.flops = forward_flops(task).count;
  for (const Implementation& implementation : implementations_of(task, kernels_)) {
    const KernelOffer offer = implementation.make(task);
    Algorithm algorithm{.name = implementation.name,
                        .first_type = implementation.first_type,
                        .refusal = offer.refusal,
                        .pruned = "",
                        .predicted = {},
                        .scratch = {},
                        .time = {}};
    if (offer.kernel) algorithm.scratch = offer.kernel->scratch_bytes();
    table.algorithms.push_back(std::move(algorithm));
  }
  agree(table.algorithms);
  table.listed = listed(task, table.algorithms);
  rank(task, table);
  return table;
}

std::vector<AlgorithmTable> Algorithms::tables(const std::vector<Task>& tasks, Effort effort) {
  std::vector<AlgorithmTable> tables;
  for (const Task& task : tasks) tables.push_back(ranked(task));
  std::vector<Contest> contests;
  for (size_t i = 0; i < tasks.size(); ++i) contests.push_back(contest(tasks[i], tables[i]));
  const auto over = [](const Contest& contest) { return contest.contenders.empty(); };
  for (int round = 0; !std::ranges::all_of(contests, over); ++round)
    for (Contest& contest : contests)
      if (!over(contest)) take_turn(round, effort, contest);
  for (AlgorithmTable& table : tables)
    for (size_t i = 0; i < table.algorithms.size(); ++i) {
      const auto& time = table.algorithms[i].time;
      if (!time) continue;
      if (table.pick < 0 || time->total() < table.algorithms[static_cast<size_t>(table.pick)].time->total())
        table.pick = static_cast<int>(i);
    }
  return tables;
}

TaskTime Algorithms::fastest(const Task& task) {
  const AlgorithmTable found = tables({task}, Effort::quick).front();
  if (found.pick < 0) return times_.measure(task, "");
  return *found.algorithms[static_cast<size_t>(found.pick)].time;
}

std::vector<NetConvolution> convolutions_of(const Network& network, const Program& program,
                                            Algorithms& algorithms) {
  std::vector<Task> tasks;
  std::vector<std::vector<std::string>> layers;
  std::vector<std::string> problems;
  for (const Work& work : program.works) {
    if (work.kind != Work::Kind::compute || !is_convolution(work.task)) continue;
    const std::string problem = problem_of(work.task);
    const auto known = static_cast<size_t>(std::ranges::find(problems, problem) - problems.begin());
    if (known == problems.size()) {
      problems.push_back(problem);
      tasks.push_back(work.task);
      layers.emplace_back();
    }
    layers[known].push_back(name_of(work, network));
  }
  std::vector<AlgorithmTable> tables = algorithms.tables(tasks);
  std::vector<NetConvolution> convolutions;
  for (size_t i = 0; i < tasks.size(); ++i)
    convolutions.push_back({std::move(layers[i]), std::move(tasks[i]), std::move(tables[i])});
  return convolutions;
}

MeasuredConvolutions measure_convolutions(const Network& network, CompileOptions options, JobTimes& times) {
  Algorithms algorithms(times, options.kernels.kernels);
  const Program program = compile(network, std::move(options)).program;
  MeasuredConvolutions measured{convolutions_of(network, program, algorithms),
                                times.machine().device(0).peak};
  times.save();
  return measured;
}

}  // namespace cortado
