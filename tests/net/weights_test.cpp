#include "cortado/net/weights.h"

#include <numeric>

#include "cortado/base/file.h"
#include "cortado/net/solver_state.h"
#include "cortado/net/text_format.h"

#include "tests/net/net_testing.h"

namespace cortado {
namespace {

Blob counting(Shape shape) {
  Blob blob{shape, std::vector<float>(static_cast<size_t>(shape.size()))};
  std::iota(blob.values.begin(), blob.values.end(), 0.5f);
  return blob;
}

const std::string net_text =
    "name: 'n' layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 dim: 4 dim: 4 } "
    "} }\n"
    "layer { name: 'inc/conv' type: 'Convolution' bottom: 'x' top: 'c'"
    " convolution_param { num_output: 5 kernel_size: 3 } }\n"
    "layer { name: 'fc' type: 'InnerProduct' bottom: 'c' top: 'f' inner_product_param { num_output: 7 } }\n";

Weights weights_of(const Network& network) {
  return collect_weights(network, [&](int p) { return counting(network.parameters()[p].spec.shape).values; });
}

TEST(Weights, CaffemodelAndHdf5RoundTrip) {
  TemporaryFolder folder;
  LoadedNetwork loaded = load(net_text);
  Weights weights = weights_of(loaded.network);
  ASSERT_EQ(weights.size(), 2u);
  write_caffemodel(folder.file("w.caffemodel"), loaded.net, weights);
  write_weights_hdf5(folder.file("w.caffemodel.h5"), weights);
  EXPECT_EQ(read_weights(folder.file("w.caffemodel")), weights);
  Weights by_name = read_weights(folder.file("w.caffemodel.h5"));  // sorted by name
  EXPECT_EQ(by_name, (Weights{weights[1], weights[0]}));
}

TEST(Weights, ACaffemodelHoldsTheLayersOfTheNet) {
  TemporaryFolder folder;
  LoadedNetwork loaded = load(net_text);
  write_caffemodel(folder.file("w"), loaded.net, weights_of(loaded.network));
  caffe::NetParameter net;
  read_binary(folder.file("w"), net);
  ASSERT_EQ(net.layer_size(), 3);
  EXPECT_EQ(net.name(), "n");
  EXPECT_EQ(net.layer(1).type(), "Convolution");
  EXPECT_EQ(net.layer(1).convolution_param().num_output(), 5u);
  ASSERT_EQ(net.layer(1).blobs_size(), 2);
  EXPECT_EQ(net.layer(1).blobs(0).shape().dim_size(), 4);
  EXPECT_EQ(net.layer(1).blobs(0).data_size(), 5 * 3 * 3 * 3);
  EXPECT_EQ(net.layer(1).blobs(1).shape().dim(0), 5);
}

TEST(Weights, LegacyShapesAndDoublesFit) {
  TemporaryFolder folder;
  LoadedNetwork loaded = load(net_text);
  caffe::NetParameter old;
  caffe::V1LayerParameter& fc = *old.add_layers();
  fc.set_name("fc");
  fc.set_type(caffe::V1LayerParameter::INNER_PRODUCT);
  auto legacy = [&](int height, int width) {
    caffe::BlobProto& blob = *fc.add_blobs();
    blob.set_num(1);
    blob.set_channels(1);
    blob.set_height(height);
    blob.set_width(width);
    for (int i = 0; i < height * width; ++i) blob.add_double_data(i);
  };
  legacy(7, 20);
  legacy(1, 7);
  write_binary(folder.file("old"), old);
  Weights weights = read_weights(folder.file("old"));
  WeightMatch match = match_weights(loaded.network, weights, "old");
  int weight = loaded.network.nodes()[loaded.network.node("fc")].parameters[0];
  ASSERT_NE(match.of_parameter[weight], nullptr);
  EXPECT_EQ(match.of_parameter[weight]->values[139], 139);
  EXPECT_EQ(match.unmatched_layers, std::vector<std::string>{"inc/conv"});
}

TEST(Weights, OtherNetsWeightsAreRefusedOrReported) {
  LoadedNetwork loaded = load(net_text);
  Weights other{{"elsewhere", {counting({1})}}};
  WeightMatch match = match_weights(loaded.network, other, "f");
  EXPECT_EQ(match.unused_layers, std::vector<std::string>{"elsewhere"});
  EXPECT_EQ(match.unmatched_layers.size(), 2u);
  Weights wrong_shape{{"fc", {counting({7, 21}), counting({7})}}};
  EXPECT_EQ(error_of([&] { match_weights(loaded.network, wrong_shape, "f"); }),
            "f: layer 'fc' has a weight of shape 7x21, the network needs 7x20 (net.prototxt:3); rename the "
            "layer to "
            "leave it untrained");
  Weights too_few{{"fc", {counting({7, 20})}}};
  EXPECT_NE(error_of([&] { match_weights(loaded.network, too_few, "f"); }).find("has 1 blobs"),
            std::string::npos);
}

TEST(Weights, BrokenFilesAreRefused) {
  TemporaryFolder folder;
  caffe::NetParameter net;
  caffe::BlobProto& blob = *net.add_layer()->add_blobs();
  blob.mutable_shape()->add_dim(3);
  blob.add_data(1);
  write_binary(folder.file("short"), net);
  EXPECT_NE(error_of([&] { read_weights(folder.file("short")); }).find("1 values for its shape 3"),
            std::string::npos);
  LoadedNetwork loaded = load(net_text);
  write_weights_hdf5(folder.file("h"), weights_of(loaded.network));
  std::string bytes = read_file(folder.file("h"));
  write_file_atomically(folder.file("cut"), std::string_view(bytes).substr(0, bytes.size() / 2));
  EXPECT_NE(error_of([&] { read_weights(folder.file("cut")); }).find("cut: "), std::string::npos);
  EXPECT_NE(error_of([&] { read_weights(folder.file("missing")); }).find("No such file"), std::string::npos);
}

TEST(SolverStates, RoundTripInBothFormats) {
  TemporaryFolder folder;
  SolverStateFile state{1200, 3, "nets/a.caffemodel", {counting({2, 3}), counting({4}), counting({})}};
  write_solver_state(folder.file("s"), state);
  write_solver_state_hdf5(folder.file("s.h5"), state);
  EXPECT_EQ(read_solver_state(folder.file("s")), state);
  EXPECT_EQ(read_solver_state(folder.file("s.h5")), state);
}

}  // namespace
}  // namespace cortado
