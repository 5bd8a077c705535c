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
  ScratchFolder folder;
  caffe::NetParameter net, back;
  parse_text("name: 'n' layer { name: 'c' type: 'Convolution' convolution_param { pad: 1 pad: 2 } }", "",
             net);
  write_text(folder.file("n.prototxt"), net);
  read_text(folder.file("n.prototxt"), back);
  EXPECT_EQ(net.SerializeAsString(), back.SerializeAsString());
}

TEST(BinaryFormat, RefusesTruncatedFiles) {
  ScratchFolder folder;
  caffe::NetParameter net;
  net.add_layer()->set_name("a layer with a name");
  std::string bytes = net.SerializeAsString();
  for (size_t cut : {size_t{1}, bytes.size() / 2, bytes.size() - 1}) {
    write_file_atomically(folder.file("cut"), std::string_view(bytes).substr(0, cut));
    EXPECT_NE(error_of([&] { read_binary(folder.file("cut"), net); }).find("truncated"), std::string::npos)
        << cut;
  }
}

TEST(Solver, OldTypeBecomesTheNewOne) {
  ScratchFolder folder;
  write_file_atomically(folder.file("s"), "base_lr: 0.1 solver_type: ADADELTA");
  caffe::SolverParameter solver = read_solver(folder.file("s"));
  EXPECT_EQ(solver.type(), "AdaDelta");
  EXPECT_FALSE(solver.has_solver_type());
  write_file_atomically(folder.file("s"), "type: 'SGD' solver_type: ADADELTA");
  EXPECT_NE(error_of([&] { read_solver(folder.file("s")); }).find("remove solver_type"), std::string::npos);
}

}  // namespace
}  // namespace cortado
