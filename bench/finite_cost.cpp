// What looking for numbers that are infinite or not a number costs in training: finite_cost MODEL BATCH SHAPE
// finite_cost models/resnet-50/train_val.prototxt 16 3x224x224
// Times an iteration (forward and backward), the look at outputs, statistics and loss after it, and the look
// at the processors' notes of overflow after each product that oneDNN runs with its ReLU
// (docs/explanation/finite.md).
#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <string>

#include "cortado/base/error.h"
#include "cortado/exec/executor.h"
#include "cortado/kernels/onednn/overflow.h"
#include "cortado/net/read_net.h"
#include "cortado/net/source_override.h"
#include "cortado/train/load_without_data.h"
#include "cortado/train/resident_data.h"

namespace cortado {
namespace {

template <typename Work>
double seconds_of(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <typename Work>
double least_of(int times, Work&& work) {
  double least = seconds_of(work);
  for (int i = 1; i < times; ++i) least = std::min(least, seconds_of(work));
  return least;
}

int run(const std::string& model, int batch, const std::string& shape) {
  NetFile file = read_net(model);
  override_batch(file.net, batch);
  const caffe::NetState state = net_state(file, Phase::train, 0, {});
  const LoadedNetwork loaded = load_without_data(std::move(file), state, shape, batch);
  ResidentData data(loaded.network);
  ParameterStore parameters;
  Compiled compiled = compile(loaded.network);
  auto sources = data.sources(compiled.program.samples());
  Executor executor(loaded.network, std::move(compiled), parameters, std::move(sources));
  double loss = executor.run(0);
  const double step = least_of(3, [&] { loss = executor.run(1); });
  const double results = least_of(100, [&] { executor.all_finite(loss); });
  const double notes = least_of(100, [] { onednn::take_overflow(); });
  int fused = 0;
  for (const std::string& line : executor.kernel_report())
    fused += line.find('+') < line.find(' ') && line.find(" onednn") != std::string::npos;
  const double cost = results + fused * notes;
  fmt::print(
      "{}, batch {}: an iteration {:.1f} ms; results, once {:.1f} us; overflow, {} times {:.2f} us: {:.4f} "
      "%\n",
      loaded.network.name(), batch, 1e3 * step, 1e6 * results, fused, 1e6 * notes, 100 * cost / step);
  return 0;
}

}  // namespace
}  // namespace cortado

int main(int count, char** words) {
  if (count != 4) {
    fmt::print(stderr, "finite_cost MODEL BATCH SHAPE\n");
    return 2;
  }
  try {
    return cortado::run(words[1], std::stoi(words[2]), words[3]);
  } catch (const cortado::UserError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
