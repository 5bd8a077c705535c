#include "cortado/train/snapshot.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cortado/base/file.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/read_net.h"
#include "cortado/net/seal.h"
#include "cortado/net/solver_state.h"
#include "cortado/train/prefix_lock.h"
#include "cortado/train/safetensors.h"
#include "cortado/train/snapshot_names.h"
#include "cortado/train/snapshot_size.h"

namespace cortado {
namespace {

namespace fs = std::filesystem;

constexpr const char* snapshot_net =
    "name: 'n' layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } }\n"
    "layer { name: 'a' type: 'InnerProduct' bottom: 'x' top: 'a' inner_product_param { num_output: 5 } }\n"
    "layer { name: 'b' type: 'InnerProduct' bottom: 'a' top: 'b' inner_product_param { num_output: 2 } }\n";

LoadedNetwork load(const std::string& text) {
  return load_network(parse_net(text, "net.prototxt"), net_state(Phase::train), declared_source_shapes);
}

class Snapshots : public ::testing::Test {
 protected:
  Snapshots() {
    std::string path = (fs::temp_directory_path() / "cortado_snapshot_XXXXXX").string();
    folder_ = mkdtemp(path.data());
  }
  ~Snapshots() override { fs::remove_all(folder_); }

  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(SnapshotFormat format, int64_t iteration, const std::string& solver = "SGD",
                    size_t rounds = 1) {
    Snapshot snapshot{.iteration = iteration, .solver = solver, .has_positions = true};
    snapshot.positions = {{"train/in", 3 * iteration}};
    IndexedVector<ParameterIndex, Blob> blobs;
    for (const auto& parameter : net_.network.parameters()) {
      Blob& blob = blobs.emplace_back(Blob{parameter.spec.shape, {}});
      for (int64_t i = 0; i < blob.shape.size(); ++i)
        blob.values.push_back(0.25f * static_cast<float>(i + iteration));
    }
    snapshot.parameters = blobs;
    snapshot.history.assign(rounds, blobs);
    return write_snapshot(file("kept"), format, net_, snapshot);
  }
  // What reading it throws; "" when nothing.
  std::string refusal(const std::string& path, const std::string& solver = "SGD", int rounds = 1) {
    try {
      read_snapshot(path, net_.network, solver, rounds);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }
  static void flip(const std::string& path, size_t at, unsigned char by) {
    std::string bytes = read_file(path);
    bytes[at] = static_cast<char>(bytes[at] ^ by);
    std::ofstream(path, std::ios::binary) << bytes;
  }

  fs::path folder_;
  LoadedNetwork net_ = load(snapshot_net);
};

// Flips one byte at 200 random places of each file of each format. CORTADO_SNAPSHOT_SEED=5 draws other ones.
TEST_F(Snapshots, AFlippedByteIsFoundWhereverItIs) {
  const char* given = std::getenv("CORTADO_SNAPSHOT_SEED");
  const unsigned seed = given ? static_cast<unsigned>(std::atoi(given)) : 1;
  SCOPED_TRACE("CORTADO_SNAPSHOT_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const std::pair<SnapshotFormat, std::string> damaged_files[] = {
      {SnapshotFormat::cortado, "kept_iter_4.safetensors"},
      {SnapshotFormat::caffe, "kept_iter_4.solverstate"},
      {SnapshotFormat::caffe, "kept_iter_4.caffemodel"},
      {SnapshotFormat::hdf5, "kept_iter_4.solverstate.h5"},
      {SnapshotFormat::hdf5, "kept_iter_4.caffemodel.h5"}};
  for (const auto& [format, name] : damaged_files) {
    const std::string snapshot = write(format, 4), path = file(name), whole = read_file(path);
    EXPECT_EQ(refusal(snapshot), "");
    for (int i = 0; i < 200; ++i) {
      const size_t at = random() % whole.size();
      const auto by = static_cast<unsigned char>(1 + random() % 255);
      flip(path, at, by);
      const std::string found = refusal(snapshot);
      EXPECT_EQ(found.find(path), 0u) << name << " byte " << at << " by " << int{by} << ": '" << found << "'";
      EXPECT_TRUE(found.find("is damaged") != found.npos || found.find("not a sound") != found.npos) << found;
      EXPECT_THROW(read_sound_snapshot(snapshot, net_.network, "SGD", 1), DamagedFile);
      flip(path, at, by);
    }
    EXPECT_EQ(refusal(snapshot), "");
  }
}

// The weights alone are checked, too.
TEST_F(Snapshots, FlippedWeightsAreNotTaken) {
  for (SnapshotFormat format : {SnapshotFormat::cortado, SnapshotFormat::caffe, SnapshotFormat::hdf5}) {
    write(format, 4);
    const std::string path = file(format == SnapshotFormat::cortado ? "kept_iter_4.safetensors"
                                  : format == SnapshotFormat::caffe ? "kept_iter_4.caffemodel"
                                                                    : "kept_iter_4.caffemodel.h5");
    for (size_t at = 0; at < fs::file_size(path); at += 7) {
      flip(path, at, 16);
      EXPECT_THROW(read_any_weights(path, net_.network), DamagedFile) << path << " " << at;
      flip(path, at, 16);
    }
    EXPECT_NO_THROW(read_any_weights(path, net_.network));
  }
}

TEST_F(Snapshots, SafetensorsOfOthersNeedNoChecksum) {
  const std::string header = R"({"a/weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const uint64_t size = header.size();
  std::ofstream(file("w.safetensors"), std::ios::binary)
      << std::string(reinterpret_cast<const char*>(&size), 8) << header << std::string(4, '\0');
  EXPECT_EQ(read_any_weights(file("w.safetensors"), net_.network).size(), 1u);
}

TEST_F(Snapshots, TheNewestSoundEarlierOneIsFound) {
  write(SnapshotFormat::cortado, 3);
  write(SnapshotFormat::caffe, 5);
  write(SnapshotFormat::hdf5, 7);
  write(SnapshotFormat::cortado, 11);
  const std::string asked = write(SnapshotFormat::cortado, 9);
  const auto found = [&] { return read_sound_snapshot(asked, net_.network, "SGD", 1); };
  EXPECT_EQ(found().path, asked);
  EXPECT_EQ(found().fault, "");
  flip(asked, fs::file_size(asked) - 1, 1);
  EXPECT_EQ(found().path, file("kept_iter_7.solverstate.h5"));
  EXPECT_EQ(found().fault.find(asked + " is damaged"), 0u) << found().fault;
  EXPECT_EQ(found().snapshot.iteration, 7);
  fs::resize_file(file("kept_iter_7.caffemodel.h5"), 100);
  EXPECT_EQ(found().path, file("kept_iter_5.solverstate"));
  fs::remove(file("kept_iter_5.caffemodel"));
  EXPECT_EQ(found().path, file("kept_iter_3.safetensors"));
  fs::rename(file("kept_iter_3.safetensors"), file("other_iter_3.safetensors"));
  try {
    found();
    FAIL();
  } catch (const DamagedFile& error) {
    EXPECT_NE(std::string(error.what()).find("no sound earlier snapshot"), std::string::npos) << error.what();
  }
}

TEST_F(Snapshots, OfAnotherSolverAreRefusedInEveryFormat) {
  for (SnapshotFormat format : {SnapshotFormat::cortado, SnapshotFormat::caffe, SnapshotFormat::hdf5}) {
    const std::string path = write(format, 4, "SGD");
    EXPECT_EQ(refusal(path, "SGD"), "");
    for (const auto& [solver, rounds] : {std::pair("AdaGrad", 1), std::pair("Adam", 2)})
      EXPECT_NE(refusal(path, solver, rounds).find(path + ": was made by solver SGD, this training uses"),
                std::string::npos)
          << refusal(path, solver, rounds);
  }
}

// Caffe's own files do not name their solver; the number of histories tells some apart.
TEST_F(Snapshots, OfCaffesOtherSolversAreRefusedByTheirHistory) {
  const std::string path = write(SnapshotFormat::caffe, 4, "", 2);
  caffe::SolverState state;
  ASSERT_TRUE(state.ParseFromString(read_file(path)));
  state.DiscardUnknownFields();
  state.clear_solver();
  std::ofstream(path, std::ios::binary) << state.SerializeAsString();
  EXPECT_EQ(refusal(path, "Adam", 2), "");
  EXPECT_EQ(refusal(path, "AdaDelta", 2), "");
  EXPECT_NE(refusal(path, "SGD", 1).find("it was made by another solver"), std::string::npos)
      << refusal(path, "SGD", 1);
}

TEST(SnapshotNames, AreReadAsTheyAreWritten) {
  const auto name = parse_snapshot_name("a/b_iter_3/c_iter_12.solverstate.h5");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->prefix, "a/b_iter_3/c");
  EXPECT_EQ(name->iteration, 12);
  EXPECT_EQ(name->ending, ".solverstate.h5");
  for (const char* other : {"a.safetensors", "a_iter_.safetensors", "a_iter_x", "a_iter_012.h5", "a_iter_-3"})
    EXPECT_FALSE(parse_snapshot_name(other) && parse_snapshot_name(other)->iteration >= 0) << other;
}

TEST_F(Snapshots, AreNotWrittenOverWhatATrainingStartsFrom) {
  write(SnapshotFormat::caffe, 20);
  SolverOptions solver{.file = "s", .max_iterations = 30, .snapshot_prefix = file("kept")};
  const auto complaint = [&](int64_t first) {
    try {
      check_snapshots_spare(solver, first, {file("kept_iter_20.caffemodel")});
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(
      complaint(0).find("the snapshot of iteration 20 would replace " + file("kept_iter_20.caffemodel")),
      std::string::npos)
      << complaint(0);
  EXPECT_EQ(complaint(20), "") << "resumed from it";
  solver.max_iterations = 19;
  EXPECT_EQ(complaint(0), "");
  solver.max_iterations = 30;
  solver.snapshot_format = SnapshotFormat::cortado;
  EXPECT_EQ(complaint(0), "");
  solver.snapshot_format = SnapshotFormat::caffe;
  solver.snapshot_prefix = file("./kept");
  EXPECT_NE(complaint(0), "");
  solver.snapshot_prefix = file("other");
  EXPECT_EQ(complaint(0), "");
}

TEST(SnapshotSize, BeyondCaffesLimitIsRefusedBeforeTraining) {
  const auto refusal = [](const char* outputs, SnapshotFormat format, int rounds, int snapshot = 10) {
    const LoadedNetwork net = load(
        "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 30000 } } }\n"
        "layer { name: 'a' type: 'InnerProduct' bottom: 'x' top: 'a' inner_product_param { num_output: " +
        std::string(outputs) + " } }\n");
    SolverOptions solver{.file = "s.prototxt", .snapshot = snapshot, .snapshot_format = format};
    solver.snapshot_after_train = false;
    try {
      check_snapshot_size(solver, net, rounds);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(
      refusal("20000", SnapshotFormat::caffe, 1),
      "s.prototxt: snapshot_format: the .caffemodel of this net would have 2.24 GiB, Caffe's binary files "
      "hold 2 GiB; give the snapshot format HDF5 or cortado");
  EXPECT_EQ(refusal("10000", SnapshotFormat::caffe, 1), "");
  EXPECT_NE(
      refusal("10000", SnapshotFormat::caffe, 2).find("the .solverstate of this net would have 2.24 GiB"),
      std::string::npos);
  EXPECT_EQ(refusal("20000", SnapshotFormat::hdf5, 2), "");
  EXPECT_EQ(refusal("20000", SnapshotFormat::cortado, 2), "");
  EXPECT_EQ(refusal("20000", SnapshotFormat::caffe, 2, 0), "");
}

TEST_F(Snapshots, OnePrefixHasOneTraining) {
  const auto complaint = [&](const std::string& prefix) {
    try {
      PrefixLock second(prefix);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  {
    PrefixLock first(file("kept"));
    const std::string said = complaint(file("kept"));
    EXPECT_NE(said.find("snapshot_prefix " + file("kept") + ": another training (process " +
                        std::to_string(getpid()) + " on "),
              std::string::npos)
        << said;
    EXPECT_NE(complaint(file("./kept")), "");
    EXPECT_EQ(complaint(file("other")), "");
  }
  EXPECT_TRUE(fs::is_empty(folder_)) << "locks go with their trainings";
  EXPECT_EQ(complaint(file("kept")), "");
}

// The file of a training that was killed is no lock; nor is a file of another program's, which stays.
TEST_F(Snapshots, StaleAndForeignLockFiles) {
  const pid_t child = fork();
  if (child == 0) {
    PrefixLock killed(file("kept"));
    _exit(0);  // without its end
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(fs::exists(file("kept_iter.lock")));
  { PrefixLock next(file("kept")); }
  EXPECT_TRUE(fs::is_empty(folder_));
  std::ofstream(file("kept_iter.lock")) << "mine";
  EXPECT_THROW(PrefixLock(file("kept")), UserError);
  EXPECT_EQ(read_file(file("kept_iter.lock")), "mine");
}

}  // namespace
}  // namespace cortado
