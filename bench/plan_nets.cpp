// What planning the zoo's nets takes: configurations, time to price them, time of the search, peak memory;
// beside it what others took. plan_nets [NET [DEVICES [DIMENSIONS]]], from the folder that has models/ and
// machines/.
//
// Each case has a process of its own, for its memory, and is repeated for a second; the fastest counts.
//
// paper: layer-wise parallelism (Jia et al., 2018), Table 3, its search alone, costs known, candidates
// without r. PaSE: Elango, "PaSE: Parallelization Strategies for Efficient DNN Training" (IPDPS 2021), its
// search of Inception-v3; the figures are those that the report on it gives for 16 and 64 devices.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <functional>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "cortado/base/error.h"
#include "cortado/machine/file.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"
#include "cortado/plan/plan_on_machine.h"
#include "cortado/report/plan_report.h"

namespace {

using namespace cortado;

struct Case {
  std::string net;
  Shape sample;
  int devices = 1, per_device = 32;  // samples
  std::string paper, pase;
  std::string dimensions{plan::all_dimensions};
};

Network load(const Case& one, int64_t samples) {
  const NetFile file = read_net("models/" + one.net + "/train_val.prototxt");
  return load_network(file, net_state(Phase::train),
                      [&](const LayerDeclaration& layer) {
                        std::vector<Shape> shapes(layer.tops.size(), Shape{samples});
                        shapes[0] = Shape{samples};
                        for (int64_t extent : one.sample.extents()) shapes[0].append(extent);
                        // A volume has a label at each voxel.
                        if (one.sample.rank() == 4 && shapes.size() > 1)
                          shapes[1] = Shape{samples, one.sample[1], one.sample[2], one.sample[3]};
                        return shapes;
                      })
      .network;
}

double seconds_of(const std::function<void()>& work, double& processor) {
  const auto begin = std::chrono::steady_clock::now();
  const std::clock_t ticks = std::clock();
  work();
  processor = static_cast<double>(std::clock() - ticks) / CLOCKS_PER_SEC;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void measure(const Case& one) {
  const DeviceGraph machine = load_machine("lassen");
  const auto with_batch = [&one](int64_t samples) { return load(one, samples); };
  const int64_t batch = int64_t{one.per_device} * one.devices;
  const Network network = with_batch(batch);
  const plan::PlanRequest request{
      .network = network, .batch = batch, .with_batch = with_batch, .dimensions = one.dimensions};
  plan::Plan best;
  double least = 0, least_processor = 0, all = 0;
  for (int run = 0; run == 0 || (all < 1 && run < 50); ++run) {
    plan::Plan found;
    double processor = 0;
    const double seconds =
        seconds_of([&] { found = plan::plan_on_machine(request, machine, one.devices); }, processor);
    all += seconds;
    const double counted = (found.pricing_took + found.search.seconds).count;
    if (run > 0 && counted >= (best.pricing_took + best.search.seconds).count) continue;
    best = std::move(found);
    least = seconds;
    least_processor = processor;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("{:<13} {:>7} {:>6} {:>9} {:>10.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>8.0f}  {:>8} {:>8}  {}\n",
             one.net, one.devices, best.groups.size(), best.candidates, 1e3 * best.pricing_took.count,
             1e3 * best.search.seconds.count, 1e3 * least, 1e3 * least_processor,
             static_cast<double>(usage.ru_maxrss) / 1024, one.paper, one.pase,
             best.proven ? "optimal"
                         : fmt::format("at most {} above the optimum",
                                       percent_above(best.seconds, best.lower_bound)));
  std::fflush(stdout);
}

void measure_apart(const Case& one) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    try {
      measure(one);
    } catch (const UserError& error) {
      fmt::print("{:<13} {:>7} refused: {}\n", one.net, one.devices, error.what());
    }
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) fmt::print("{:<13} {:>7} ended with status {}\n", one.net, one.devices, status);
}

}  // namespace

int main(int count, char** words) {
  const std::string only = count > 1 ? words[1] : "";
  const int devices = count > 2 ? std::atoi(words[2]) : 0;
  const std::vector<Case> cases = {
      {"lenet", {1, 28, 28}, 4, 32, "10", ""},
      {"alexnet", {3, 224, 224}, 4, 32, "20", ""},
      {"vgg-16", {3, 224, 224}, 4, 32, "100", ""},
      {"inception-v3", {3, 299, 299}, 4, 32, "400", ""},
      {"resnet-50", {3, 224, 224}, 4, 32, "", ""},
      {"alexnet", {3, 224, 224}, 16, 32, "", ""},
      {"vgg-16", {3, 224, 224}, 16, 32, "", ""},
      {"inception-v3", {3, 299, 299}, 16, 32, "", "39800"},
      {"resnet-50", {3, 224, 224}, 16, 32, "", ""},
      {"densenet-121", {3, 224, 224}, 16, 32, "", ""},
      {"u-net-3d", {1, 32, 128, 128}, 16, 1, "", ""},
      {"vgg-16", {3, 224, 224}, 64, 32, "", ""},
      {"inception-v3", {3, 299, 299}, 64, 32, "", "196000"},
      {"resnet-50", {3, 224, 224}, 64, 32, "", ""},
      {"densenet-121", {3, 224, 224}, 64, 32, "", ""},
      {"vgg-16", {3, 224, 224}, 256, 32, "", ""},
      {"inception-v3", {3, 299, 299}, 256, 32, "", ""},
      {"vgg-16", {3, 224, 224}, 1024, 32, "", ""},
      {"inception-v3", {3, 299, 299}, 1024, 32, "", ""},
      {"densenet-121", {3, 224, 224}, 1024, 32, "", ""},
      {"wrn-50-4", {3, 224, 224}, 1024, 32, "", ""},
      {"vgg-16", {3, 224, 224}, 2048, 32, "", ""},
      {"inception-v3", {3, 299, 299}, 2048, 32, "", ""},
      {"densenet-121", {3, 224, 224}, 2048, 32, "", ""},
      {"wrn-50-4", {3, 224, 224}, 2048, 32, "", ""},
  };
  fmt::print("{:<13} {:>7} {:>6} {:>9} {:>10} {:>9} {:>9} {:>9} {:>8}  {:>8} {:>8}\n", "net", "devices",
             "layers", "candid.", "pricing ms", "search ms", "plan ms", "CPU ms", "peak MiB", "paper ms",
             "PaSE ms");
  for (Case one : cases) {
    if (!only.empty() && one.net != only) continue;
    if (devices > 0 && one.devices != devices) continue;
    if (count > 3) one.dimensions = words[3];
    measure_apart(one);
  }
}
