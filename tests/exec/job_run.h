#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "cortado/comm/local/local_job.h"
#include "cortado/exec/executor.h"
#include "cortado/layers/source.h"
#include "cortado/net/build_network.h"
#include "cortado/net/network.h"

#include "tests/exec/test_device.h"
#include "tests/program/nets.h"

namespace cortado::testing {

// A net written down layer by layer, with data of the given shapes, and how each layer is cut.
class CutNet {
 public:
  explicit CutNet(std::vector<Shape> data) {
    SourceOptions options;
    options.kind = SourceOptions::Kind::input;
    options.shapes = std::move(data);
    std::vector<std::string> tops;
    for (size_t i = 0; i < options.shapes.size(); ++i) tops.push_back("data" + std::to_string(i));
    add("data", std::make_shared<Source>(options), {}, tops, {});
  }

  CutNet& add(const std::string& name, LayerPtr layer, std::vector<std::string> bottoms,
              std::vector<std::string> tops, const ParallelConfig& config) {
    declarations_.push_back(testing::declared(name, std::move(layer), std::move(bottoms), std::move(tops)));
    configs_.push_back(config);
    return *this;
  }
  CutNet& add(const std::string& name, LayerPtr layer, const std::string& bottom,
              const ParallelConfig& config) {
    return add(name, std::move(layer), {bottom}, {name}, config);
  }

  Network build() const {
    return build_network("net", Phase::train, declarations_, [](const LayerDeclaration& layer) {
      return dynamic_cast<const Source&>(*layer.layer).options().shapes;
    });
  }
  NodeStrategies strategies() const {
    NodeStrategies strategies;
    for (const ParallelConfig& config : configs_) strategies.push_back({.config = config});
    return strategies;
  }

 private:
  std::vector<LayerDeclaration> declarations_;
  std::vector<ParallelConfig> configs_;
};

inline ParallelConfig on_all(const Degrees& degrees) {
  ParallelConfig config{
      .degrees = degrees, .devices = std::vector<int>(static_cast<size_t>(degrees.product())), .weights = {}};
  std::iota(config.devices.begin(), config.devices.end(), 0);
  return config;
}

// What a rank says of itself after an iteration.
struct RankRun {
  Traffic traffic;  // of the iteration, by the communicator
  Program program;
  IndexedVector<EntryIndex, ParameterStore::Entry> parameters;
};

// Kernels whose weights have no padding, which would be summed over ranks, too. (oneDNN pads to 48 filters
// with AVX-512, implicit-gemm to 32.)
inline constexpr const char* unpadded = "lowering-1";

// Runs an iteration on `ranks` threads. Data are zeros: nobody looks at values here.
inline std::vector<RankRun> run_job(const CutNet& net, int ranks, const std::string& kernels = {}) {
  const Network network = net.build();
  std::vector<RankRun> runs(static_cast<size_t>(ranks));
  LocalJob job(ranks);
  job.run([&](Communicator& communicator) {
    const testing::TestDevice device;
    ParameterStore store(device);
    std::map<std::string, BatchSource> sources;
    std::vector<std::vector<float>> data;
    for (TensorIndex tensor : network.nodes().front().outputs)
      data.emplace_back(static_cast<size_t>(network.tensors()[tensor].shape.size()), 0.5f);
    sources["data"] = [&] {
      std::vector<const float*> batch;
      for (const auto& values : data) batch.push_back(values.data());
      return batch;
    };
    Executor executor(network,
                      compile(network, {.strategies = net.strategies(),
                                        .kernels = {.kernels = kernels},
                                        .ranks = communicator.size(),
                                        .rank = communicator.rank()}),
                      store, sources, {.communicator = &communicator});
    const Traffic before = communicator.traffic();
    executor.run(0);
    const Traffic after = communicator.traffic();
    RankRun& run = runs[static_cast<size_t>(communicator.rank())];
    run.traffic = {after.sent - before.sent, after.received - before.received};
    run.program = executor.program();
    run.parameters = store.entries();
  });
  return runs;
}

}  // namespace cortado::testing
