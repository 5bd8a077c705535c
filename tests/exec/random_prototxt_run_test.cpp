// Files drawn by the rules of caffe.proto that are accepted also run: an iteration of training and one of
// testing end with a loss or with a named refusal.
#include <cstdlib>
#include <filesystem>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/exec/executor.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"

#include "tests/exec/test_device.h"
#include "tests/net/random_prototxt.h"

namespace cortado {
namespace {

int environment(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value ? std::atoi(value) : otherwise;
}

bool is_small(const Network& network) {
  int64_t elements = 0;
  for (const auto& tensor : network.tensors()) elements += tensor.shape.size();
  for (const auto& parameter : network.parameters()) elements += parameter.spec.shape.size();
  Flops flops;
  for (NodeIndex node : indices(network.nodes())) flops += network.forward_flops(node);
  return elements < 200'000 && flops.count < 1e8;
}

// Small numbers that may also be labels.
BatchSource numbers_for(const Network& network, const Network::Node& node) {
  std::vector<std::vector<float>> batches;
  for (TensorIndex output : node.outputs) {
    std::vector<float> values(static_cast<size_t>(network.tensors()[output].shape.size()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 2);
    batches.push_back(std::move(values));
  }
  return [batches = std::move(batches)] {
    std::vector<const float*> tops;
    for (const auto& values : batches) tops.push_back(values.data());
    return tops;
  };
}

enum class Outcome { ran, refused, too_large };

Outcome run(const caffe::NetParameter& net, Phase phase) {
  try {
    const NetFile file = net_of_message(net, "net.prototxt");
    const LoadedNetwork loaded = load_network(file, net_state(phase), declared_source_shapes);
    if (!is_small(loaded.network)) return Outcome::too_large;
    std::map<std::string, BatchSource> sources;
    for (const auto& node : loaded.network.nodes())
      if (node.layer->is_source()) sources[node.name] = numbers_for(loaded.network, node);
    const testing::TestDevice device;
    ParameterStore store(device);
    Executor executor(loaded.network, compile(loaded.network), store, std::move(sources));
    executor.run(0);
    return Outcome::ran;
  } catch (const UserError& error) {
    EXPECT_STRNE(error.what(), "");
    return Outcome::refused;
  } catch (const std::exception& error) {
    std::string text;
    google::protobuf::TextFormat::PrintToString(net, &text);
    ADD_FAILURE() << "neither a run nor a refusal: " << error.what() << "\n" << text;
    return Outcome::refused;
  }
}

// HDF5Output writes where it stands: that is a folder of the test's own.
class Elsewhere {
 public:
  Elsewhere() {
    std::string pattern = (std::filesystem::temp_directory_path() / "cortado-drawn-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    std::filesystem::current_path(folder_);
  }
  ~Elsewhere() {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }

 private:
  std::filesystem::path before_ = std::filesystem::current_path(), folder_;
};

TEST(RandomFiles, Run) {
  const Elsewhere elsewhere;
  const int count = environment("CORTADO_NETS", 500), first = environment("CORTADO_FIRST_NET", 100'001);
  const bool tell = std::getenv("CORTADO_TELL");  // each seed before it runs: which one was it?
  std::map<Outcome, int> outcomes;
  for (int seed = first; seed < first + count && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("CORTADO_NETS=1 CORTADO_FIRST_NET=" + std::to_string(seed));
    if (tell) std::printf("%d\n", seed), std::fflush(stdout);
    testing::RandomPrototxt random(static_cast<uint32_t>(seed));
    const caffe::NetParameter net = random.draw(
        [&](const caffe::NetParameter& part) { return run(part, Phase::train) != Outcome::refused; });
    for (Phase phase : {Phase::train, Phase::test}) ++outcomes[run(net, phase)];
  }
  std::printf("ran %d, refused %d, too large to be run here %d\n", outcomes[Outcome::ran],
              outcomes[Outcome::refused], outcomes[Outcome::too_large]);
  EXPECT_GT(outcomes[Outcome::ran], count);
}

}  // namespace
}  // namespace cortado
