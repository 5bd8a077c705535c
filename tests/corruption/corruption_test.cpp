// Damaged files of every kind that is read: each is refused by one line, or read; none ends the program,
// hangs it or takes memory without bound.
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <hdf5.h>

#include "cortado/base/file.h"
#include "cortado/cost/task_times.h"
#include "cortado/data/datum.h"
#include "cortado/data/image_codecs.h"
#include "cortado/data/import.h"
#include "cortado/data/lmdb.h"
#include "cortado/data/mean.h"
#include "cortado/data/open_reader.h"
#include "cortado/data/reader.h"
#include "cortado/machine/file.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"
#include "cortado/net/solver_state.h"
#include "cortado/net/weights.h"
#include "cortado/parallel/strategy.h"
#include "cortado/train/snapshot.h"

#include "tests/corruption/damage.h"

namespace cortado {
namespace {

using testing::FileKind;

constexpr const char* net_text = R"(
name: "small"
layer { name: "data" type: "Input" top: "data" top: "label"
        input_param { shape { dim: 2 dim: 3 dim: 9 dim: 9 } shape { dim: 2 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
        param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
        convolution_param { num_output: 6 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "score" type: "InnerProduct" bottom: "pool" top: "score"
        inner_product_param { num_output: 5 weight_filler { type: "gaussian" std: 0.01 } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" }
)";

constexpr const char* solver_text = R"(
net: "net.prototxt"
test_iter: 3 test_interval: 10 base_lr: 0.01 lr_policy: "multistep" gamma: 0.1 stepvalue: 10 stepvalue: 20
momentum: 0.9 weight_decay: 0.0005 max_iter: 30 display: 1 snapshot: 10 snapshot_prefix: "small" type: "Nesterov"
)";

constexpr const char* strategy_json =
    R"({"format": "cortado-strategy", "version": 1, "net": "small", "ranks": 4, "layers": {
  "conv": {"n": 2, "h": 2, "devices": [0, 1, 2, 3]}, "pool*": {"n": 4}, "score": {"c": 2, "r": 2, "sync": "owner"}}})";

std::string write_text_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

LoadedNetwork small_net() {
  return load_network(parse_net(net_text, "net"), net_state(Phase::train), declared_source_shapes);
}

std::string text_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string text_of(const Weights& weights) {
  std::string text;
  for (const LayerWeights& layer : weights) {
    text += layer.layer;
    for (const Blob& blob : layer.blobs) text += blob.shape.text() + text_of(blob.values);
  }
  return text;
}

Snapshot some_snapshot(const Network& network) {
  Snapshot snapshot{.iteration = 7, .learning_rate_step = 1, .solver = "Nesterov", .has_positions = true};
  snapshot.positions["train/data"] = 14;
  snapshot.history.resize(1);
  for (const auto& parameter : network.parameters()) {
    Blob blob{parameter.spec.shape, std::vector<float>(static_cast<size_t>(parameter.spec.shape.size()))};
    for (size_t i = 0; i < blob.values.size(); ++i) blob.values[i] = static_cast<float>(i) / 8 - 3;
    snapshot.parameters.push_back(blob);
    snapshot.history[0].push_back(blob);
  }
  return snapshot;
}

// Writes a snapshot and gives the file with that ending.
std::string make_snapshot(const std::string& folder, SnapshotFormat format, const std::string& ending) {
  const LoadedNetwork net = small_net();
  write_snapshot(folder + "/small", format, net, some_snapshot(net.network));
  return folder + "/small_iter_7" + ending;
}

std::string read_whole_snapshot(const std::string& path) {
  const LoadedNetwork net = small_net();
  const Snapshot snapshot = read_snapshot(path, net.network, "Nesterov", 1);
  std::string text = fmt::format("{} {} {} {} {}", snapshot.iteration, snapshot.learning_rate_step,
                                 snapshot.solver, snapshot.seed, snapshot.positions.size());
  for (const auto& [name, position] : snapshot.positions) text += fmt::format(" {} {}", name, position);
  for (const Blob& blob : snapshot.parameters) text += blob.shape.text() + text_of(blob.values);
  for (const Blob& blob : snapshot.history[0]) text += blob.shape.text() + text_of(blob.values);
  return text;
}

std::string read_all_weights(const std::string& path) { return text_of(read_weights(path)); }

std::string make_database(const std::string& folder) {
  ShapesOptions shapes;
  import_shapes(shapes, 30, folder + "/db", {});
  return folder + "/db/data.mdb";
}

// Every record with its key, as pixels.
std::string read_database(const std::string& path) {
  LmdbReader reader(std::filesystem::path(path).parent_path());
  std::string text;
  for (int64_t i = 0; i < reader.size(); ++i) {
    const LmdbReader::Record record = reader.at(i);
    caffe::Datum datum;
    DatumPixels pixels;
    parse_datum(record.value, datum);
    datum_pixels(datum, ColorMode::native, pixels);
    text += fmt::format("{} {} {}x{}x{};", record.key, datum.label(), pixels.view.channels,
                        pixels.view.height, pixels.view.width);
    const int64_t count = int64_t{pixels.view.channels} * pixels.view.height * pixels.view.width;
    uint64_t sum = 0;
    for (int64_t k = 0; k < count; ++k) sum = sum * 31 + (pixels.view.bytes ? pixels.view.bytes[k] : 0);
    text += std::to_string(sum);
  }
  return text;
}

std::string make_mean(const std::string& folder) {
  MeanImage mean{3, 4, 4, std::vector<float>(48, 0.5f)};
  write_mean(folder + "/mean.binaryproto", mean);
  return folder + "/mean.binaryproto";
}

std::string read_mean_file(const std::string& path) {
  const MeanImage mean = read_mean(path);
  return fmt::format("{}x{}x{}", mean.channels, mean.height, mean.width) + text_of(mean.values);
}

Image some_image() {
  Image image(40, 33, 3);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * i / 97 + i);
  return image;
}

std::string make_image(const std::string& folder, const std::string& format) {
  const std::vector<uint8_t> bytes = encode_image(some_image(), format);
  return write_text_file(folder + "/image." + format, {bytes.begin(), bytes.end()});
}

std::string read_image(const std::string& path) {
  const Image image = decode_image(read_bytes(path), ColorMode::color);
  return fmt::format("{}x{}", image.height, image.width) +
         std::string(image.pixels.begin(), image.pixels.end());
}

std::string make_idx(const std::string& folder, bool labels) {
  std::string images{0, 0, 8, 3, 0, 0, 0, 10, 0, 0, 0, 6, 0, 0, 0, 5}, classes{0, 0, 8, 1, 0, 0, 0, 10};
  for (int i = 0; i < 300; ++i) images += static_cast<char>(i);
  for (int i = 0; i < 10; ++i) classes += static_cast<char>(i);
  const std::string first = write_text_file(folder + "/images", images);
  const std::string second = write_text_file(folder + "/labels", classes);
  return labels ? second : first;
}

// Reads what an import has written and removes it.
std::string imported(const std::string& database, const std::function<void()>& import) {
  std::filesystem::remove_all(database);
  import();
  const std::string text = read_database(database + "/data.mdb");
  std::filesystem::remove_all(database);
  return text;
}

std::string read_idx(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  return imported(folder + "/new",
                  [&] { import_mnist(folder + "/images", folder + "/labels", folder + "/new", {}); });
}

std::string make_cifar(const std::string& folder) {
  for (const char* name :
       {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"}) {
    std::string bytes;
    for (int record = 0; record < 2; ++record) {
      bytes += static_cast<char>(record);
      for (int i = 0; i < 3072; ++i) bytes += static_cast<char>(i + record);
    }
    write_text_file(folder + "/" + name + ".bin", bytes);
  }
  return folder + "/data_batch_2.bin";
}

std::string read_cifar(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  std::filesystem::remove_all(folder + "/out");
  std::filesystem::create_directory(folder + "/out");
  return imported(folder + "/out/cifar10_train_lmdb",
                  [&] { import_cifar(folder, folder + "/out", {.force = true}); });
}

void write_dataset(hid_t file, const char* name, std::vector<hsize_t> extents,
                   const std::vector<float>& values) {
  const hid_t space = H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
  const hid_t set = H5Dcreate2(file, name, H5T_NATIVE_FLOAT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  H5Dclose(set);
  H5Sclose(space);
}

std::string make_hdf5_data(const std::string& folder) {
  const std::string path = folder + "/data.h5";
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  std::vector<float> data(4 * 6), label(4);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
  write_dataset(file, "data", {4, 2, 3}, data);
  write_dataset(file, "label", {4}, label);
  H5Fclose(file);
  write_text_file(folder + "/list", path + "\n");
  return path;
}

std::string read_hdf5_data(const std::string& path) {
  SourceOptions source;
  source.kind = SourceOptions::Kind::hdf5_data;
  source.source = (std::filesystem::path(path).parent_path() / "list").string();
  source.batch_size = 4;
  ReaderOptions options;
  options.top_names = {"data", "label"};
  const auto reader = open_reader(source, options);
  std::string text;
  const std::vector<Shape> shapes = reader->shapes();
  const Batch batch = reader->next();
  for (size_t top = 0; top < shapes.size(); ++top)
    text += shapes[top].text() +
            text_of(std::vector<float>(batch.tensors[top], batch.tensors[top] + shapes[top].size()));
  return text;
}

std::string read_prototxt(const std::string& path) {
  const LoadedNetwork net = load_network(read_net(path), net_state(Phase::train), declared_source_shapes);
  return fmt::format("{} {}", net.network.nodes().size(), net.network.parameter_count());
}

std::string read_solver_file(const std::string& path) {
  const caffe::SolverParameter solver = read_solver(path);
  const SolverOptions options = solver_options(solver, path);
  return fmt::format("{} {}", options.max_iterations, options.learning_rate.base);
}

std::string read_strategy(const std::string& path) {
  return strategy_text(parse_strategy(read_file(path), path));
}

std::string make_machine(const std::string& folder) {
  return write_text_file(folder + "/machine.json",
                         read_file(CORTADO_SOURCE_DIR "/machines/layer-wise-p100.json"));
}

std::string read_machine(const std::string& path) {
  return machine_text(parse_machine(read_file(path), path));
}

std::string make_times(const std::string& folder) {
  TaskTimes times("a machine", "a build");
  for (int i = 0; i < 20; ++i) times.add(fmt::format("Convolution 8x{}x5x5", i), {});
  times.add_duration("iteration of a net", {0.25});
  return write_text_file(folder + "/times.json", times.text());
}

std::string read_times(const std::string& path) {
  TaskTimes times("a machine", "a build");
  times.read(read_file(path), path);
  return times.text();
}

std::vector<FileKind> all_kinds() {
  auto text = [](const std::string& name, const char* content) {
    return [=](const std::string& folder) { return write_text_file(folder + "/" + name, content); };
  };
  auto snapshot = [](SnapshotFormat format, const std::string& ending) {
    return [=](const std::string& folder) { return make_snapshot(folder, format, ending); };
  };
  auto image = [](const std::string& format) {
    return [=](const std::string& folder) { return make_image(folder, format); };
  };
  auto idx = [](bool labels) { return [=](const std::string& folder) { return make_idx(folder, labels); }; };
  using F = SnapshotFormat;
  return {{"prototxt", text("net.prototxt", net_text), read_prototxt},
          {"solver", text("solver.prototxt", solver_text), read_solver_file},
          {"caffemodel", snapshot(F::caffe, ".caffemodel"), read_all_weights, true},
          {"solverstate", snapshot(F::caffe, ".solverstate"), read_whole_snapshot, true},
          {"hdf5_weights", snapshot(F::hdf5, ".caffemodel.h5"), read_all_weights, true},
          {"hdf5_solverstate", snapshot(F::hdf5, ".solverstate.h5"), read_whole_snapshot, true},
          {"safetensors", snapshot(F::cortado, ".safetensors"), read_whole_snapshot, true},
          {"lmdb", make_database, read_database},
          {"mean", make_mean, read_mean_file},
          {"hdf5_data", make_hdf5_data, read_hdf5_data},
          {"jpeg", image("jpg"), read_image},
          {"png", image("png"), read_image},
          {"idx_images", idx(false), read_idx},
          {"idx_labels", idx(true), read_idx},
          {"cifar", make_cifar, read_cifar},
          {"strategy", text("strategy.json", strategy_json), read_strategy},
          {"machine", make_machine, read_machine},
          {"task_times", make_times, read_times}};
}

int environment(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value ? std::atoi(value) : otherwise;
}

class DamagedFiles : public ::testing::TestWithParam<FileKind> {};

TEST_P(DamagedFiles, AreReadOrRefused) {
  const int cases = environment("CORTADO_DAMAGES", 400), first = environment("CORTADO_FIRST_DAMAGE", 1);
  const testing::Verdicts verdicts = testing::read_damaged(GetParam(), cases, first);
  std::printf("%s: %d refused, %d equal, %d read as something else\n", GetParam().name.c_str(),
              verdicts.refused, verdicts.equal, verdicts.other);
  EXPECT_EQ(verdicts.faults, "") << "one of them alone: CORTADO_DAMAGES=1 CORTADO_FIRST_DAMAGE=SEED";
  EXPECT_EQ(verdicts.refused + verdicts.equal + verdicts.other, cases);
}

INSTANTIATE_TEST_SUITE_P(Kinds, DamagedFiles, ::testing::ValuesIn(all_kinds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cortado
