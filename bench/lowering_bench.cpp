// The figures of Caffe con Troll on this machine (docs/results/lowering.md):
//   lowering_bench figure2          products of BLAS over the images lowered together, on 1 and on all
//   threads lowering_bench figure3 [TYPE]   the convolutions of caffenet over partitions of the batch and
//   images at a time lowering_bench figure8          types 1, 2 and 3 over input and output channels, and
//   their ratio lowering_bench pick [CASES [FIRST]]   the optimizer's pick against the best of all, on random
//   convolutions
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <random>
#include <string>

#include "cortado/base/parallel_for.h"
#include "cortado/base/version.h"
#include "cortado/kernels/lowering/make_lowering.h"
#include "cortado/measure/algorithms.h"

#include "bench/match.h"
#include "bench/square_convolution.h"

namespace cortado {

std::string_view version() { return "lowering_bench"; }

namespace {

using lowering::Blas;
using lowering::LoweringOptions;
using lowering::LoweringType;

constexpr LoweringType types[] = {LoweringType::one, LoweringType::two, LoweringType::three};
constexpr void (Kernel::*passes[])(const Arguments&) = {&Kernel::forward, &Kernel::backward_weights,
                                                        &Kernel::backward};

double gflop_of(const Task& task) {
  return 1e-9 * task.layer().forward_flops(task.inputs, task.outputs).count;
}

// Seconds of forward alone and of all passes, of each offer.
struct Times {
  std::vector<double> forward, all;
};
Times times_of(Match& match, int repetitions) {
  Times times;
  for (const auto pass : passes) {
    const std::vector<double> of_pass = match.times(pass, repetitions);
    if (times.forward.empty()) times.forward = of_pass;
    times.all.resize(of_pass.size());
    for (size_t i = 0; i < of_pass.size(); ++i) times.all[i] += of_pass[i];
  }
  return times;
}

// conv3 of caffenet: 169 windows of 9 * 256 numbers an image, 384 outputs.
void figure2() {
  constexpr int64_t windows = 169, depth = 9 * 256, columns = 384, most = 256;
  HugeBuffer a(most * windows * depth), b(depth * columns), c(most * windows * columns);
  const int all = compute_threads();
  std::vector<Blas> libraries;
  std::string head = "| images | lowered MiB |", line = "|--:|--:|";
  for (const Blas blas : {Blas::openblas, Blas::blis, Blas::onednn}) {
    if (!refusal_of(blas).empty()) continue;
    libraries.push_back(blas);
    head += fmt::format(" {}, 1 thread | {} threads |", name_of(blas), all);
    line += "--:|--:|";
  }
  fmt::print("{}\n{}\n", head, line);
  for (int64_t images = 1; images <= most; images *= 2) {
    std::vector<double> rates;
    for (const Blas blas : libraries)
      for (const int threads : {1, all}) {
        set_compute_threads(threads);
        double best = 1e300;
        for (int i = 0; i < 3 + 32 / images; ++i)
          best = std::min(best, seconds_of([&] {
                            multiply(blas, images * windows, columns, depth, {a.data(), depth},
                                     {b.data(), columns}, 0, c.data(), columns);
                          }));
        rates.push_back(2e-9 * static_cast<double>(images * windows * columns * depth) / best);
      }
    fmt::print("| {} | {:.1f} | {:.1f} |\n", images,
               static_cast<double>(images * windows * depth * 4) / (1 << 20), fmt::join(rates, " | "));
    std::fflush(stdout);
  }
}

// Milliseconds of the settings, one line each.
void figure3_of(LoweringType type, int64_t batch, int threads, const std::vector<LoweringOptions>& settings) {
  std::vector<std::string> lines(settings.size());
  std::vector<double> sums(settings.size());
  std::vector<int64_t> scratch(settings.size());
  for (const SquareConvolution& layer : convolutions_of_caffenet(batch)) {
    const Task task = task_of(layer);
    std::vector<KernelOffer> offers;
    for (const LoweringOptions& options : settings) offers.push_back(make_lowering(task, type, options));
    for (size_t i = 0; i < offers.size(); ++i)
      scratch[i] = std::max(scratch[i], offers[i].kernel->scratch_bytes().count);
    Match match(task, std::move(offers));
    const Times times = times_of(match, 2);
    for (size_t i = 0; i < settings.size(); ++i) {
      lines[i] += fmt::format(" {:.0f} |", 1e3 * times.all[i]);
      sums[i] += times.all[i];
    }
  }
  for (size_t i = 0; i < settings.size(); ++i)
    fmt::print("| {} | {} | {} |{} {:.0f} | {:.1f} |\n", threads, settings[i].partitions, settings[i].samples,
               lines[i], 1e3 * sums[i], static_cast<double>(scratch[i]) / (1 << 20));
  std::fflush(stdout);
}

void figure3(LoweringType type) {
  constexpr int64_t batch = 64;
  const int all = compute_threads();
  fmt::print(
      "{}, batch {}, ms of forward and both backward passes\n\n| threads | partitions | images at a time |",
      name_of(type), batch);
  for (const SquareConvolution& layer : convolutions_of_caffenet(batch)) fmt::print(" {} |", layer.name);
  fmt::print(" all | scratch MiB |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  for (const int threads : {1, all}) {
    set_compute_threads(threads);
    std::vector<LoweringOptions> settings;
    for (int partitions = 1; partitions <= threads; partitions *= 2)
      for (const int64_t samples : {1, 2, 4, 8, 16, 64})
        settings.push_back({.partitions = partitions,
                            .samples = std::min(samples, batch / partitions),
                            .memory = {int64_t{4} << 30}});
    figure3_of(type, batch, threads, settings);
  }
}

void compare_types(const SquareConvolution& layer) {
  const Task task = task_of(layer);
  std::vector<KernelOffer> offers;
  for (const LoweringType type : types) offers.push_back(make_lowering(task, type));
  Match match(task, std::move(offers));
  const Times times = times_of(match, 6);
  fmt::print("| {} | {} | {:.3g} |", layer.channels, layer.outputs,
             static_cast<double>(layer.channels) / static_cast<double>(layer.outputs));
  for (double one : times.forward) fmt::print(" {:.2f} |", 1e3 * one);
  fmt::print(" {:.2f} |", times.forward[0] / times.forward[2]);
  for (double one : times.all) fmt::print(" {:.2f} |", 1e3 * one);
  fmt::print(" {:.2f} | {:.1f} |\n", times.all[0] / times.all[2],
             3 * gflop_of(task) / *std::ranges::min_element(times.all));
  std::fflush(stdout);
}

void figure8() {
  // n = 13, k = 3 as conv3 to conv5 of AlexNet.
  const auto layer = [](int64_t d, int64_t o) { return SquareConvolution{"", 32, d, o, 13, 3, 1, 1, 1}; };
  const auto head = [](const char* title) {
    fmt::print(
        "\n{}; ms\n\n| d | o | d/o | forward 1 | 2 | 3 | 1/3 | all passes 1 | 2 | 3 | 1/3 | best GFLOP/s |\n"
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        title);
  };
  head("input channels d");
  for (int64_t d = 4; d <= 1024; d *= 2) compare_types(layer(d, 256));
  head("output channels o");
  for (int64_t o = 4; o <= 1024; o *= 2) compare_types(layer(256, o));
  head("their ratio");
  for (int64_t d = 8; d <= 2048; d *= 2) compare_types(layer(d, 16384 / d));
}

constexpr double close = 0.03;  // of the best

SquareConvolution random_layer(unsigned seed) {
  std::mt19937 engine(seed);
  const auto draw = [&](std::vector<int64_t> values) { return values[engine() % values.size()]; };
  constexpr double most = 0.3;  // GFLOP, so that many can be measured
  for (;;) {
    SquareConvolution layer{"",
                            draw({1, 2, 4, 8, 16, 32}),
                            draw({3, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512}),
                            draw({8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512}),
                            draw({7, 8, 13, 14, 17, 28, 35, 56, 112}),
                            draw({1, 1, 3, 3, 3, 3, 5, 7}),
                            draw({1, 1, 1, 2}),
                            0,
                            1};
    layer.pad = draw({0, layer.kernel / 2, layer.kernel / 2});
    if (layer.channels > 3 && engine() % 8 == 0) layer.group = 2;
    if (layer.kernel > layer.extent + 2 * layer.pad) continue;
    const double gflop = gflop_of(task_of(layer));
    if (gflop <= most && gflop > 0.005) return layer;
  }
}

// All algorithms of each, in turns over all of them, those that the model leaves out too, unless they are
// another's very own: the best of many rounds, the optimizer's among them, since what a kernel takes may
// change for minutes where the host moves processors.
using AlgorithmTimes = std::map<std::string, double>;
std::vector<AlgorithmTimes> times_of_all(const std::vector<Task>& tasks,
                                         const std::vector<AlgorithmTable>& tables) {
  constexpr int rounds = 12;
  const auto hopeless = [](int round) { return round < 2 ? 1.5 : 1.15; };
  std::vector<AlgorithmTimes> all(tasks.size());
  for (size_t i = 0; i < tasks.size(); ++i)
    for (const Algorithm& algorithm : tables[i].algorithms)
      if (algorithm.time) all[i][algorithm.name] = algorithm.time->total().count;
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < tasks.size(); ++i) {
      AlgorithmTimes& times = all[i];
      double best = 1e300;
      for (const auto& [name, time] : times) best = std::min(best, time);
      for (const Algorithm& algorithm : tables[i].algorithms) {
        if (!algorithm.refusal.empty() || algorithm.pruned.starts_with("the same")) continue;
        const auto known = times.find(algorithm.name);
        if (round > 0 && known != times.end() && known->second > hopeless(round) * best) continue;
        const double total = time_task(tasks[i], algorithm.name).total().count;
        const auto at = times.try_emplace(algorithm.name, total).first;
        at->second = std::min(at->second, total);
        best = std::min(best, total);
      }
    }
  return all;
}

// How much longer one algorithm takes than another: the median of the ratios of runs in pairs, by turns, so
// that minutes in which everything is slow count for neither.
double run_off(const Task& task, const std::string& one, const std::string& other) {
  constexpr int pairs = 21;
  std::vector<double> ratios;
  for (int i = 0; i < pairs; ++i) {
    const bool one_first = i % 2 == 0;
    const double first = time_task(task, one_first ? one : other).total().count;
    const double second = time_task(task, one_first ? other : one).total().count;
    ratios.push_back(one_first ? first / second : second / first);
  }
  std::ranges::nth_element(ratios, ratios.begin() + pairs / 2);
  return ratios[pairs / 2] - 1;
}

// What the optimizer knew of the algorithm that it should have picked.
std::string why_not(const Algorithm& picked, const Algorithm& best) {
  if (!best.time) return " (" + best.pruned + ")";
  return fmt::format(" (it took them for {:.2f} and {:.2f} ms)", 1e3 * picked.time->total().count,
                     1e3 * best.time->total().count);
}

void pick(int cases, unsigned first) {
  setenv("CORTADO_CACHE", "", 1);
  unsetenv("HOME");
  unsetenv("XDG_CACHE_HOME");  // nothing is kept
  const std::unique_ptr<Communicator> job = make_single_communicator();
  JobTimes job_times(*job);
  Algorithms algorithms(job_times);
  std::map<std::string, int> picks, bests;
  std::vector<double> losses, run_offs, list_losses;
  int pruned_best = 0;
  std::vector<SquareConvolution> layers;
  std::vector<Task> tasks;
  for (unsigned seed = first; seed < first + static_cast<unsigned>(cases); ++seed) {
    layers.push_back(random_layer(seed));
    tasks.push_back(task_of(layers.back()));
  }
  const std::vector<AlgorithmTable> tables = algorithms.tables(tasks);
  const std::vector<AlgorithmTimes> all = times_of_all(tasks, tables);
  for (size_t i = 0; i < tasks.size(); ++i) {
    const SquareConvolution& layer = layers[i];
    const AlgorithmTable& table = tables[i];
    const Algorithm& picked = table.algorithms[static_cast<size_t>(table.pick)];
    const AlgorithmTimes& times = all[i];
    const auto best = std::ranges::min_element(times, {}, [](const auto& entry) { return entry.second; });
    const double loss = times.at(picked.name) / best->second - 1;
    losses.push_back(loss);
    run_offs.push_back(loss > close ? std::max(0.0, run_off(tasks[i], picked.name, best->first)) : loss);
    const std::string& listed = table.algorithms[static_cast<size_t>(table.listed)].name;
    const double list_times = times.at(listed) / best->second;
    list_losses.push_back(list_times - 1);
    ++picks[picked.name];
    ++bests[best->first];
    const Algorithm& fastest = *std::ranges::find(table.algorithms, best->first, &Algorithm::name);
    pruned_best += !fastest.pruned.empty();
    fmt::print(
        "{:4} {}x{}x{}x{} to {} k{} s{} p{} g{}: {} {:.2f} ms, best {} {:.2f} ms, {:+.1f} %{}{}\n", first + i,
        layer.batch, layer.channels, layer.extent, layer.extent, layer.outputs, layer.kernel, layer.stride,
        layer.pad, layer.group, picked.name, 1e3 * times.at(picked.name), best->first, 1e3 * best->second,
        100 * loss,
        loss > close ? fmt::format("{}, {:+.1f} % in pairs", why_not(picked, fastest), 100 * run_offs.back())
                     : "",
        list_times > 2 ? fmt::format("; {}, first of the list, {:.1f} times as long", listed, list_times)
                       : "");
  }
  const auto summary = [](const char* what, std::vector<double> values) {
    std::ranges::sort(values);
    const auto within = [&](double limit) {
      return std::ranges::count_if(values, [&](double v) { return v <= limit; });
    };
    double sum = 0;
    for (double value : values) sum += value;
    fmt::print("{}: {} of {} within 3 % of the best, {} within 10 %, mean {:.2f} %, worst {:.1f} %\n", what,
               within(close), values.size(), within(0.1), 100 * sum / static_cast<double>(values.size()),
               100 * values.back());
  };
  summary("pick", losses);
  summary("pick, the others compared in pairs", run_offs);
  summary("first of the list", list_losses);
  fmt::print("picked {}, best {}; the best was left out by the model {} times\n", picks, bests, pruned_best);
}

}  // namespace
}  // namespace cortado

int main(int count, char** arguments) {
  const std::string mode = count > 1 ? arguments[1] : "";
  const int number = count > 2 ? std::atoi(arguments[2]) : 0;
  fmt::print("{} threads\n", cortado::compute_threads());
  if (mode == "figure2") {
    cortado::figure2();
  } else if (mode == "figure3") {
    cortado::figure3(static_cast<cortado::lowering::LoweringType>(number > 0 ? number : 1));
  } else if (mode == "figure8") {
    cortado::figure8();
  } else if (mode == "pick") {
    cortado::pick(number > 0 ? number : 20, count > 3 ? static_cast<unsigned>(std::atoi(arguments[3])) : 0);
  } else {
    fmt::print(stderr, "lowering_bench: figure2, figure3 [TYPE], figure8 or pick [CASES [FIRST]]\n");
    return 2;
  }
}
