#include <cfloat>
#include <cmath>
#include <variant>

#include "cortado/base/error.h"
#include "cortado/base/overloaded.h"
#include "cortado/layers/dropout.h"
#include "cortado/layers/eltwise.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/softmax.h"
#include "cortado/onnx/write/layers.h"

namespace cortado::onnx {
namespace {

// shift + scale * x
std::string line_of(WrittenLayer& layer, double scale, double shift) {
  std::string value = layer.input(0);
  if (scale != 1) value = layer.step("Mul", {value, layer.number(scale)});
  if (shift != 0) value = layer.step("Add", {value, layer.number(shift)});
  return value;
}

void write_power(WrittenLayer& layer, const PowerOptions& o) {
  if (o.power != 1) return layer.last("Pow", {line_of(layer, o.scale, o.shift), layer.number(o.power)});
  if (o.shift != 0) return layer.last("Add", {line_of(layer, o.scale, 0), layer.number(o.shift)});
  layer.last("Mul", {layer.input(0), layer.number(o.scale)});
}

// base^(shift + scale * x), by the natural exponential
void write_exp(WrittenLayer& layer, const ExpOptions& o) {
  const double natural = o.base == -1 ? 1 : std::log(o.base);
  layer.last("Exp", {line_of(layer, o.scale * natural, o.shift * natural)});
}

void write_log(WrittenLayer& layer, const LogOptions& o) {
  const std::string line = line_of(layer, o.scale, o.shift);
  if (o.base == -1) return layer.last("Log", {line});
  layer.last("Mul", {layer.step("Log", {line}), layer.number(1 / std::log(o.base))});
}

void write_pointwise(WrittenLayer& layer) {
  const std::vector<std::string> input{layer.input(0)};
  std::visit(Overloaded{[&](const ReluOptions& o) {
                          if (o.negative_slope == 0) return layer.last("Relu", input);
                          layer.last("LeakyRelu", input, {attribute("alpha", o.negative_slope)});
                        },
                        [&](const Relu6Options&) {
                          layer.last("Clip", {layer.input(0), layer.number(0), layer.number(6)});
                        },
                        [&](const EluOptions& o) { layer.last("Elu", input, {attribute("alpha", o.alpha)}); },
                        [&](const SigmoidOptions&) { layer.last("Sigmoid", input); },
                        [&](const TanhOptions&) { layer.last("Tanh", input); },
                        [&](const AbsOptions&) { layer.last("Abs", input); },
                        [&](const BnllOptions&) { layer.last("Softplus", input); },
                        [&](const PowerOptions& o) { write_power(layer, o); },
                        [&](const ExpOptions& o) { write_exp(layer, o); },
                        [&](const LogOptions& o) { write_log(layer, o); },
                        [&](const SwishOptions& o) {
                          const std::string gate = layer.step("Sigmoid", {line_of(layer, o.beta, 0)});
                          layer.last("Mul", {layer.input(0), gate});
                        },
                        [&](const ClipOptions& o) {
                          layer.last("Clip", {layer.input(0), layer.number(o.min), layer.number(o.max)});
                        },
                        [](const ThresholdOptions&) {
                          throw InternalError("function_writers() lists what is written");
                        }},
             layer.as<Pointwise>().function());
}

void write_dropout(WrittenLayer& layer) {
  layer.last("Dropout", {layer.input(0), layer.number(layer.as<Dropout>().options().ratio)});
}

void write_softmax(WrittenLayer& layer) {
  const int axis = layer.input_shape(0).canonical_axis(layer.as<Softmax>().options().axis);
  layer.last("Softmax", {layer.input(0)}, {attribute("axis", int64_t{axis})});
}

void write_eltwise(WrittenLayer& layer) {
  const EltwiseOptions& options = layer.as<Eltwise>().options();
  using Operation = EltwiseOptions::Operation;
  std::vector<std::string> inputs = layer.inputs();
  if (options.operation == Operation::max) return layer.last("Max", inputs);
  if (options.operation == Operation::prod) {
    std::string product = inputs[0];
    for (size_t i = 1; i + 1 < inputs.size(); ++i) product = layer.step("Mul", {product, inputs[i]});
    return layer.last("Mul", {product, inputs.back()});
  }
  for (size_t i = 0; i < options.coeff.size(); ++i)
    if (options.coeff[i] != 1) inputs[i] = layer.step("Mul", {inputs[i], layer.number(options.coeff[i])});
  layer.last(inputs.size() == 2 ? "Add" : "Sum", inputs);
}

}  // namespace

std::span<const LayerWriter> function_writers() {
  static constexpr LayerWriter writers[] = {
      {"ReLU6", write_pointwise},   {"ReLU", write_pointwise},  {"ELU", write_pointwise},
      {"Sigmoid", write_pointwise}, {"TanH", write_pointwise},  {"AbsVal", write_pointwise},
      {"BNLL", write_pointwise},    {"Power", write_pointwise}, {"Exp", write_pointwise},
      {"Log", write_pointwise},     {"Swish", write_pointwise}, {"Clip", write_pointwise},
      {"Dropout", write_dropout},   {"Softmax", write_softmax}, {"Eltwise", write_eltwise},
  };
  return writers;
}

}  // namespace cortado::onnx
