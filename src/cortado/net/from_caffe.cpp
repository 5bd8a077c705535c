#include "cortado/net/from_caffe.h"

#include <fmt/format.h>
#include <map>
#include <vector>

#include "cortado/base/error.h"
#include "cortado/base/nearest_name.h"
#include "cortado/base/text.h"
#include "cortado/layers/user_defined.h"
#include "cortado/net/caffe/conversions.h"

namespace cortado {
namespace {

using from_caffe::LayerType;

const std::map<std::string_view, LayerType>& known_types() {
  static const std::map<std::string_view, LayerType> table = [] {
    std::map<std::string_view, LayerType> types;
    for (const auto family : {from_caffe::window_types, from_caffe::weight_types, from_caffe::pointwise_types,
                              from_caffe::loss_types, from_caffe::shape_types, from_caffe::source_types})
      for (const LayerType& type : family()) types[type.name] = type;
    return types;
  }();
  return table;
}

[[noreturn]] void refuse_type(const std::string& type) {
  if (type.empty()) throw UserError("no type is given");
  const auto known = known_types().find(type);
  if (known != known_types().end())
    throw UserError(fmt::format("Caffe's type '{}' is not supported: {}", type, known->second.refusal));
  throw UserError(fmt::format("type '{}' is not supported{}", type,
                              type.size() < 100 ? did_you_mean(type, supported_layer_types()) : ""));
}

LayerPtr user_defined(const caffe::LayerParameter& layer, const MakeUserLayer& make) {
  const caffe::PythonParameter& p = layer.python_param();
  if (p.layer().empty()) throw UserError("needs python_param { module: \"...\" layer: \"...\" }");
  std::shared_ptr<UserLayer> code = make({.name = layer.name(),
                                          .module = p.module(),
                                          .layer = p.layer(),
                                          .parameters = p.param_str(),
                                          .is_training = layer.phase() == caffe::TRAIN});
  if (!code)
    throw UserError(fmt::format("the program has no layer '{}' of module '{}'; name one that it has",
                                p.layer(), p.module()));
  std::vector<bool> in_place;
  for (int i = 0; i < layer.top_size(); ++i)
    in_place.push_back(i < layer.bottom_size() && layer.bottom(i) == layer.top(i));
  return std::make_shared<UserDefined>(UserDefinedOptions{p.module(), p.layer(), p.param_str()},
                                       std::move(code), std::move(in_place));
}

LayerPtr convert(const caffe::LayerParameter& layer, const MakeUserLayer& user_layers) {
  if (layer.type() == "Python" && user_layers) return user_defined(layer, user_layers);
  const auto known = known_types().find(layer.type());
  if (known == known_types().end() || !known->second.convert) refuse_type(layer.type());
  return known->second.convert(layer);
}

// Names stand in messages, tables, pages and the names of files' records.
void check_name(std::string_view name, const char* kind, const SourceLocation& where) {
  constexpr size_t longest = 1024;
  if (name.size() > longest)
    throw UserError(fmt::format("{}: the name of a {} has {} bytes; it can have {}", where.text(), kind,
                                name.size(), longest));
  if (printable(name) != name)
    throw UserError(
        fmt::format("{}: the name of a {}, '{}', has control characters or bytes that are no UTF-8; "
                    "leave them out",
                    where.text(), kind, printable(name)));
}

void check_names(const caffe::LayerParameter& layer, const SourceLocation& where) {
  check_name(layer.name(), "layer", where);
  check_name(layer.type(), "layer's type", where);
  for (const std::string& blob : layer.bottom()) check_name(blob, "blob", where);
  for (const std::string& blob : layer.top()) check_name(blob, "blob", where);
  for (const caffe::ParamSpec& parameter : layer.param()) check_name(parameter.name(), "parameter", where);
}

}  // namespace

std::vector<std::string_view> supported_layer_types() {
  std::vector<std::string_view> names;
  for (const auto& [name, type] : known_types())
    if (type.convert) names.push_back(name);
  return names;
}

std::map<std::string_view, std::string_view> refused_layer_types() {
  std::map<std::string_view, std::string_view> reasons;
  for (const auto& [name, type] : known_types())
    if (!type.convert) reasons[name] = type.refusal;
  return reasons;
}

LayerDeclaration declare_layer(const caffe::LayerParameter& layer, const SourceLocation& where,
                               const MakeUserLayer& user_layers) {
  check_names(layer, where);
  LayerDeclaration declaration;
  declaration.name = declaration.file_name = layer.name();
  declaration.where = where;
  if (layer.blobs_size() > 0) {
    throw UserError(fmt::format(
        "{}: layer '{}': weights (blobs) within a model file are not read; keep them in a caffemodel "
        "and load that",
        where.text(), layer.name()));
  }
  try {
    declaration.layer = convert(layer, user_layers);
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: layer '{}': {}", where.text(), layer.name(), error.what()));
  }
  declaration.bottoms.assign(layer.bottom().begin(), layer.bottom().end());
  declaration.tops.assign(layer.top().begin(), layer.top().end());
  for (const caffe::ParamSpec& spec : layer.param()) {
    declaration.parameters.push_back({.shared_name = spec.name(),
                                      .lr_mult = spec.lr_mult(),
                                      .decay_mult = spec.decay_mult(),
                                      .permissive = spec.share_mode() == caffe::ParamSpec::PERMISSIVE});
  }
  declaration.loss_weights.assign(layer.loss_weight().begin(), layer.loss_weight().end());
  if (layer.has_phase()) declaration.phase = layer.phase() == caffe::TRAIN ? Phase::train : Phase::test;
  declaration.propagate_down.assign(layer.propagate_down().begin(), layer.propagate_down().end());
  return declaration;
}

void force_backward(LayerDeclaration& layer) {
  layer.propagate_down.resize(layer.bottoms.size());
  for (size_t i = 0; i < layer.bottoms.size(); ++i) {
    bool possible = layer.layer->differentiable(static_cast<int>(i));
    if (possible && !layer.propagate_down[i]) layer.propagate_down[i] = true;
  }
}

}  // namespace cortado
