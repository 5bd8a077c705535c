#include "cortado/net/from_caffe.h"

#include <fmt/format.h>
#include <set>

#include "cortado/layers/convolution.h"
#include "cortado/layers/filter.h"
#include "cortado/layers/im2col.h"
#include "cortado/layers/infogain_loss.h"
#include "cortado/layers/normalize.h"
#include "cortado/layers/parameter.h"
#include "cortado/layers/permute.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/precision.h"
#include "cortado/layers/recurrent.h"
#include "cortado/layers/resampling.h"
#include "cortado/layers/scale.h"
#include "cortado/layers/shuffle_channel.h"
#include "cortado/layers/sigmoid_cross_entropy_loss.h"
#include "cortado/layers/softmax_loss.h"
#include "cortado/layers/source.h"
#include "cortado/layers/spp.h"
#include "cortado/net/text_format.h"

#include "tests/net/net_testing.h"

namespace cortado {
namespace {

LayerDeclaration declare(const std::string& text) {
  caffe::LayerParameter layer;
  parse_text("name: 'x' " + text, "layer", layer);
  return declare_layer(layer, {"net.prototxt", 7});
}

template <typename Type>
const Type& as(const LayerDeclaration& declaration) {
  return dynamic_cast<const Type&>(*declaration.layer);
}

std::string declare_error(const std::string& text) {
  return error_of([&] { declare(text); });
}

// What layers that have required options are given.
std::string required_options(std::string_view type) {
  static const std::map<std::string_view, std::string> options = {
      {"Clip", "clip_param { min: 0 max: 1 }"},
      {"Convolution", "convolution_param { num_output: 1 kernel_size: 1 }"},
      {"Deconvolution", "convolution_param { num_output: 1 kernel_size: 1 }"},
      {"InnerProduct", "inner_product_param { num_output: 1 }"},
      {"Embed", "embed_param { num_output: 1 input_dim: 1 }"},
      {"HDF5Output", "hdf5_output_param { file_name: 'a.h5' }"},
      {"Data", "data_param { source: 'a' batch_size: 1 }"},
      {"ImageData", "image_data_param { source: 'a' batch_size: 1 }"},
      {"HDF5Data", "hdf5_data_param { source: 'a' batch_size: 1 }"},
      {"MemoryData", "memory_data_param { batch_size: 1 channels: 1 height: 1 width: 1 }"},
      {"Parameter", "parameter_param { shape { dim: 1 } }"},
      {"Filter", "filter_param { samples: 1 }"},
      {"LSTM", "recurrent_param { num_output: 1 }"},
      {"RNN", "recurrent_param { num_output: 1 }"},
      {"VolumeData", "volume_data_param { source: 'a' }"},
      {"WindowData", "window_data_param { source: 'a' batch_size: 1 } transform_param { crop_size: 1 }"},
      {"SPP", "spp_param { pyramid_height: 1 }"},
      {"Tile", "tile_param { tiles: 1 }"}};
  const auto found = options.find(type);
  return found == options.end() ? "" : found->second;
}

TEST(FromCaffe, EverySupportedTypeBecomesALayerOfThatType) {
  for (std::string_view type : supported_layer_types()) {
    const std::string text = "type: '" + std::string(type) + "' " + required_options(type);
    ASSERT_EQ(declare_error(text), "");
    EXPECT_EQ(declare(text).layer->type(), type);
  }
}

LayerPtr layer_of(std::string_view type) {
  return declare("type: '" + std::string(type) + "' " + required_options(type)).layer;
}

// All types, each by its first output: one that is f32, or bf16, whatever is read, or that follows input 0.
TEST(FromCaffe, EveryLayerKnowsWhatOfItIsBf16) {
  const std::set<std::string_view> begin = {"Convolution", "Deconvolution", "InnerProduct"};
  const std::set<std::string_view> end = {"Accuracy",
                                          "ArgMax",
                                          "ContrastiveLoss",
                                          "Data",
                                          "DummyData",
                                          "Embed",
                                          "EuclideanLoss",
                                          "HDF5Data",
                                          "HDF5Output",
                                          "HingeLoss",
                                          "ImageData",
                                          "InfogainLoss",
                                          "Input",
                                          "MemoryData",
                                          "MultinomialLogisticLoss",
                                          "Reduction",
                                          "SigmoidCrossEntropyLoss",
                                          "Softmax",
                                          "SoftmaxWithLoss",
                                          "VolumeData",
                                          "WindowData"};
  const auto type_after = [](const Layer& layer, ElementType input) {
    return output_type(layer, {&input, 1}, 0);
  };
  for (std::string_view type : supported_layer_types()) {
    const LayerPtr layer = layer_of(type);
    EXPECT_EQ(type_after(*layer, ElementType::f32) == ElementType::bf16, begin.contains(type)) << type;
    EXPECT_EQ(type_after(*layer, ElementType::bf16) == ElementType::f32, end.contains(type)) << type;
  }
}

TEST(FromCaffe, IndicesOfPoolingAreF32) {
  const ElementType input = ElementType::bf16;
  EXPECT_EQ(output_type(*layer_of("Pooling"), {&input, 1}, 1), ElementType::f32);
}

TEST(FromCaffe, EveryLayerKnowsWhatItMayRunWith) {
  std::set<std::string> chains;
  for (std::string_view first : supported_layer_types())
    for (std::string_view next : supported_layer_types())
      if (layer_of(first)->may_fuse_with(*layer_of(next))) chains.insert(fmt::format("{} {}", first, next));
  EXPECT_EQ(chains,
            (std::set<std::string>{"BatchNorm Clip", "BatchNorm ReLU", "BatchNorm ReLU6", "BatchNorm Scale",
                                   "BatchNorm Swish", "Convolution ReLU", "Eltwise ReLU", "InnerProduct ReLU",
                                   "Scale Clip", "Scale ReLU", "Scale ReLU6", "Scale Swish"}));
}

TEST(FromCaffe, UnknownTypesAreRefusedByNameAndLine) {
  EXPECT_EQ(declare_error("type: 'Convolutoin'"),
            "net.prototxt:7: layer 'x': type 'Convolutoin' is not supported; did you mean 'Convolution'?");
  EXPECT_EQ(declare_error("type: 'Python'"),
            "net.prototxt:7: layer 'x': Caffe's type 'Python' is not supported: its class computes it, which "
            "this program has not; run the net in Python, by cortado.caffe");
  EXPECT_EQ(declare_error(""), "net.prototxt:7: layer 'x': no type is given");
}

TEST(FromCaffe, SwishAndClipOptions) {
  const auto function = [](const std::string& text) { return as<Pointwise>(declare(text)).function(); };
  EXPECT_EQ(std::get<SwishOptions>(function("type: 'Swish'")).beta, 1);
  EXPECT_EQ(std::get<SwishOptions>(function("type: 'Swish' swish_param { beta: 1.5 }")).beta, 1.5);
  const auto clip = std::get<ClipOptions>(function("type: 'Clip' clip_param { min: -2 max: 6 }"));
  EXPECT_EQ(clip.min, -2);
  EXPECT_EQ(clip.max, 6);
  EXPECT_EQ(declare_error("type: 'Clip' clip_param { max: 6 }"),
            "net.prototxt:7: layer 'x': clip_param needs both min and max");
  EXPECT_EQ(declare_error("type: 'Clip' clip_param { min: 7 max: 6 }"),
            "net.prototxt:7: layer 'x': min is 7, above max, which is 6; exchange them");
}

TEST(FromCaffe, ThresholdOptions) {
  const auto threshold = [](const std::string& text) {
    return std::get<ThresholdOptions>(as<Pointwise>(declare(text)).function()).threshold;
  };
  EXPECT_EQ(threshold("type: 'Threshold'"), 0);
  EXPECT_EQ(threshold("type: 'Threshold' threshold_param { threshold: 0.25 }"), 0.25);
  EXPECT_FALSE(declare("type: 'Threshold'").layer->differentiable(0));
  EXPECT_TRUE(declare("type: 'ReLU6'").layer->differentiable(0));
}

TEST(FromCaffe, PermuteAndNormalizeOptions) {
  EXPECT_EQ(as<Permute>(declare("type: 'Permute' permute_param { order: 0 order: 2 order: 3 order: 1 }"))
                .options()
                .order,
            (std::vector<int64_t>{0, 2, 3, 1}));
  EXPECT_EQ(declare_error("type: 'Permute' permute_param { order: 0 order: 0 }"),
            "net.prototxt:7: layer 'x': order has axis 0 twice; give each axis once");
  EXPECT_EQ(as<Normalize>(declare("type: 'Normalize'")).options(), (NormalizeOptions{.eps = 1e-10f}));
  EXPECT_EQ(as<Normalize>(declare("type: 'Normalize' norm_param { across_spatial: false scale_filler {"
                                  " type: 'constant' value: 20 } channel_shared: false eps: 0.5 }"))
                .options(),
            (NormalizeOptions{
                .across_spatial = false, .channel_shared = false, .eps = 0.5, .filler = {.value = 20}}));
}

TEST(FromCaffe, UpsampleAndInterpOptions) {
  const auto upsample = [](const std::string& text) {
    return std::get<UpsampleOptions>(as<Resampling>(declare("type: 'Upsample' " + text)).options());
  };
  EXPECT_EQ(upsample(""), (UpsampleOptions{.scale = 2}));
  EXPECT_EQ(upsample("upsample_param { scale: 3 mode: BILINEAR }"),
            (UpsampleOptions{.scale = 3, .mode = UpsampleOptions::Mode::linear}));
  const auto interp = [](const std::string& text) {
    return std::get<InterpOptions>(
        as<Resampling>(declare("type: 'Interp' interp_param { " + text + " }")).options());
  };
  EXPECT_EQ(interp("height: 3 width: 4 pad_beg: -1 pad_end: -2"),
            (InterpOptions{.height = 3, .width = 4, .pad_begin = -1, .pad_end = -2}));
  EXPECT_EQ(interp("zoom_factor: 3 shrink_factor: 4"), (InterpOptions{.zoom_factor = 3, .shrink_factor = 4}));
  EXPECT_EQ(declare_error("type: 'Interp' interp_param { zoom_factor: 0 }"),
            "net.prototxt:7: layer 'x': zoom_factor is 0, must be positive");
}

TEST(FromCaffe, ShuffleChannelOptions) {
  const auto group = [](const std::string& text) {
    return as<ShuffleChannel>(declare(text)).options().group;
  };
  EXPECT_EQ(group("type: 'ShuffleChannel'"), 1);
  EXPECT_EQ(group("type: 'ShuffleChannel' shuffle_channel_param { group: 3 }"), 3);
  EXPECT_EQ(declare_error("type: 'ShuffleChannel' shuffle_channel_param { group: 0 }"),
            "net.prototxt:7: layer 'x': group must be given and positive");
}

TEST(FromCaffe, ConvolutionOptions) {
  auto one =
      as<Convolution>(declare("type: 'Convolution' convolution_param { num_output: 6 kernel_size: 3 stride: 2"
                              " pad: 1 group: 3 dilation: 2 bias_term: false weight_filler { type: 'msra'"
                              " variance_norm: FAN_OUT } }"))
          .options();
  EXPECT_EQ(one.num_output, 6);
  EXPECT_EQ(one.kernel, std::vector<int64_t>{3});
  EXPECT_EQ(one.stride, std::vector<int64_t>{2});
  EXPECT_EQ(one.pad, std::vector<int64_t>{1});
  EXPECT_EQ(one.dilation, std::vector<int64_t>{2});
  EXPECT_EQ(one.group, 3);
  EXPECT_FALSE(one.bias_term);
  EXPECT_EQ(one.weight_filler.type, Filler::Type::msra);
  EXPECT_EQ(one.weight_filler.variance_norm, Filler::VarianceNorm::fan_out);
  auto pair =
      as<Convolution>(declare("type: 'Convolution' convolution_param { num_output: 6 kernel_h: 1 kernel_w: 7"
                              " pad_w: 3 }"))
          .options();
  EXPECT_EQ(pair.kernel, (std::vector<int64_t>{1, 7}));
  EXPECT_EQ(pair.pad, (std::vector<int64_t>{0, 3}));
}

TEST(FromCaffe, Im2colOptions) {
  EXPECT_EQ(as<Im2col>(declare("type: 'Im2col' convolution_param { kernel_h: 3 kernel_w: 2 stride: 2 pad: 1"
                               " dilation: 2 }"))
                .options(),
            (Im2colOptions{.kernel = {3, 2}, .stride = {2}, .pad = {1}, .dilation = {2}}));
}

TEST(FromCaffe, WeightsInAModelFileAreRefused) {
  EXPECT_EQ(load_error("layer { name: 'i' type: 'ReLU' blobs { data: 1 } }"),
            "net.prototxt:1: layer 'i': weights (blobs) within a model file are not read; keep them in a "
            "caffemodel and load that");
}

TEST(FromCaffe, WrongOptionsAreRefused) {
  auto convolution = [](const std::string& options) {
    return declare_error("type: 'Convolution' convolution_param { " + options + " }");
  };
  EXPECT_NE(convolution("kernel_size: 3").find("num_output must be given and positive"), std::string::npos);
  EXPECT_NE(convolution("num_output: 1 kernel_size: 3 kernel_h: 3 kernel_w: 3").find("kernel_size"),
            std::string::npos);
  EXPECT_NE(convolution("num_output: 1 kernel_h: 3").find("given together"), std::string::npos);
  EXPECT_NE(convolution("num_output: 1 kernel_size: 4000000000").find("more than"), std::string::npos);
  EXPECT_NE(convolution("num_output: 1 group: 0 kernel_size: 1").find("group"), std::string::npos);
  EXPECT_NE(convolution("num_output: 1 kernel_size: 1 weight_filler { type: 'xavie' }")
                .find("did you mean 'xavier'"),
            std::string::npos);
  const auto filled = [&](const std::string& filler) {
    return convolution("num_output: 1 kernel_size: 1 weight_filler { " + filler + " }");
  };
  EXPECT_NE(filled("type: 'uniform' min: 2 max: 1").find("min 2 is more than max 1"), std::string::npos);
  EXPECT_EQ(filled("type: 'uniform' min: 1 max: 1"), "");
  EXPECT_NE(filled("type: 'gaussian' std: 0").find("std is 0, must be positive"), std::string::npos);
  EXPECT_NE(filled("type: 'gaussian' sparse: -2").find("sparse is -2"), std::string::npos);
  EXPECT_NE(filled("type: 'xavier' sparse: 1").find("sparse is for type 'gaussian'"), std::string::npos);
  EXPECT_NE(declare_error("type: 'Concat' concat_param { axis: 1 concat_dim: 1 }").find("concat_dim"),
            std::string::npos);
}

TEST(FromCaffe, LayersRefuseWhatDoesNotFitTheirInputs) {
  std::string net =
      "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 4 dim: 5 dim: 5 } } }\n"
      "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param {";
  EXPECT_EQ(load_error(net + " num_output: 6 kernel_size: 3 group: 3 } }").find("net.prototxt:2: layer 'c'"),
            0u);
  EXPECT_EQ(load_error(net + " num_output: 6 kernel_size: 0 } }").find("net.prototxt:2: layer 'c'"), 0u);
  EXPECT_EQ(load_error(net + " num_output: 6 kernel_size: 9 } }").find("net.prototxt:2: layer 'c'"), 0u);
  EXPECT_EQ(load_error(net + " num_output: 6 kernel_size: 5 } }"), "");
}

TEST(FromCaffe, PoolingOptions) {
  auto options = [](const std::string& text) {
    return as<Pooling>(declare("type: 'Pooling' pooling_param { " + text + " }")).options();
  };
  EXPECT_EQ(
      options("pool: AVE kernel_size: 3 stride: 2 pad: 1"),
      (PoolingOptions{.method = PoolingOptions::Method::average, .kernel = {3}, .stride = {2}, .pad = {1}}));
  EXPECT_EQ(options("kernel_h: 3 kernel_w: 2 stride_h: 2 stride_w: 1 round_mode: FLOOR"),
            (PoolingOptions{.kernel = {3, 2}, .stride = {2, 1}, .rounding = Rounding::down}));
  EXPECT_EQ(options("kernel_nd: 1 kernel_nd: 2 kernel_nd: 2 stride_nd: 2"),
            (PoolingOptions{.kernel = {1, 2, 2}, .stride = {2}}));
  EXPECT_NE(declare_error("type: 'Pooling' pooling_param { kernel_size: 1 kernel_nd: 1 }"), "");
}

TEST(FromCaffe, LossNormalization) {
  auto softmax = [](const std::string& p) {
    return as<SoftmaxLoss>(declare("type: 'SoftmaxWithLoss' loss_param { " + p + " }")).options();
  };
  EXPECT_EQ(softmax("").normalization, Normalization::valid);
  EXPECT_EQ(softmax("normalize: false").normalization, Normalization::batch_size);
  EXPECT_EQ(softmax("normalize: false normalization: FULL").normalization, Normalization::full);
  EXPECT_EQ(softmax("ignore_label: 255").ignore_label, 255);
  EXPECT_EQ(softmax("").label_smoothing, 0);
  EXPECT_FLOAT_EQ(static_cast<float>(softmax("label_smoothing: 0.1").label_smoothing), 0.1F);
  for (const char* value : {"-0.1", "1"})
    EXPECT_NE(
        declare_error(std::string("type: 'SoftmaxWithLoss' loss_param { label_smoothing: ") + value + " }")
            .find("; use a value of at least 0 and below 1"),
        std::string::npos)
        << value;
  EXPECT_NE(declare_error("type: 'SigmoidCrossEntropyLoss' loss_param { label_smoothing: 0.1 }")
                .find("SigmoidCrossEntropyLoss takes no label_smoothing; remove it"),
            std::string::npos);
  auto sigmoid = [](const std::string& p) {
    return as<SigmoidCrossEntropyLoss>(declare("type: 'SigmoidCrossEntropyLoss' loss_param { " + p + " }"))
        .options()
        .normalization;
  };
  EXPECT_EQ(sigmoid(""), Normalization::batch_size);
  EXPECT_EQ(sigmoid("normalize: true"), Normalization::valid);
}

TEST(FromCaffe, InfogainLossReadsItsMatrixUnlessItIsABottom) {
  const std::string options = "infogain_loss_param { axis: 2 source: '" CORTADO_SOURCE_DIR
                              "/tests/net/infogain_2x2.binaryproto' } loss_param { ignore_label: 3 }";
  const LayerDeclaration two = declare("type: 'InfogainLoss' bottom: 'x' bottom: 'y' " + options);
  EXPECT_EQ(as<InfogainLoss>(two).matrix(), (std::vector<float>{1, 0.5, 0.25, 2}));
  EXPECT_EQ(as<InfogainLoss>(two).options().axis, 2);
  EXPECT_EQ(as<InfogainLoss>(two).options().ignore_label, 3);
  const LayerDeclaration three =
      declare("type: 'InfogainLoss' bottom: 'x' bottom: 'y' bottom: 'h' " + options);
  EXPECT_TRUE(as<InfogainLoss>(three).matrix().empty());
  EXPECT_NE(declare_error("type: 'InfogainLoss' infogain_loss_param { source: '/no/such/file' }"), "");
  EXPECT_NE(declare_error("type: 'InfogainLoss' infogain_loss_param { source: '" CORTADO_SOURCE_DIR
                          "/tests/net/CMakeLists.txt' }")
                .find("is no matrix (a BlobProto); check infogain_loss_param.source"),
            std::string::npos);
}

TEST(FromCaffe, SppOptions) {
  EXPECT_EQ(as<Spp>(declare("type: 'SPP' spp_param { pyramid_height: 3 pool: AVE }")).options(),
            (SppOptions{.pyramid_height = 3, .method = SppOptions::Method::average}));
  EXPECT_EQ(declare_error("type: 'SPP' spp_param { pyramid_height: 2 pool: STOCHASTIC }"),
            "net.prototxt:7: layer 'x': SPP with stochastic pooling is not supported; use pool: MAX or AVE");
  EXPECT_EQ(declare_error("type: 'SPP'"),
            "net.prototxt:7: layer 'x': pyramid_height must be given and positive");
}

TEST(FromCaffe, RecurrentOptions) {
  const std::string options =
      " recurrent_param { num_output: 7 expose_hidden: true weight_filler { type: 'uniform' min: -0.1 max: "
      "0.2 "
      "} bias_filler { value: 1 } }";
  for (const auto& [type, kind] :
       {std::pair{"LSTM", RecurrentOptions::Kind::lstm}, std::pair{"RNN", RecurrentOptions::Kind::rnn}}) {
    const auto& read = as<Recurrent>(declare("type: '" + std::string(type) + "'" + options)).options();
    EXPECT_EQ(read.kind, kind);
    EXPECT_EQ(read.num_output, 7);
    EXPECT_TRUE(read.expose_hidden);
    EXPECT_EQ(read.weight_filler.type, Filler::Type::uniform);
    EXPECT_EQ(read.bias_filler.value, 1);
  }
  EXPECT_EQ(declare_error("type: 'LSTM'"),
            "net.prototxt:7: layer 'x': num_output must be given and positive");
  EXPECT_NE(declare_error("type: 'LSTMUnit'").find("use LSTM"), std::string::npos);
}

TEST(FromCaffe, FilterNeedsTheNumberThatPasses) {
  EXPECT_EQ(as<Filter>(declare("type: 'Filter' filter_param { samples: 3 }")).options().samples, 3);
  EXPECT_EQ(
      declare_error("type: 'Filter'"),
      "net.prototxt:7: layer 'x': how many samples pass depends on values, while shapes here are fixed; "
      "give the number that passes of every batch as filter_param { samples: ... }, or let a loss pass "
      "over samples by ignore_label");
}

TEST(FromCaffe, VolumeDataOptions) {
  const auto options = [](const std::string& text) {
    return dynamic_cast<const Source&>(*declare("type: 'VolumeData' " + text).layer).options();
  };
  const SourceOptions usual = options("volume_data_param { source: 'v.txt' }");
  EXPECT_EQ(usual.kind, SourceOptions::Kind::volume_data);
  EXPECT_EQ(usual.batch_size, 1);
  EXPECT_TRUE(usual.volumes == VolumeOptions{});
  const SourceOptions raw = options(
      "volume_data_param { source: 'v.txt' root_folder: '/r/' batch_size: 2 shuffle: true crop: 8 mirror: "
      "'dw' "
      "raw_shape: 5 raw_shape: 6 raw_shape: 7 raw_type: INT16 raw_label_type: FLOAT raw_offset: 12 } "
      "transform_param { scale: 2 mean_value: 3 }");
  EXPECT_EQ(raw.root_folder, "/r/");
  EXPECT_TRUE(raw.shuffle);
  EXPECT_EQ(raw.transform.mean_values, std::vector<double>{3});
  using Element = VolumeOptions::Element;
  EXPECT_TRUE(
      (raw.volumes == VolumeOptions{{8, 8, 8}, "dw", {1, 5, 6, 7}, Element::int16, Element::float32, 12}));
  EXPECT_EQ(options("volume_data_param { crop: 2 crop: 3 crop: 4 }").volumes.crop,
            (std::vector<int64_t>{2, 3, 4}));
  EXPECT_NE(
      declare_error("type: 'VolumeData' volume_data_param { crop: 2 crop: 3 }").find("crop has 2 numbers"),
      std::string::npos);
  EXPECT_NE(declare_error("type: 'VolumeData' volume_data_param { crop: 0 }").find("crop"),
            std::string::npos);
  EXPECT_NE(declare_error("type: 'VolumeData' volume_data_param { mirror: 'dx' }").find("'x' is no axis"),
            std::string::npos);
  EXPECT_NE(
      declare_error("type: 'VolumeData' volume_data_param { raw_shape: 2 }").find("raw_shape has 1 numbers"),
      std::string::npos);
  for (const char* other :
       {"mirror: true", "crop_size: 3", "mean_file: 'm'", "brightness: 0.5", "mixup_alpha: 1"})
    EXPECT_NE(declare_error(fmt::format("type: 'VolumeData' transform_param {{ {} }}", other))
                  .find("VolumeData takes scale and mean_value of transform_param"),
              std::string::npos)
        << other;
}

TEST(FromCaffe, WindowDataOptions) {
  const SourceOptions options =
      as<Source>(
          declare("type: 'WindowData' window_data_param { source: 'w.txt' batch_size: 8 fg_threshold: 0.5 "
                  "bg_threshold: 0.25 fg_fraction: 0.5 context_pad: 16 crop_mode: 'square' cache_images: "
                  "true root_folder: 'r/' } transform_param { crop_size: 227 mirror: true mean_value: 7 }"))
          .options();
  EXPECT_EQ(options.windows, (WindowOptions{.foreground_threshold = 0.5,
                                            .background_threshold = 0.25,
                                            .foreground_fraction = 0.5,
                                            .context_pad = 16,
                                            .square = true,
                                            .cache_images = true}));
  EXPECT_EQ(options.source, "w.txt");
  EXPECT_EQ(options.root_folder, "r/");
  EXPECT_EQ(options.transform.crop_size, 227);
  EXPECT_EQ(declare_error("type: 'WindowData' window_data_param { batch_size: 1 crop_mode: 'round' } "
                          "transform_param { crop_size: 5 }"),
            "net.prototxt:7: layer 'x': crop_mode is 'round'; use \"warp\" or \"square\"");
  EXPECT_NE(
      declare_error("type: 'WindowData' window_data_param { batch_size: 1 }").find("crop_size must be given"),
      std::string::npos);
}

TEST(FromCaffe, ParameterOptions) {
  EXPECT_EQ(
      as<Parameter>(declare("type: 'Parameter' parameter_param { shape { dim: 2 dim: 3 } }")).options().shape,
      (Shape{2, 3}));
  EXPECT_EQ(declare_error("type: 'Parameter'"),
            "net.prototxt:7: layer 'x': parameter_param.shape must be given, with a dim an axis");
}

TEST(FromCaffe, ScaleStartsAtOneUnlessAFillerIsGiven) {
  EXPECT_EQ(as<Scale>(declare("type: 'Scale'")).options().filler.value, 1);
  EXPECT_EQ(as<Scale>(declare("type: 'Scale' scale_param { filler { value: 3 } }")).options().filler.value,
            3);
}

TEST(FromCaffe, Sources) {
  auto data =
      as<Source>(
          declare("type: 'Data' data_param { source: 'db' batch_size: 8 backend: LMDB skip_corrupt: true"
                  " shuffle: true } transform_param { crop_size: 24 mirror: true mean_value: 1 mixup_alpha: "
                  "0.5 }"))
          .options();
  EXPECT_EQ(data.batch_size, 8);
  EXPECT_FALSE(data.leveldb);
  EXPECT_TRUE(data.skip_corrupt);
  EXPECT_TRUE(data.shuffle);
  EXPECT_EQ(data.transform.crop_size, 24);
  EXPECT_EQ(data.transform.mean_values, std::vector<double>{1});
  EXPECT_EQ(data.transform.mixup_alpha, 0.5);
  EXPECT_NE(declare_error("type: 'Data' data_param { source: 'db' }").find("batch_size"), std::string::npos);
  auto dummy = declare(
      "type: 'DummyData' top: 'a' top: 'b' dummy_data_param { num: 2 num: 3 channels: 1 height: 4"
      " width: 5 data_filler { type: 'gaussian' } }");
  EXPECT_EQ(declared_source_shapes(dummy), (std::vector<Shape>{{2, 1, 4, 5}, {3, 1, 4, 5}}));
  auto memory = declare(
      "type: 'MemoryData' top: 'a' top: 'b' memory_data_param { batch_size: 2 channels: 3 height: 4"
      " width: 5 }");
  EXPECT_EQ(declared_source_shapes(memory), (std::vector<Shape>{{2, 3, 4, 5}, {2}}));
}

}  // namespace
}  // namespace cortado
