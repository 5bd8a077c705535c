#include "tests/net/random_prototxt.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

namespace cortado::testing {

namespace {

// "inner_product_param" and "InnerProduct" to "innerproduct".
std::string plain(const std::string& name, const std::string& ending = "") {
  std::string text;
  for (char c : name.substr(0, name.size() - (name.ends_with(ending) ? ending.size() : 0)))
    if (c != '_') text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// The field of a layer that holds the options of that type; null where it has none.
const google::protobuf::FieldDescriptor* options_field(const google::protobuf::Descriptor& layer,
                                                       const std::string& type) {
  static const std::map<std::string, std::string> others = {{"softmaxwithloss", "softmax"},
                                                            {"softmaxloss", "softmax"},
                                                            {"euclideanloss", "loss"},
                                                            {"sigmoidcrossentropyloss", "loss"},
                                                            {"multinomiallogisticloss", "loss"},
                                                            {"deconvolution", "convolution"},
                                                            {"im2col", "convolution"},
                                                            {"normalize", "norm"},
                                                            {"rnn", "recurrent"},
                                                            {"lstm", "recurrent"}};
  std::string wanted = plain(type);
  if (auto other = others.find(wanted); other != others.end()) wanted = other->second;
  for (int i = 0; i < layer.field_count(); ++i) {
    const std::string& name = layer.field(i)->name();
    if (name.ends_with("_param") && plain(name, "_param") == wanted) return layer.field(i);
  }
  return nullptr;
}

const std::vector<std::string>& v0_types() {
  static const std::vector<std::string> types = {"accuracy",
                                                 "bnll",
                                                 "concat",
                                                 "conv",
                                                 "data",
                                                 "dropout",
                                                 "euclidean_loss",
                                                 "flatten",
                                                 "hdf5_data",
                                                 "hdf5_output",
                                                 "im2col",
                                                 "images",
                                                 "infogain_loss",
                                                 "innerproduct",
                                                 "lrn",
                                                 "multinomial_logistic_loss",
                                                 "padding",
                                                 "pool",
                                                 "relu",
                                                 "sigmoid",
                                                 "softmax",
                                                 "softmax_loss",
                                                 "split",
                                                 "tanh",
                                                 "window_data"};
  return types;
}

}  // namespace

const std::vector<std::string>& caffe_layer_types() {
  static const std::vector<std::string> types = {"AbsVal",
                                                 "Accuracy",
                                                 "ArgMax",
                                                 "Axpy",
                                                 "BNLL",
                                                 "BatchNorm",
                                                 "BatchReindex",
                                                 "Bias",
                                                 "Clip",
                                                 "Concat",
                                                 "ContrastiveLoss",
                                                 "Convolution",
                                                 "Crop",
                                                 "Data",
                                                 "Deconvolution",
                                                 "Dropout",
                                                 "DummyData",
                                                 "ELU",
                                                 "Eltwise",
                                                 "Embed",
                                                 "EuclideanLoss",
                                                 "Exp",
                                                 "Filter",
                                                 "Flatten",
                                                 "HDF5Data",
                                                 "HDF5Output",
                                                 "HingeLoss",
                                                 "Im2col",
                                                 "ImageData",
                                                 "InfogainLoss",
                                                 "InnerProduct",
                                                 "Input",
                                                 "Interp",
                                                 "LRN",
                                                 "LSTM",
                                                 "LSTMUnit",
                                                 "Log",
                                                 "MVN",
                                                 "MemoryData",
                                                 "MultinomialLogisticLoss",
                                                 "Normalize",
                                                 "PReLU",
                                                 "Parameter",
                                                 "Permute",
                                                 "Pooling",
                                                 "Power",
                                                 "Python",
                                                 "RNN",
                                                 "ReLU",
                                                 "ReLU6",
                                                 "Reduction",
                                                 "Reshape",
                                                 "SPP",
                                                 "Scale",
                                                 "ShuffleChannel",
                                                 "Sigmoid",
                                                 "SigmoidCrossEntropyLoss",
                                                 "Silence",
                                                 "Slice",
                                                 "Softmax",
                                                 "SoftmaxWithLoss",
                                                 "Split",
                                                 "Swish",
                                                 "TanH",
                                                 "Threshold",
                                                 "Tile",
                                                 "Upsample",
                                                 "VolumeData",
                                                 "WindowData"};
  return types;
}

RandomPrototxt::RandomPrototxt(uint32_t seed) : random_(seed) {
  const int kind = pick(0, 9);
  generation_ = kind < 6 ? Generation::current : kind < 8 ? Generation::v1 : Generation::v0;
}

caffe::NetParameter RandomPrototxt::draw(const std::function<bool(const caffe::NetParameter&)>& accepted) {
  caffe::NetParameter net;
  if (chance(0.9)) net.set_name("drawn");
  add_inputs(net);
  const int layers = pick(1, 8);
  for (int i = 0; i < layers; ++i) {
    caffe::NetParameter longer = net;
    const std::vector<std::string> blobs = blobs_;
    add_layer(longer);
    if (accepted(longer) || chance(0.05))
      net = std::move(longer);
    else
      blobs_ = blobs;
  }
  return net;
}

// Images and labels: as `input` fields, or as a layer of current files.
void RandomPrototxt::add_inputs(caffe::NetParameter& net) {
  const std::vector<int> extents = chance(0.85)
                                       ? std::vector<int>{pick(1, 3), pick(1, 6), pick(5, 9), pick(5, 9)}
                                       : std::vector<int>{pick(1, 3), pick(1, 6)};
  blobs_ = {"data", "label"};
  fields_.insert("caffe.NetParameter.layer");
  if (generation_ == Generation::current && chance(0.5)) {
    caffe::LayerParameter& layer = *net.add_layer();
    layer.set_name("inputs");
    layer.set_type("Input");
    for (const std::string& blob : blobs_) layer.add_top(blob);
    caffe::BlobShape& shape = *layer.mutable_input_param()->add_shape();
    for (int extent : extents) shape.add_dim(extent);
    layer.mutable_input_param()->add_shape()->add_dim(extents[0]);
    return;
  }
  const bool by_shape = chance(0.5) || extents.size() != 4;
  for (const std::string& blob : blobs_) net.add_input(blob);
  for (int blob = 0; blob < 2; ++blob) {
    caffe::BlobShape* shape = by_shape ? net.add_input_shape() : nullptr;
    for (size_t axis = 0; axis < 4; ++axis) {
      const bool there = blob == 0 ? axis < extents.size() : axis == 0;
      const int extent = blob == 0 && there ? extents[axis] : there ? extents[0] : 1;
      if (shape && there) shape->add_dim(extent);
      if (!shape) net.add_input_dim(extent);
    }
  }
}

void RandomPrototxt::add_layer(caffe::NetParameter& net) {
  ++made_;
  if (generation_ == Generation::current) {
    const std::vector<std::string>& all = caffe_layer_types();
    const std::string type =
        chance(0.01) ? "NoSuchType" : all[static_cast<size_t>(pick(0, static_cast<int>(all.size()) - 1))];
    caffe::LayerParameter& layer = *net.add_layer();
    layer.set_type(type);
    types_.insert(type);
    if (chance(0.98)) layer.set_name(fmt::format("layer{}", made_));
    fill_layer(layer, type);
    connect(layer, type);
    return;
  }
  caffe::V1LayerParameter& layer = *net.add_layers();
  if (generation_ == Generation::v0) {
    add_v0_layer(layer);
    return;
  }
  const auto* types = caffe::V1LayerParameter::LayerType_descriptor();
  const auto* type = types->value(pick(0, types->value_count() - 1));
  layer.set_type(static_cast<caffe::V1LayerParameter::LayerType>(type->number()));
  types_.insert(type->full_name());
  layer.set_name(fmt::format("layer{}", made_));
  fill_layer(layer, type->name());
  connect(layer, type->name());
}

void RandomPrototxt::add_v0_layer(caffe::V1LayerParameter& layer) {
  caffe::V0LayerParameter& inner = *layer.mutable_layer();
  const std::string& type = v0_types()[static_cast<size_t>(pick(0, static_cast<int>(v0_types().size()) - 1))];
  fill(inner, 0.08, 0);
  inner.set_type(type);
  types_.insert(type);
  inner.set_name(fmt::format("layer{}", made_));
  if (chance(0.9)) {
    if (type == "conv" || type == "innerproduct") inner.set_num_output(static_cast<uint32_t>(pick(1, 8)));
    if (type == "conv" || type == "pool" || type == "im2col")
      inner.set_kernelsize(static_cast<uint32_t>(pick(1, 3)));
    if (type == "padding") inner.set_pad(static_cast<uint32_t>(pick(0, 2)));
    if (type == "data" || type == "images" || type == "hdf5_data") {
      inner.set_source("source");
      inner.set_batchsize(static_cast<uint32_t>(pick(1, 4)));
    }
  }
  connect(layer, type);
}

// Adds as many bottoms and tops as layers of that type mostly have.
template <typename Layer>
void RandomPrototxt::connect(Layer& layer, const std::string& type) {
  const std::string kind = plain(type);
  const bool source = kind.ends_with("data") || kind == "input" || kind == "images" || kind == "parameter";
  const bool pair = kind.find("loss") != std::string::npos || kind == "accuracy" || kind == "crop" ||
                    kind == "batchreindex" || kind == "eltwise" || kind == "concat" || kind == "filter";
  const bool none = kind == "silence" || kind == "hdf5output";
  int bottoms = source ? 0 : kind == "axpy" ? 3 : pair ? 2 : 1;
  int tops = kind == "slice" || kind == "split"           ? 2
             : kind.ends_with("data") || kind == "images" ? 2
             : none                                       ? 0
                                                          : 1;
  if (chance(0.08)) bottoms = pick(0, 3);
  if (chance(0.08)) tops = pick(0, 3);
  for (int i = 0; i < bottoms; ++i)
    layer.add_bottom(i == 1 && pair && kind != "eltwise" && kind != "concat" && chance(0.8) ? "label"
                                                                                            : some_blob());
  for (int i = 0; i < tops; ++i) {
    const bool in_place = i == 0 && bottoms > 0 && chance(0.15);
    const std::string top = in_place ? layer.bottom(0) : fmt::format("blob{}_{}", made_, i);
    layer.add_top(top);
    if (!in_place) blobs_.push_back(top);
  }
}

std::string RandomPrototxt::some_blob() {
  if (chance(0.01)) return "no such blob";
  if (chance(0.4)) return blobs_.back();
  return blobs_[static_cast<size_t>(pick(0, static_cast<int>(blobs_.size()) - 1))];
}

// The layer's own options often, those of other types now and then: Caffe passes over them.
void RandomPrototxt::fill_layer(Message& layer, const std::string& type) {
  const auto* own = options_field(*layer.GetDescriptor(), type);
  for (int i = 0; i < layer.GetDescriptor()->field_count(); ++i) {
    const Field& field = *layer.GetDescriptor()->field(i);
    const std::string& name = field.name();
    if (name == "name" || name == "type" || name == "bottom" || name == "top" || name == "layer" ||
        &field == own)
      continue;
    const bool shares = name == "param" || name == "blob_share_mode";
    if (chance(shares ? 0.2 : 0.02)) fill_field(layer, field, shares ? 0.5 : 0.2, 1);
  }
  if (!own) return;
  fields_.insert(own->full_name());
  Message& options = *layer.GetReflection()->MutableMessage(&layer, own);
  fill(options, 0.15, 1);
  if (chance(0.9)) give_what_is_needed(options);
}

void RandomPrototxt::fill(Message& message, double probability, int depth) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i)
    if (chance(probability)) fill_field(message, *message.GetDescriptor()->field(i), probability, depth);
}

void RandomPrototxt::fill_field(Message& message, const Field& field, double probability, int depth) {
  fields_.insert(field.full_name());
  const auto* reflection = message.GetReflection();
  const int count = field.is_repeated() ? (chance(0.7) ? 1 : pick(2, 3)) : 1;
  for (int i = 0; i < count; ++i) {
    if (field.cpp_type() != Field::CPPTYPE_MESSAGE) {
      set_value(message, field);
      continue;
    }
    Message& inner = field.is_repeated() ? *reflection->AddMessage(&message, &field)
                                         : *reflection->MutableMessage(&message, &field);
    if (depth < 5) fill(inner, std::max(probability, 0.3), depth + 1);
  }
}

void RandomPrototxt::set_value(Message& message, const Field& field) {
  const auto& reflection = *message.GetReflection();
  auto give = [&](auto set, auto add, auto value) {
    if (field.is_repeated())
      (reflection.*add)(&message, &field, value);
    else
      (reflection.*set)(&message, &field, value);
  };
  using R = google::protobuf::Reflection;
  switch (field.cpp_type()) {
    case Field::CPPTYPE_INT32:
      return give(&R::SetInt32, &R::AddInt32, static_cast<int32_t>(some_integer()));
    case Field::CPPTYPE_INT64:
      return give(&R::SetInt64, &R::AddInt64, some_integer());
    case Field::CPPTYPE_UINT32:
      return give(&R::SetUInt32, &R::AddUInt32,
                  static_cast<uint32_t>(chance(0.98) ? std::abs(some_integer() % 100) : -1));
    case Field::CPPTYPE_UINT64:
      return give(&R::SetUInt64, &R::AddUInt64, static_cast<uint64_t>(some_integer()));
    case Field::CPPTYPE_DOUBLE:
      return give(&R::SetDouble, &R::AddDouble, some_real());
    case Field::CPPTYPE_FLOAT:
      return give(&R::SetFloat, &R::AddFloat, static_cast<float>(some_real()));
    case Field::CPPTYPE_BOOL:
      return give(&R::SetBool, &R::AddBool, chance(0.5));
    case Field::CPPTYPE_ENUM:
      return give(&R::SetEnumValue, &R::AddEnumValue,
                  field.enum_type()->value(pick(0, field.enum_type()->value_count() - 1))->number());
    default:
      return give(&R::SetString, &R::AddString, some_text(field));
  }
}

int64_t RandomPrototxt::some_integer() {
  if (chance(0.9)) return pick(0, 4);
  constexpr int64_t odd[] = {
      -1, -2, -100, 7, 64, 1000, std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()};
  return odd[pick(0, 7)];
}

double RandomPrototxt::some_real() {
  if (chance(0.9)) return std::vector{0.0, 0.1, 0.5, 0.75, 1.0, 2.0, 5.0}[static_cast<size_t>(pick(0, 6))];
  return std::vector{-1.0, -0.5, 1e-7, 1e-30, 100.0, 3e38, -3e38}[static_cast<size_t>(pick(0, 6))];
}

std::string RandomPrototxt::some_text(const Field& field) {
  if (field.full_name() == "caffe.FillerParameter.type") return filler_type();
  if (field.type() == Field::TYPE_BYTES) return {"\x01\x00\xff", 3};
  if (chance(0.05)) return "";
  if (chance(0.03)) return "a \"quoted\"\n\ttext \xc3\xa9";
  return chance(0.5) ? "shared" : "text";
}

std::string RandomPrototxt::filler_type() {
  static const std::vector<std::string> types = {"constant", "uniform", "gaussian", "positive_unitball",
                                                 "xavier",   "msra",    "bilinear", "no such filler"};
  return types[static_cast<size_t>(pick(0, chance(0.95) ? 6 : 7))];
}

// Fields without which a layer of that type is refused.
void RandomPrototxt::give_what_is_needed(Message& options) {
  if (auto* o = dynamic_cast<caffe::ConvolutionParameter*>(&options)) {
    o->set_num_output(static_cast<uint32_t>(o->group() > 1 && o->group() < 8 ? o->group() * 2 : pick(1, 8)));
    if (o->kernel_size_size() == 0 && !o->has_kernel_h())
      o->add_kernel_size(static_cast<uint32_t>(pick(1, 3)));
  } else if (auto* o = dynamic_cast<caffe::InnerProductParameter*>(&options)) {
    o->set_num_output(static_cast<uint32_t>(pick(1, 8)));
  } else if (auto* o = dynamic_cast<caffe::EmbedParameter*>(&options)) {
    o->set_num_output(static_cast<uint32_t>(pick(1, 8)));
    o->set_input_dim(static_cast<uint32_t>(pick(1, 8)));
  } else if (auto* o = dynamic_cast<caffe::PoolingParameter*>(&options)) {
    if (!o->has_kernel_h() && !o->global_pooling()) o->set_kernel_size(static_cast<uint32_t>(pick(1, 3)));
  } else if (auto* o = dynamic_cast<caffe::DataParameter*>(&options)) {
    o->set_batch_size(static_cast<uint32_t>(pick(1, 4)));
    o->set_source("source");
    o->set_backend(caffe::DataParameter::LMDB);
  } else if (auto* o = dynamic_cast<caffe::ImageDataParameter*>(&options)) {
    o->set_batch_size(static_cast<uint32_t>(pick(1, 4)));
    o->set_source("source");
  } else if (auto* o = dynamic_cast<caffe::HDF5DataParameter*>(&options)) {
    o->set_batch_size(static_cast<uint32_t>(pick(1, 4)));
    o->set_source("source");
  } else if (auto* o = dynamic_cast<caffe::HDF5OutputParameter*>(&options)) {
    o->set_file_name("file");
  } else if (auto* o = dynamic_cast<caffe::MemoryDataParameter*>(&options)) {
    o->set_batch_size(static_cast<uint32_t>(pick(1, 4)));
    o->set_channels(static_cast<uint32_t>(pick(1, 4)));
    o->set_height(static_cast<uint32_t>(pick(1, 8)));
    o->set_width(static_cast<uint32_t>(pick(1, 8)));
  } else if (auto* o = dynamic_cast<caffe::DummyDataParameter*>(&options)) {
    if (o->shape_size() == 0) *o->add_shape() = caffe::BlobShape();
    for (auto& shape : *o->mutable_shape()) {
      shape.clear_dim();
      for (int axis = pick(1, 4); axis > 0; --axis) shape.add_dim(pick(1, 5));
    }
  } else if (auto* o = dynamic_cast<caffe::InputParameter*>(&options)) {
    if (o->shape_size() == 0) o->add_shape()->add_dim(pick(1, 5));
  } else if (auto* o = dynamic_cast<caffe::InfogainLossParameter*>(&options)) {
    o->set_source(CORTADO_SOURCE_DIR "/tests/net/infogain_2x2.binaryproto");
  } else if (auto* o = dynamic_cast<caffe::InterpParameter*>(&options)) {
    o->Clear();
    o->set_zoom_factor(pick(1, 3));
  } else if (auto* o = dynamic_cast<caffe::ParameterParameter*>(&options)) {
    o->mutable_shape()->clear_dim();
    for (int axis = pick(1, 3); axis > 0; --axis) o->mutable_shape()->add_dim(pick(1, 5));
  } else if (auto* o = dynamic_cast<caffe::PermuteParameter*>(&options)) {
    o->clear_order();
    o->add_order(static_cast<uint32_t>(pick(0, 1)));
  } else if (auto* o = dynamic_cast<caffe::ReshapeParameter*>(&options)) {
    o->mutable_shape()->clear_dim();
    o->mutable_shape()->add_dim(0);
    o->mutable_shape()->add_dim(-1);
  } else if (auto* o = dynamic_cast<caffe::FilterParameter*>(&options)) {
    o->set_samples(static_cast<uint32_t>(pick(1, 2)));
  } else if (auto* o = dynamic_cast<caffe::RecurrentParameter*>(&options)) {
    o->set_num_output(static_cast<uint32_t>(pick(1, 4)));
    o->set_expose_hidden(chance(0.2));
  } else if (auto* o = dynamic_cast<caffe::SPPParameter*>(&options)) {
    o->set_pyramid_height(static_cast<uint32_t>(pick(1, 2)));
  } else if (auto* o = dynamic_cast<caffe::TileParameter*>(&options)) {
    o->set_tiles(pick(1, 3));
  }
}

std::string description(const Network& network) {
  std::string text = network.name() + "\n";
  for (const auto& node : network.nodes()) {
    text += fmt::format("{} {} {} -> {}; parameters {}; weights {}; down {}; backward {}\n", node.name,
                        node.layer->type(), node.inputs, node.outputs, node.parameters, node.loss_weights,
                        node.propagate_down, node.has_backward);
  }
  for (const auto& tensor : network.tensors())
    text += fmt::format("{} {} {} {}\n", tensor.name, tensor.shape.text(), tensor.producer,
                        tensor.needs_gradient);
  for (const auto& parameter : network.parameters()) {
    const Filler& filler = parameter.spec.filler;
    text += fmt::format("{} {} {} {} {} {}; filler {} {} {} {} {} {} {} {}\n", parameter.name,
                        parameter.spec.shape.text(), parameter.spec.learnable, parameter.lr_mult,
                        parameter.decay_mult, parameter.wants_gradient, static_cast<int>(filler.type),
                        filler.value, filler.min, filler.max, filler.mean, filler.std, filler.sparse,
                        static_cast<int>(filler.variance_norm));
  }
  return text;
}

}  // namespace cortado::testing
