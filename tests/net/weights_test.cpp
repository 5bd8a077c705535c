#include "cortado/net/weights.h"

#include <chrono>
#include <numeric>
#include <thread>
#include <utility>

#include "cortado/base/file.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/read_net.h"
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
  return collect_weights(
      network, [&](ParameterIndex p) { return counting(network.parameters()[p].spec.shape).values; });
}

TEST(Weights, CaffemodelAndHdf5RoundTrip) {
  ScratchFolder folder;
  LoadedNetwork loaded = load(net_text);
  Weights weights = weights_of(loaded.network);
  ASSERT_EQ(weights.size(), 2u);
  write_caffemodel(folder.file("w.caffemodel"), loaded.net, weights);
  write_weights_hdf5(folder.file("w.caffemodel.h5"), weights);
  EXPECT_EQ(read_weights(folder.file("w.caffemodel")), weights);
  Weights by_name = read_weights(folder.file("w.caffemodel.h5"));  // sorted by name
  for (LayerWeights& layer : by_name) EXPECT_EQ(std::exchange(layer.number, 0), LayerWeights::last);
  EXPECT_EQ(by_name, (Weights{weights[1], weights[0]}));
}

TEST(Weights, ACaffemodelHoldsTheLayersOfTheNet) {
  ScratchFolder folder;
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
  ScratchFolder folder;
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
  const ParameterIndex weight = loaded.network.nodes()[loaded.network.node("fc")].parameters[0];
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

// A caffemodel's layers go to the net's first layer of their name, as in Caffe; those of a snapshot each to
// its own.
TEST(Weights, LayersOfOneName) {
  ScratchFolder folder;
  auto product = [](const std::string& bottom, const std::string& top) {
    return "layer { name: 'a' type: 'InnerProduct' bottom: '" + bottom + "' top: '" + top +
           "' inner_product_param { num_output: 4 bias_term: false } }\n";
  };
  LoadedNetwork loaded = load(
      "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 4 } } }\n"
      "layer { name: 'a' type: 'ReLU' bottom: 'x' top: 'r' }\n" +
      product("r", "s") + product("s", "t"));
  Weights weights = weights_of(loaded.network);
  weights[1].blobs[0].values[0] = 17;
  write_caffemodel(folder.file("w"), loaded.net, weights);
  const Weights read = read_weights(folder.file("w"));
  EXPECT_EQ(read, weights);
  WeightMatch first = match_weights(loaded.network, read, "w");
  EXPECT_EQ(first.of_parameter, (IndexedVector<ParameterIndex, const Blob*>{&read[1].blobs[0], nullptr}));
  EXPECT_EQ(first.unmatched_layers, std::vector<std::string>{"a#3"});
  WeightMatch each = match_weights(loaded.network, read, "w", SameName::each);
  EXPECT_EQ(each.of_parameter,
            (IndexedVector<ParameterIndex, const Blob*>{&read[0].blobs[0], &read[1].blobs[0]}));
  EXPECT_NE(error_of([&] { write_weights_hdf5(folder.file("h"), weights); }).find("two layers"),
            std::string::npos);
}

TEST(Weights, Hdf5HasTheSameBytesWheneverItIsWritten) {
  ScratchFolder folder;
  const Weights weights{{"fc", {counting({2, 3})}}};
  write_weights_hdf5(folder.file("first"), weights);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // HDF5 counts in seconds
  write_weights_hdf5(folder.file("second"), weights);
  EXPECT_EQ(read_file(folder.file("first")), read_file(folder.file("second")));
}

// Caffe's HDF5 has a shared parameter once, with the layer that declares it; a caffemodel has it with each
// layer.
TEST(Weights, Hdf5HasSharedParametersOnce) {
  ScratchFolder folder;
  auto product = [](const std::string& name) {
    return "layer { name: '" + name + "' type: 'InnerProduct' bottom: 'x' top: '" + name +
           "' param { name: 'w' } inner_product_param { num_output: 2 } }\n";
  };
  LoadedNetwork loaded =
      load("layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } }\n" +
           product("a") + product("b"));
  const auto values = [](ParameterIndex p) {
    return std::vector<float>(p.value() == 0 ? 6 : 2, static_cast<float>(p.value()));
  };
  write_weights_hdf5(folder.file("w.h5"), collect_weights(loaded.network, values, /*once=*/true));
  Weights read = read_weights(folder.file("w.h5"));
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].blobs.size(), 2u);
  EXPECT_TRUE(read[1].blobs[0].values.empty());
  WeightMatch match = match_weights(loaded.network, read, "w.h5");
  EXPECT_EQ(match.of_parameter, (IndexedVector<ParameterIndex, const Blob*>{
                                    &read[0].blobs[0], &read[0].blobs[1], &read[1].blobs[1]}));
  EXPECT_TRUE(match.unmatched_layers.empty());
  // What the layer that declares it lacks is missing.
  read[0].blobs.erase(read[0].blobs.begin());
  read[0].blobs.insert(read[0].blobs.begin(), Blob{});
  EXPECT_NE(error_of([&] { match_weights(loaded.network, read, "w.h5"); }).find("layer 'a' has 1 blobs"),
            std::string::npos);
}

// A layer's group may have been made on the way to another layer's.
TEST(Weights, Hdf5HasLayersWithinTheNamesOfOthers) {
  ScratchFolder folder;
  const Weights weights{{"a/b", {counting({2})}}, {"a", {counting({3})}}};
  write_weights_hdf5(folder.file("w.h5"), weights);
  Weights read = read_weights(folder.file("w.h5"));
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].layer, "a");
  EXPECT_EQ(read[0].blobs, weights[1].blobs);
  EXPECT_EQ(read[1].blobs, weights[0].blobs);
}

// Caffe writes the inputs of a deploy into its caffemodels by name alone.
TEST(Weights, BareInputsNeedNoShape) {
  ScratchFolder folder;
  LoadedNetwork loaded = load(net_text);
  Weights weights = weights_of(loaded.network);
  write_caffemodel(folder.file("w"), loaded.net, weights);
  caffe::NetParameter net;
  read_binary(folder.file("w"), net);
  net.mutable_layer()->DeleteSubrange(0, 1);
  net.add_input("x");
  write_binary(folder.file("bare"), net);
  EXPECT_EQ(read_weights(folder.file("bare")), weights);
  EXPECT_NE(error_of([&] {
              load_network(net_of_message(net, "bare"), net_state(Phase::test), declared_source_shapes);
            }).find("input 'x' has no shape"),
            std::string::npos);
}

TEST(Weights, BrokenFilesAreRefused) {
  ScratchFolder folder;
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
  ScratchFolder folder;
  SolverStateFile state{
      1200, 3, "nets/a.caffemodel", "AdaGrad", {counting({2, 3}), counting({4}), counting({})}};
  write_solver_state(folder.file("s"), state);
  write_solver_state_hdf5(folder.file("s.h5"), state);
  EXPECT_EQ(read_solver_state(folder.file("s")), state);
  EXPECT_EQ(read_solver_state(folder.file("s.h5")), state);
}

}  // namespace
}  // namespace cortado
