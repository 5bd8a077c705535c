#include "cortado/base/file.h"

#include <fstream>

#include "cortado/net/solver_state.h"
#include "cortado/net/text_format.h"

#include "tests/net/net_testing.h"

namespace cortado {
namespace {

std::string parse_error(const std::string& text) {
  return error_of([&] {
    caffe::NetParameter net;
    parse_text(text, "a.prototxt", net);
  });
}

TEST(TextFormat, NamesLineColumnAndTheNearestField) {
  EXPECT_EQ(parse_error("name: 'x'\nlayer {\n  tpye: 'ReLU'\n}\n"),
            "a.prototxt:3:7: LayerParameter has no field 'tpye'; did you mean 'type'?");
}

TEST(TextFormat, NamesTheFirstOfSeveralErrors) {
  EXPECT_EQ(parse_error("foo: 1\nbar: 2\n").find("a.prototxt:1:4: "), 0u);
}

TEST(TextFormat, NamesWrongValuesAndUnfinishedBlocks) {
  EXPECT_EQ(parse_error("layer {\n  loss_weight: abc\n}").find("a.prototxt:2:"), 0u);
  EXPECT_EQ(parse_error("layer {\n  name: 'x'\n").find("a.prototxt:3:1: "), 0u);
  EXPECT_EQ(parse_error("layer { pooling_param { pool: MEAN } }").find("a.prototxt:1:"), 0u);
}

TEST(TextFormat, RoundTripsThroughAFile) {
  TemporaryFolder folder;
  caffe::NetParameter net, back;
  parse_text("name: 'n' layer { name: 'c' type: 'Convolution' convolution_param { pad: 1 pad: 2 } }", "",
             net);
  write_text(folder.file("n.prototxt"), net);
  read_text(folder.file("n.prototxt"), back);
  EXPECT_EQ(net.SerializeAsString(), back.SerializeAsString());
}

TEST(BinaryFormat, RefusesTruncatedFiles) {
  TemporaryFolder folder;
  caffe::NetParameter net;
  net.add_layer()->set_name("a layer with a name");
  std::string bytes = net.SerializeAsString();
  for (size_t cut : {size_t{1}, bytes.size() / 2, bytes.size() - 1}) {
    write_file_atomically(folder.file("cut"), std::string_view(bytes).substr(0, cut));
    EXPECT_NE(error_of([&] { read_binary(folder.file("cut"), net); }).find("truncated"), std::string::npos)
        << cut;
  }
}

TEST(File, MissingFileAndFolderAreNamed) {
  EXPECT_EQ(error_of([] { read_file("/no/such/file"); }),
            "cannot read /no/such/file: No such file or directory");
  EXPECT_NE(error_of([] { read_file("/tmp"); }).find("it is a folder"), std::string::npos);
}

TEST(File, AFailedWriteLeavesTheOldFileAndNoOther) {
  TemporaryFolder folder;
  std::string path = folder.file("snapshot");
  write_file_atomically(path, "old");
  std::string message = error_of([&] {
    write_file_atomically(path, [](const std::string& temporary) {
      std::ofstream(temporary) << "half";
      throw UserError("the disk is full");
    });
  });
  EXPECT_EQ(message, "the disk is full");
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(File, AFullDiskIsAUserError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  // The temporary name is taken by a link to a device that is always full.
  TemporaryFolder folder;
  std::string path = folder.file("snapshot");
  std::filesystem::create_symlink("/dev/full", path + "." + std::to_string(getpid()) + ".tmp");
  EXPECT_EQ(error_of([&] { write_file_atomically(path, "content"); }),
            "cannot write " + path + "." + std::to_string(getpid()) + ".tmp: No space left on device");
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(File, AReplacedFileIsWhole) {
  TemporaryFolder folder;
  std::string path = folder.file("f"), big(1 << 20, 'x');
  write_file_atomically(path, "old");
  write_file_atomically(path, big);
  EXPECT_EQ(read_file(path), big);
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(Solver, OldTypeBecomesTheNewOne) {
  TemporaryFolder folder;
  write_file_atomically(folder.file("s"), "base_lr: 0.1 solver_type: ADADELTA");
  caffe::SolverParameter solver = read_solver(folder.file("s"));
  EXPECT_EQ(solver.type(), "AdaDelta");
  EXPECT_FALSE(solver.has_solver_type());
  write_file_atomically(folder.file("s"), "type: 'SGD' solver_type: ADADELTA");
  EXPECT_NE(error_of([&] { read_solver(folder.file("s")); }).find("remove solver_type"), std::string::npos);
}

}  // namespace
}  // namespace cortado
