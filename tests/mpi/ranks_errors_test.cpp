#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/app/run_command.h"

namespace cortado {
namespace {

// What users can do wrong with several ranks: one message, exit code 2, no hang, nothing half-written.
class RankErrors : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("net.prototxt", small_net());
    folder_.write("solver.prototxt", small_solver());
  }

  // A run that hangs ends with exit code 124.
  CommandResult run(const std::string& arguments, const std::string& prelude = "") {
    return run_cortado(folder_.path(), arguments, prelude + " timeout -k 5 90");
  }

  void expect_error(const std::string& arguments, const std::vector<std::string>& parts,
                    const std::string& prelude = "") {
    expect_one_message(run(arguments, prelude), 2, parts);
  }

  void expect_one_message(const CommandResult& result, int code, const std::vector<std::string>& parts) {
    EXPECT_EQ(result.exit_code, code) << result.output;
    const size_t line = result.output.find("cortado: error: ");
    ASSERT_NE(line, std::string::npos) << result.output;
    EXPECT_EQ(result.output.find("cortado: error: ", line + 1), std::string::npos) << result.output;
    const std::string message = result.output.substr(line, result.output.find('\n', line) - line);
    for (const std::string& part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
    EXPECT_EQ(folder_.count(".tmp"), 0) << "a temporary file stayed";
  }

  void write_strategy(const std::string& layers, const std::string& head = "\"ranks\": 2") {
    folder_.write("s.json", R"({"format": "cortado-strategy", "version": 1, )" + head + R"(, "layers": {)" +
                                layers + "}}");
  }

  // A launcher whose rank 1 works in the folder "other", which holds copies of our files.
  void make_other_folder() {
    std::filesystem::create_directory(folder_.file("other"));
    for (const char* name : {"net.prototxt", "solver.prototxt"}) copy_to_other(name);
    folder_.write("launch.sh", "n=$2; shift 2; exec " CORTADO_RANK_LAUNCHER " -n $n sh each.sh \"$@\"\n");
    folder_.write("each.sh",
                  "if [ \"${PMI_RANK:-$OMPI_COMM_WORLD_RANK}\" = 1 ]; then cd other; fi; exec \"$@\"\n");
  }
  void copy_to_other(const std::string& name) {
    std::filesystem::copy_file(folder_.file(name), folder_.file("other/" + name),
                               std::filesystem::copy_options::overwrite_existing);
  }

  static std::string replaced(std::string text, const std::string& old_text, const std::string& new_text) {
    const size_t at = text.find(old_text);
    EXPECT_NE(at, std::string::npos) << old_text;
    return text.replace(at, old_text.size(), new_text);
  }

  const std::string train_ = "train --solver solver.prototxt --threads 1 --ranks 2 ";
  const std::string other_ =
      "train --solver solver.prototxt --ranks 2 --strategy data --launch='sh launch.sh'";
  TemporaryFolder folder_;
};

TEST_F(RankErrors, NetsAreAppliedByOneRank) {
  const std::string net = "--model net.prototxt --weights none.caffemodel ";
  for (const std::string& command :
       {"classify " + net + "none.jpg", "extract " + net + "--blobs conv --out out"}) {
    expect_error(command, {"one rank", "started 2"}, CORTADO_PLAIN_LAUNCHER " -n 2");
    expect_error(command + " --ranks 2", {"no option --ranks"});
  }
}

TEST_F(RankErrors, AStrategyThatDoesNotFit) {
  struct Case {
    std::string layers, head;
    std::vector<std::string> parts;
  };
  const std::string all = R"("*": {"n": 2})", two = R"("ranks": 2)";
  const Case cases[] = {
      {R"("*": {"n": 4})", R"("ranks": 4)", {"s.json", "for 4 ranks, the job has 2", "with 4 ranks"}},
      {R"("*": {"n": 4})", two, {"s.json", "layer 'conv'", "2"}},
      {R"("conf": {"n": 2}, )" + all, two, {"'conf' fits no layer of net 'small'"}},
      {R"("conv": {"n": 2})", two, {"layer 'relu'", "net.prototxt:8", "has no configuration"}},
      {R"("relu": {"r": 2}, )" + all, two, {"layer 'relu'", "r"}},
      {R"("loss": {"h": 2}, )" + all, two, {"layer 'loss'", "h"}},
      {R"("conv": {"n": 2, "devices": [0, 7]}, )" + all, two, {"layer 'conv'", "7"}},
      {R"("conv": {"n": 2, "devices": [1, 1]}, )" + all, two, {"layer 'conv'", "1"}},
      {R"("conv": {"n": 2, "sync": "ring"}, )" + all, two, {"layers.conv.sync", "'ring'", "allreduce"}},
      {R"("conv": {"m": 2}, )" + all, two, {"layers.conv", "no key \"m\""}},
      {R"("conv": {"n": 0}, )" + all, two, {"layer 'conv'", "n"}},
      {all, R"("ranks": 2, "net": "lenet")", {"is for net 'lenet', this is net 'small'"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.layers);
    write_strategy(c.layers, c.head);
    expect_error(train_ + "--strategy s.json", c.parts);
  }
  EXPECT_EQ(folder_.count("small_iter_"), 0);
}

TEST_F(RankErrors, AStrategyFileThatIsNone) {
  expect_error(train_ + "--strategy none.json", {"none.json", "No such file"});
  expect_error(train_ + "--strategy datta", {"no strategy 'datta'; did you mean 'data'?"});
  folder_.write("s.json", "{\"format\": ");
  expect_error(train_ + "--strategy s.json", {"s.json", "not JSON"});
  folder_.write("s.json", "{\"layers\": {}}");
  expect_error(train_ + "--strategy s.json", {"s.json", "not a strategy file"});
  folder_.write("s.json", R"({"format": "cortado-strategy", "version": 9, "layers": {}})");
  expect_error(train_ + "--strategy s.json", {"s.json", "version", "9"});
}

TEST_F(RankErrors, LaunchersAndRanks) {
  expect_error(train_ + "--launch /no/such/mpiexec", {"/no/such/mpiexec", "No such file", "--launch"});
  expect_error(train_ + "--launch ''", {"--launch"});
  const std::string plain = CORTADO_PLAIN_LAUNCHER " -n 2";
  expect_error("train --solver solver.prototxt --ranks 3", {"--ranks 3", "started 2 ranks"}, plain);
  // Every rank finds this; the first alone tells.
  expect_error("train --solver solver.prototxt --strategy none.json", {"none.json"}, plain);
}

TEST_F(RankErrors, WrongOptionsAreToldOnce) {
  expect_error(train_ + "--gpu 0", {"--gpu"});
  expect_error(train_ + "--sovler x", {"--sovler", "did you mean '--solver'?"});
}

TEST_F(RankErrors, RanksThatHaveOtherFilesAreRefused) {
  make_other_folder();
  ASSERT_EQ(run(other_).exit_code, 0) << run(other_).output;
  std::filesystem::remove(folder_.file("small_iter_20.caffemodel"));
  std::filesystem::remove(folder_.file("small_iter_20.solverstate"));
  folder_.write("other/net.prototxt", replaced(small_net(), "num_output: 4", "num_output: 6"));
  expect_error(other_, {"rank 1 does not have the net ", "net.prototxt of rank 0"});
  copy_to_other("net.prototxt");
  folder_.write("other/solver.prototxt", small_solver("test_iter: 1 test_interval: 5"));
  expect_error(other_, {"rank 1 does not have the solver solver.prototxt of rank 0"});
  copy_to_other("solver.prototxt");
  write_strategy(R"("*": {"n": 2})");
  folder_.write("other/s.json", replaced(folder_.read("s.json"), "\"*\"", "\"loss\": {}, \"*\""));
  expect_error("train --solver solver.prototxt --ranks=2 --strategy s.json --launch='sh launch.sh'",
               {"rank 1 does not have the --strategy s.json of rank 0"});
  std::filesystem::remove(folder_.file("other/net.prototxt"));
  expect_error(other_, {"net.prototxt", "No such file", "(rank 1 on "});
  EXPECT_EQ(folder_.count("small_iter_"), 0);
}

// The second half of the batch is rank 1's alone.
TEST_F(RankErrors, ABrokenRecordOfOneRankStopsAll) {
  std::string net = small_net();
  const size_t begin = net.find("layer { name: \"data\""), end = net.find("layer { name: \"conv\"");
  net.replace(begin, end - begin,
              "layer { name: \"data\" type: \"ImageData\" top: \"data\" top: \"label\"\n"
              "  image_data_param { source: \"list.txt\" batch_size: 2 new_height: 6 new_width: 6 } }\n");
  folder_.write("net.prototxt", net);
  folder_.write("broken.jpg", "\xff\xd8\xff\xe0 this is no photograph");
  folder_.write("list.txt", CORTADO_SOURCE_DIR "/tests/data/images/rgb.png 0\nbroken.jpg 1\n");
  expect_error(train_ + "--strategy data", {"broken.jpg", "(rank 1 on "});
}

// A file-size limit stands for a full disk; it leaves room for what MPI puts into files of shared memory.
TEST_F(RankErrors, AFullDiskWhileSnapshotting) {
  folder_.write("net.prototxt", replaced(small_net(), "num_output: 3", "num_output: 100000"));
  for (std::string format : {"cortado", "caffe", "hdf5"}) {
    expect_error(train_ + "--set max_iter=2 --strategy model --snapshot-format " + format, {"small_iter_2"},
                 "ulimit -f 40000; trap '' XFSZ;");
    EXPECT_EQ(folder_.count("small_iter_"), 0) << format;
  }
}

TEST_F(RankErrors, NonFiniteLossNamesTheLayer) {
  folder_.write("net.prototxt",
                replaced(small_net(), "type: \"gaussian\" std: 1", "type: \"constant\" value: 3e38"));
  for (const char* strategy : {"data", "model"})
    expect_error(train_ + "--strategy " + strategy,
                 {"iteration 0: the loss is", "layer 'conv", "no snapshot was made yet"});
}

}  // namespace
}  // namespace cortado
