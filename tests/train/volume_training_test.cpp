// Nets of volumes cut along depth, height and width train as on one rank, while each rank reads its part
// alone.
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <mutex>
#include <random>

#include "cortado/base/compute_threads.h"
#include "cortado/comm/local/local_job.h"
#include "cortado/net/read_net.h"
#include "cortado/parallel/strategy.h"
#include "cortado/train/data_network.h"

#include "tests/data/support.h"
#include "tests/data/volume_files.h"
#include "tests/exec/test_device.h"

namespace cortado {
namespace {

constexpr int classes = 3;

struct Trained {
  std::vector<double> losses, accuracies;
  std::map<std::string, std::vector<float>> weights;  // canonical
  std::vector<int64_t> batch_elements;                // that each rank holds of data
};

// A u-net of one level: convolutions, pooling, and back by a deconvolution beside what was skipped.
std::string u_net(const std::string& source, int channels, bool normalized) {
  const auto layer = [](const std::string& name, const std::string& type, const std::string& bottom,
                        const std::string& options) {
    return fmt::format("layer {{ name: '{0}' type: '{1}' bottom: '{2}' top: '{0}' {3} }}\n", name, type,
                       bottom, options);
  };
  const auto convolution = [&](const std::string& name, const std::string& bottom, int outputs, int kernel) {
    return layer(
        name, "Convolution", bottom,
        fmt::format("convolution_param {{ num_output: {} kernel_size: {} pad: {} weight_filler {{ type: "
                    "'msra' }} }}",
                    outputs, kernel, kernel / 2));
  };
  std::string text = source + convolution("down", "data", channels, 3);
  if (normalized)
    text += layer("norm", "BatchNorm", "down", "") +
            layer("scaled", "Scale", "norm", "scale_param { bias_term: true }");
  text +=
      layer("relu", "ReLU", normalized ? "scaled" : "down", "") +
      layer("pool", "Pooling", "relu", "pooling_param { pool: MAX kernel_size: 2 stride: 2 }") +
      convolution("bottom", "pool", channels + 1, 3) +
      layer("up", "Deconvolution", "bottom",
            fmt::format("convolution_param {{ num_output: {} kernel_size: 2 stride: 2 weight_filler {{ type: "
                        "'msra' }} }}",
                        channels)) +
      "layer { name: 'join' type: 'Concat' bottom: 'relu' bottom: 'up' top: 'join' }\n" +
      convolution("merge", "join", channels, 3) + convolution("score", "merge", classes, 1) +
      "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'score' bottom: 'label' top: 'loss' }\n"
      "layer { name: 'accuracy' type: 'Accuracy' bottom: 'score' bottom: 'label' top: 'accuracy' }\n";
  return text;
}

Trained train(const std::string& text, const std::string& strategy, int ranks) {
  Trained trained;
  std::mutex mutex;
  trained.batch_elements.resize(static_cast<size_t>(ranks));
  LocalJob(ranks).run([&](Communicator& communicator) {
    const ComputeThreads one(1);
    DataNetwork data(parse_net(text, "volumes"), net_state(Phase::train), {.seed = 3, .learns = true});
    const Network& net = data.network();
    const testing::TestDevice device;
    ParameterStore store(device);
    Compiled compiled =
        compile(net, {.strategies = resolve(parse_strategy(strategy, "test"), net, ranks, "test"),
                      .ranks = ranks,
                      .rank = communicator.rank()});
    const std::map<std::string, BatchPart> parts = compiled.program.samples();
    Executor executor(net, std::move(compiled), store, data.sources(parts), {.communicator = &communicator});
    std::vector<double> losses, accuracies;
    for (int i = 0; i < 4; ++i) {
      losses.push_back(executor.run(i, [&](EntryIndex entry) {
        ParameterIndex parameter(0);
        while (executor.parameter_entries()[parameter] != entry) ++parameter;
        testing::descend(store, entry, 0.05f, executor.updated_elements(parameter));
      }));
      for (const OutputValue& output :
           communicator.rank() == 0 ? output_values(executor) : std::vector<OutputValue>())
        if (output.name == "accuracy") accuracies.push_back(output.value);
    }
    executor.settle();
    std::lock_guard lock(mutex);
    trained.batch_elements[static_cast<size_t>(communicator.rank())] =
        parts.at("data").tops[0].shape().size();
    if (communicator.rank() > 0) return;
    trained.losses = losses;
    trained.accuracies = accuracies;
    for (ParameterIndex p : indices(net.parameters())) {
      const EntryIndex entry = executor.parameter_entries()[p];
      trained.weights[store.entries()[entry].name] = store.canonical(entry);
    }
  });
  return trained;
}

void expect_same(const Trained& whole, const Trained& cut) {
  ASSERT_EQ(whole.losses.size(), cut.losses.size());
  for (size_t i = 0; i < whole.losses.size(); ++i) EXPECT_NEAR(cut.losses[i], whole.losses[i], 1e-4) << i;
  ASSERT_EQ(whole.accuracies.size(), 4u);
  ASSERT_EQ(cut.accuracies.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(cut.accuracies[i], whole.accuracies[i], 2e-3) << i;
  for (const auto& [name, weights] : whole.weights)
    for (size_t k = 0; k < weights.size(); ++k)
      ASSERT_NEAR(cut.weights.at(name)[k], weights[k], 1e-4) << name << " element " << k;
}

// Volumes with labels that a net can learn: what is bright, or dark.
void write_volume(const ScratchFolder& folder, int number, const Shape& extents) {
  std::vector<float> values = volume_values(extents.size(), number, 100, false), labels;
  for (float value : values) labels.push_back(value < -30 ? 0.0f : value < 30 ? 1.0f : 2.0f);
  write_bytes(folder / fmt::format("{}.nii", number),
              nifti({.extents = extents, .element = VolumeOptions::Element::int16}, values));
  write_bytes(folder / fmt::format("{}-labels.nii", number),
              nifti({.extents = extents, .element = VolumeOptions::Element::uint8}, labels));
}

constexpr std::string_view eight = R"({"format": "cortado-strategy", "version": 1, "ranks": 8,
  "layers": {"*": {"d": 2, "h": 2, "w": 2}}})";

TEST(VolumeTraining, NiftiCroppedAndMirroredInTilesTrainsAsOnOneRank) {
  std::mt19937 random(4);
  const auto even = [&](int low, int high) {
    return 2 * std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int i = 0; i < 5; ++i) {
    ScratchFolder folder;
    const int depth = even(4, 6), height = even(4, 7), width = even(5, 8);
    std::string list;
    for (int volume = 0; volume < 3; ++volume) {
      write_volume(folder, volume, {1, depth + volume, height + 3, width + 1});
      list += fmt::format("{0}.nii {0}-labels.nii\n", volume);
    }
    write_bytes(folder / "list", list);
    const std::string source = fmt::format(
        "layer {{ name: 'data' type: 'VolumeData' top: 'data' top: 'label' transform_param {{ scale: 0.01 }} "
        "volume_data_param {{ source: '{}' root_folder: '{}' batch_size: {} shuffle: true crop: {} crop: {} "
        "crop: "
        "{} mirror: 'dhw' }} }}\n",
        folder / "list", folder / "", 1 + i % 2, depth, height, width);
    const std::string text = u_net(source, 2 + i % 3, i % 2 == 0);
    SCOPED_TRACE(text);
    const Trained whole =
        train(text, R"({"format": "cortado-strategy", "version": 1, "ranks": 1, "layers": {"*": {}}})", 1);
    const Trained cut = train(text, std::string(eight), 8);
    expect_same(whole, cut);
    EXPECT_LT(cut.losses.back(), cut.losses.front());
    for (int64_t elements : cut.batch_elements)
      EXPECT_LE(elements, (1 + i % 2) * (depth / 2 + 1) * (height / 2 + 1) * (width / 2 + 1));
    if (HasFailure()) return;
  }
}

TEST(VolumeTraining, Hdf5InTilesTrainsAsOnOneRank) {
  ScratchFolder folder;
  const hsize_t extents[] = {3, 1, 8, 12, 10};
  const std::vector<float> values = volume_values(3 * 960, 7, 100, false);
  std::vector<float> data, labels;
  for (float value : values) {
    data.push_back(value / 100);
    labels.push_back(value < -30 ? 0.0f : value < 30 ? 1.0f : 2.0f);
  }
  hid_t file = H5Fcreate((folder / "a.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  for (const auto& [name, written] : {std::pair{"data", &data}, std::pair{"label", &labels}}) {
    hid_t space = H5Screate_simple(5, extents, nullptr);
    hid_t set = H5Dcreate2(file, name, H5T_NATIVE_FLOAT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, written->data());
    H5Dclose(set);
    H5Sclose(space);
  }
  H5Fclose(file);
  write_bytes(folder / "list", folder / "a.h5");
  const std::string text = u_net(
      fmt::format(
          "layer {{ name: 'data' type: 'HDF5Data' top: 'data' top: 'label' hdf5_data_param {{ source: '{}' "
          "batch_size: 2 shuffle: true }} }}\n",
          folder / "list"),
      3, true);
  const Trained whole =
      train(text, R"({"format": "cortado-strategy", "version": 1, "ranks": 1, "layers": {"*": {}}})", 1);
  expect_same(whole, train(text, std::string(eight), 8));
  for (const char* cut : {R"("n": 2, "w": 2)", R"("d": 4)", R"("h": 2, "w": 2)"})
    expect_same(whole, train(text,
                             fmt::format(R"({{"format": "cortado-strategy", "version": 1, "ranks": 4,
                                             "layers": {{"*": {{{}}}}}}})",
                                         cut),
                             4));
}

}  // namespace
}  // namespace cortado
