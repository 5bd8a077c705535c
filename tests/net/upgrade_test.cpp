#include "cortado/net/upgrade.h"

#include "cortado/layers/source.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/read_net.h"
#include "cortado/net/text_format.h"

#include "tests/net/net_testing.h"

namespace cortado {
namespace {

void expect_upgrade(const std::string& old, const std::string& expected) {
  caffe::NetParameter net;
  parse_text(expected, "expected", net);
  EXPECT_EQ(parse_net(old, "old").net.DebugString(), net.DebugString());
}

TEST(Upgrade, V1LayersBecomeLayers) {
  expect_upgrade(
      "layers { name: 'c' type: CONVOLUTION bottom: 'a' top: 'b' blobs_lr: 1 blobs_lr: 2 weight_decay: 1"
      "  weight_decay: 0 param: 'w' param: '' blob_share_mode: PERMISSIVE convolution_param { num_output: 3 }"
      "  include { phase: TRAIN } }"
      "layers { name: 'l' type: SOFTMAX_LOSS bottom: 'b' bottom: 'y' loss_weight: 0.5 }",
      "layer { name: 'c' type: 'Convolution' bottom: 'a' top: 'b' include { phase: TRAIN }"
      "  param { name: 'w' share_mode: PERMISSIVE lr_mult: 1 decay_mult: 1 } param { lr_mult: 2 decay_mult: "
      "0 }"
      "  convolution_param { num_output: 3 } }"
      "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'b' bottom: 'y' loss_weight: 0.5 }");
}

TEST(Upgrade, EveryV1TypeHasAName) {
  const auto* types = caffe::V1LayerParameter::LayerType_descriptor();
  for (int i = 0; i < types->value_count(); ++i) {
    caffe::NetParameter net;
    net.add_layers()->set_type(static_cast<caffe::V1LayerParameter::LayerType>(types->value(i)->number()));
    NetFile file = net_of_message(net, "n");
    EXPECT_EQ(file.net.layer(0).type().empty(), types->value(i)->name() == "NONE") << types->value(i)->name();
  }
}

TEST(Upgrade, V0LayersAndPaddingLayers) {
  expect_upgrade(
      "layers { layer { name: 'd' type: 'data' source: 'db' meanfile: 'm' batchsize: 4 cropsize: 3 mirror: "
      "true }"
      "  top: 'x' }"
      "layers { layer { name: 'p' type: 'padding' pad: 2 } bottom: 'x' top: 'px' }"
      "layers { layer { name: 'c' type: 'conv' num_output: 8 kernelsize: 5 group: 2 stride: 4 blobs_lr: 1.0"
      "  biasterm: false weight_filler { type: 'gaussian' std: 0.01 } } bottom: 'px' top: 'c' }"
      "layers { layer { name: 'n' type: 'lrn' local_size: 3 alpha: 0.1 } bottom: 'c' top: 'n' }"
      "layers { layer { name: 'q' type: 'pool' pool: AVE kernelsize: 3 stride: 2 } bottom: 'n' top: 'q' }"
      "layers { layer { name: 'i' type: 'innerproduct' num_output: 10 } bottom: 'q' top: 'i' }",
      "layer { name: 'd' type: 'Data' top: 'x' transform_param { mean_file: 'm' crop_size: 3 mirror: true }"
      "  data_param { source: 'db' batch_size: 4 } }"
      "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' param { lr_mult: 1 }"
      "  convolution_param { num_output: 8 bias_term: false pad: 2 kernel_size: 5 group: 2 stride: 4"
      "    weight_filler { type: 'gaussian' std: 0.01 } } }"
      "layer { name: 'n' type: 'LRN' bottom: 'c' top: 'n' lrn_param { local_size: 3 alpha: 0.1 } }"
      "layer { name: 'q' type: 'Pooling' bottom: 'n' top: 'q'"
      "  pooling_param { pool: AVE kernel_size: 3 stride: 2 } }"
      "layer { name: 'i' type: 'InnerProduct' bottom: 'q' top: 'i' inner_product_param { num_output: 10 } }");
}

TEST(Upgrade, TransformsLeaveTheDataParameters) {
  expect_upgrade("layers { type: DATA data_param { source: 'db' scale: 0.5 mean_file: 'm' mirror: true } }",
                 "layer { type: 'Data' data_param { source: 'db' }"
                 "  transform_param { scale: 0.5 mean_file: 'm' mirror: true } }");
  expect_upgrade("layers { type: IMAGE_DATA image_data_param { crop_size: 5 } }",
                 "layer { type: 'ImageData' image_data_param { } transform_param { crop_size: 5 } }");
}

// Caffe upgrades the transformations of V1 layers alone, and reads those of no data parameter.
TEST(Upgrade, TransformsInDataParametersOfCurrentLayersHaveNoEffect) {
  const NetFile file = parse_net(
      "layer { name: 'd' type: 'Data' data_param { source: 'db' batch_size: 1 scale: 0.5 mean_file: 'm'\n"
      "  crop_size: 5 mirror: true rand_skip: 9 force_encoded_color: true } transform_param { scale: 3 } }\n"
      "layer { name: 'i' type: 'ImageData' image_data_param { batch_size: 1 crop_size: 5 rand_skip: 7 } }",
      "n");
  EXPECT_EQ(
      file.warnings,
      (std::vector<std::string>{
          "n:1: layer 'd': data_param.scale has no effect, as in Caffe; set it in transform_param",
          "n:1: layer 'd': data_param.mean_file has no effect, as in Caffe; set it in transform_param",
          "n:1: layer 'd': data_param.crop_size has no effect, as in Caffe; set it in transform_param",
          "n:1: layer 'd': data_param.mirror has no effect, as in Caffe; set it in transform_param",
          "n:1: layer 'd': data_param.force_encoded_color has no effect, as in Caffe; set force_color in "
          "transform_param",
          "n:1: layer 'd': data_param.rand_skip has no effect, as in Caffe; remove it",
          "n:3: layer 'i': image_data_param.crop_size has no effect, as in Caffe; set it in "
          "transform_param"}));
  const DeclaredNet net = declare_net(file, net_state(Phase::train));
  const SourceOptions& data = dynamic_cast<const Source&>(*net.layers[0].layer).options();
  EXPECT_EQ(data.transform.scale, 3);
  EXPECT_EQ(data.transform.mean_file, "");
  EXPECT_EQ(data.transform.crop_size, 0);
  EXPECT_FALSE(data.transform.mirror);
  EXPECT_FALSE(data.transform.force_color);
  EXPECT_EQ(data.rand_skip, 0);
  const SourceOptions& images = dynamic_cast<const Source&>(*net.layers[1].layer).options();
  EXPECT_EQ(images.transform.crop_size, 0);
  EXPECT_EQ(images.rand_skip, 7);
  EXPECT_TRUE(parse_net("layers { type: DATA data_param { crop_size: 5 } }", "n").warnings.empty());
}

TEST(Upgrade, InputFieldsBecomeAnInputLayerInFront) {
  expect_upgrade(
      "input: 'x' input: 'y' input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8"
      " input_dim: 1 input_dim: 1 input_dim: 1 input_dim: 2 layer { name: 'r' type: 'ReLU' }",
      "layer { name: 'input' type: 'Input' top: 'x' top: 'y' input_param {"
      "  shape { dim: 1 dim: 3 dim: 8 dim: 8 } shape { dim: 1 dim: 1 dim: 1 dim: 2 } } }"
      "layer { name: 'r' type: 'ReLU' }");
  expect_upgrade("input: 'x' input_shape { dim: 7 }",
                 "layer { name: 'input' type: 'Input' top: 'x' input_param { shape { dim: 7 } } }");
  EXPECT_NE(error_of([] { parse_net("input: 'x' input_dim: 3", "n"); }).find("four"), std::string::npos);
  // More shapes than inputs are passed over; without any there is nothing to make a layer of.
  expect_upgrade("input: 'x' input_shape { dim: 7 } input_shape { dim: 8 }",
                 "layer { name: 'input' type: 'Input' top: 'x' input_param { shape { dim: 7 } } }");
  expect_upgrade("input: 'x' input: 'y' layer { name: 'r' type: 'ReLU' }",
                 "layer { name: 'r' type: 'ReLU' }");
  EXPECT_EQ(parse_net("input: 'x' input: 'y'", "n").shapeless_inputs, (std::vector<std::string>{"x", "y"}));
}

TEST(Upgrade, BatchNormMultipliersBecomeZero) {
  expect_upgrade(
      "layer { type: 'BatchNorm' param { lr_mult: 1 } param { } param { name: 's' } }",
      "layer { type: 'BatchNorm' param { lr_mult: 0 decay_mult: 0 } param { lr_mult: 0 decay_mult: 0 }"
      "  param { name: 's' lr_mult: 0 decay_mult: 0 } }");
}

TEST(Upgrade, LinesFollowTheLayers) {
  NetFile file = parse_net(
      "input: 'x'\ninput_shape { dim: 1 }\nlayers {\n layer { type: 'padding' } bottom: 'x' top: 'p' }\n"
      "layers { layer { type: 'conv' } bottom: 'p' top: 'c' }\n",
      "n");
  ASSERT_EQ(file.net.layer_size(), 2);
  EXPECT_EQ(file.layer_lines, (std::vector<int>{1, 5}));
}

TEST(Upgrade, MixedGenerationsAreRefused) {
  EXPECT_NE(error_of([] { parse_net("layer { } layers { }", "n"); }).find("both"), std::string::npos);
  EXPECT_NE(error_of([] { parse_net("layers { layer { type: 'foo' } }", "n"); }).find("n:1: "),
            std::string::npos);
}

}  // namespace
}  // namespace cortado
