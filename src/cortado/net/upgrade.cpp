#include "cortado/net/upgrade.h"

#include <algorithm>
#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <map>

#include "cortado/base/error.h"
#include "cortado/net/upgrade_v0.h"

namespace cortado {
namespace {

namespace pb = google::protobuf;
using V1 = caffe::V1LayerParameter;

const std::map<V1::LayerType, const char*>& type_names() {
  static const std::map<V1::LayerType, const char*> names = {
      {V1::NONE, ""},
      {V1::ABSVAL, "AbsVal"},
      {V1::ACCURACY, "Accuracy"},
      {V1::ARGMAX, "ArgMax"},
      {V1::BNLL, "BNLL"},
      {V1::CONCAT, "Concat"},
      {V1::CONTRASTIVE_LOSS, "ContrastiveLoss"},
      {V1::CONVOLUTION, "Convolution"},
      {V1::DATA, "Data"},
      {V1::DECONVOLUTION, "Deconvolution"},
      {V1::DROPOUT, "Dropout"},
      {V1::DUMMY_DATA, "DummyData"},
      {V1::EUCLIDEAN_LOSS, "EuclideanLoss"},
      {V1::ELTWISE, "Eltwise"},
      {V1::EXP, "Exp"},
      {V1::FLATTEN, "Flatten"},
      {V1::HDF5_DATA, "HDF5Data"},
      {V1::HDF5_OUTPUT, "HDF5Output"},
      {V1::HINGE_LOSS, "HingeLoss"},
      {V1::IM2COL, "Im2col"},
      {V1::IMAGE_DATA, "ImageData"},
      {V1::INFOGAIN_LOSS, "InfogainLoss"},
      {V1::INNER_PRODUCT, "InnerProduct"},
      {V1::LRN, "LRN"},
      {V1::MEMORY_DATA, "MemoryData"},
      {V1::MULTINOMIAL_LOGISTIC_LOSS, "MultinomialLogisticLoss"},
      {V1::MVN, "MVN"},
      {V1::POOLING, "Pooling"},
      {V1::POWER, "Power"},
      {V1::RELU, "ReLU"},
      {V1::SIGMOID, "Sigmoid"},
      {V1::SIGMOID_CROSS_ENTROPY_LOSS, "SigmoidCrossEntropyLoss"},
      {V1::SILENCE, "Silence"},
      {V1::SLICE, "Slice"},
      {V1::SOFTMAX, "Softmax"},
      {V1::SOFTMAX_LOSS, "SoftmaxWithLoss"},
      {V1::SPLIT, "Split"},
      {V1::TANH, "TanH"},
      {V1::THRESHOLD, "Threshold"},
      {V1::WINDOW_DATA, "WindowData"},
  };
  return names;
}

// Moves `from`'s field into `to`'s field of the same name and type; false when `to` has none.
bool move_field(pb::Message& from, const pb::FieldDescriptor& field, pb::Message& to) {
  const pb::FieldDescriptor* target = to.GetDescriptor()->FindFieldByName(field.name());
  bool same = target && target->cpp_type() == field.cpp_type() && target->label() == field.label() &&
              target->message_type() == field.message_type();
  if (!same) return false;
  const pb::Reflection& source = *from.GetReflection();
  const pb::Reflection& destination = *to.GetReflection();
  if (!field.is_repeated()) {
    if (field.message_type()) {
      destination.MutableMessage(&to, target)
          ->GetReflection()
          ->Swap(destination.MutableMessage(&to, target), source.MutableMessage(&from, &field));
    } else {
      destination.SetString(&to, target, source.GetString(from, &field));
    }
    return true;
  }
  for (int i = 0; i < source.FieldSize(from, &field); ++i) {
    if (field.message_type()) {
      pb::Message* element = destination.AddMessage(&to, target);
      element->GetReflection()->Swap(element, source.MutableRepeatedMessage(&from, &field, i));
    } else if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING) {
      destination.AddString(&to, target, source.GetRepeatedString(from, &field, i));
    } else {
      destination.AddFloat(&to, target, source.GetRepeatedFloat(from, &field, i));
    }
  }
  return true;
}

// Names, share modes and multipliers stood in four lists; now in one ParamSpec per parameter.
void upgrade_parameters(const V1& v1, caffe::LayerParameter& layer) {
  int count =
      std::max({v1.param_size(), v1.blob_share_mode_size(), v1.blobs_lr_size(), v1.weight_decay_size()});
  for (int i = 0; i < count; ++i) {
    caffe::ParamSpec& spec = *layer.add_param();
    if (i < v1.param_size() && !v1.param(i).empty()) spec.set_name(v1.param(i));
    if (i < v1.blob_share_mode_size()) {
      spec.set_share_mode(static_cast<caffe::ParamSpec::DimCheckMode>(v1.blob_share_mode(i)));
    }
    if (i < v1.blobs_lr_size()) spec.set_lr_mult(v1.blobs_lr(i));
    if (i < v1.weight_decay_size()) spec.set_decay_mult(v1.weight_decay(i));
  }
}

void upgrade_v1_layers(caffe::NetParameter& net, const std::string& path) {
  if (net.layers_size() == 0) return;
  if (net.layer_size() > 0) {
    throw UserError(
        fmt::format("{}: the net has both `layer` and (older) `layers`; write all as `layer`", path));
  }
  for (V1& v1 : *net.mutable_layers()) {
    caffe::LayerParameter& layer = *net.add_layer();
    layer.set_type(type_names().at(v1.type()));
    upgrade_parameters(v1, layer);
    std::vector<const pb::FieldDescriptor*> fields;
    v1.GetReflection()->ListFields(v1, &fields);
    for (const pb::FieldDescriptor* field : fields) move_field(v1, *field, layer);
  }
  net.clear_layers();
}

// scale, mean_file, crop_size and mirror belonged to the data parameters of V1 layers.
template <typename DataParameter>
void move_transform(DataParameter& data, caffe::LayerParameter& layer) {
  caffe::TransformationParameter& transform = *layer.mutable_transform_param();
  if (data.has_scale()) transform.set_scale(data.scale());
  if (data.has_mean_file()) transform.set_mean_file(data.mean_file());
  if (data.has_crop_size()) transform.set_crop_size(data.crop_size());
  if (data.has_mirror()) transform.set_mirror(data.mirror());
  data.clear_scale();
  data.clear_mean_file();
  data.clear_crop_size();
  data.clear_mirror();
}

template <typename DataParameter>
bool has_transform(const DataParameter& data) {
  return data.has_scale() || data.has_mean_file() || data.has_crop_size() || data.has_mirror();
}

void upgrade_transforms(caffe::NetParameter& net) {
  for (caffe::LayerParameter& layer : *net.mutable_layer()) {
    if (layer.type() == "Data" && has_transform(layer.data_param())) {
      move_transform(*layer.mutable_data_param(), layer);
    } else if (layer.type() == "ImageData" && has_transform(layer.image_data_param())) {
      move_transform(*layer.mutable_image_data_param(), layer);
    } else if (layer.type() == "WindowData" && has_transform(layer.window_data_param())) {
      move_transform(*layer.mutable_window_data_param(), layer);
    }
  }
}

// Without any shape (caffemodels and older deploys) there is nothing to make a layer of.
void upgrade_inputs(caffe::NetParameter& net, std::vector<int>& lines, const std::string& path) {
  const bool shapes = net.input_shape_size() > 0, dims = net.input_dim_size() > 0;
  if (net.input_size() > 0 && (shapes || dims)) {
    const bool enough =
        shapes ? net.input_shape_size() >= net.input_size() : net.input_dim_size() >= 4 * net.input_size();
    if (!enough) {
      throw UserError(
          fmt::format("{}: {} `input` need as many input_shape or four input_dim each; there are {} and {}",
                      path, net.input_size(), net.input_shape_size(), net.input_dim_size()));
    }
    caffe::LayerParameter& input = add_input_layer(net, lines);
    for (int i = 0; i < net.input_size(); ++i) {
      input.add_top(net.input(i));
      caffe::BlobShape& shape = *input.mutable_input_param()->add_shape();
      if (shapes) shape = net.input_shape(i);
      for (int axis = 0; !shapes && axis < 4; ++axis) shape.add_dim(net.input_dim(4 * i + axis));
    }
  }
  if (net.input_size() == 0) return;
  net.clear_input();
  net.clear_input_shape();
  net.clear_input_dim();
}

// Old files tell the solver by multipliers of zero to leave the three statistics of BatchNorm alone.
void upgrade_batch_norm(caffe::NetParameter& net) {
  for (caffe::LayerParameter& layer : *net.mutable_layer()) {
    if (layer.type() != "BatchNorm" || layer.param_size() != 3) continue;
    for (caffe::ParamSpec& spec : *layer.mutable_param()) {
      spec.set_lr_mult(0);
      spec.set_decay_mult(0);
    }
  }
}

}  // namespace

caffe::LayerParameter& add_input_layer(caffe::NetParameter& net, std::vector<int>& lines) {
  net.add_layer();
  std::rotate(net.mutable_layer()->pointer_begin(), net.mutable_layer()->pointer_end() - 1,
              net.mutable_layer()->pointer_end());
  lines.insert(lines.begin(), 0);
  net.mutable_layer(0)->set_name("input");
  net.mutable_layer(0)->set_type("Input");
  return *net.mutable_layer(0);
}

void upgrade_net(caffe::NetParameter& net, std::vector<int>& lines, const std::string& path) {
  const bool older = net.layers_size() > 0;
  upgrade_v0_layers(net, lines, path);
  upgrade_v1_layers(net, path);
  if (older) upgrade_transforms(net);
  upgrade_inputs(net, lines, path);
  upgrade_batch_norm(net);
}

void upgrade_solver(caffe::SolverParameter& solver, const std::string& path) {
  if (!solver.has_solver_type()) return;
  if (solver.has_type()) {
    throw UserError(fmt::format("{}: both type and (older) solver_type are given; remove solver_type", path));
  }
  static constexpr const char* names[] = {"SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam"};
  solver.set_type(names[solver.solver_type()]);
  solver.clear_solver_type();
}

}  // namespace cortado
