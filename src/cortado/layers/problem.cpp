#include "cortado/layers/problem.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cortado/layers/accuracy.h"
#include "cortado/layers/arg_max.h"
#include "cortado/layers/batch_norm.h"
#include "cortado/layers/bias.h"
#include "cortado/layers/concat.h"
#include "cortado/layers/contrastive_loss.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/crop.h"
#include "cortado/layers/deconvolution.h"
#include "cortado/layers/dropout.h"
#include "cortado/layers/eltwise.h"
#include "cortado/layers/embed.h"
#include "cortado/layers/euclidean_loss.h"
#include "cortado/layers/flatten.h"
#include "cortado/layers/hinge_loss.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/lrn.h"
#include "cortado/layers/mvn.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/prelu.h"
#include "cortado/layers/reduction.h"
#include "cortado/layers/reshape.h"
#include "cortado/layers/scale.h"
#include "cortado/layers/sigmoid_cross_entropy_loss.h"
#include "cortado/layers/silence.h"
#include "cortado/layers/slice.h"
#include "cortado/layers/softmax.h"
#include "cortado/layers/softmax_loss.h"
#include "cortado/layers/split.h"
#include "cortado/layers/tile.h"

namespace cortado {
namespace {

std::string word(double value) { return fmt::format("{}", value); }
std::string word(const std::vector<int64_t>& values) { return fmt::format("[{}]", fmt::join(values, ",")); }
std::string word(const std::vector<double>& values) { return fmt::format("[{}]", fmt::join(values, ",")); }
template <typename Value>
requires std::is_enum_v<Value> std::string word(Value value) {
  return std::to_string(static_cast<int>(value));
}
template <typename Value>
std::string word(const std::optional<Value>& value) {
  return value ? word(*value) : "-";
}

template <typename... Values>
std::string words(const Values&... values) {
  std::string text;
  ((text += " " + word(values)), ...);
  return text;
}

std::string options_of(const Convolution& l) {
  const auto& o = l.options();
  return words(o.num_output, o.bias_term, o.group, o.kernel, o.stride, o.pad, o.dilation, o.axis);
}
std::string options_of(const Deconvolution& l) {
  const auto& o = l.options();
  return words(o.num_output, o.bias_term, o.group, o.kernel, o.stride, o.pad, o.dilation, o.axis);
}
std::string options_of(const InnerProduct& l) {
  const auto& o = l.options();
  return words(o.num_output, o.bias_term, o.transpose, o.axis);
}
std::string options_of(const Pooling& l) {
  const auto& o = l.options();
  return words(o.method, o.kernel, o.stride, o.pad, o.global_pooling, o.rounding);
}
std::string options_of(const Lrn& l) {
  const auto& o = l.options();
  return words(o.local_size, o.alpha, o.beta, o.k, o.region);
}
std::string options_of(const BatchNorm& l) {
  const auto& o = l.options();
  return words(o.use_global_stats, o.moving_average_fraction, o.eps);
}
std::string options_of(const Scale& l) {
  const auto& o = l.options();
  return words(o.broadcast.axis, o.broadcast.num_axes, o.bias_term);
}
std::string options_of(const Bias& l) {
  return words(l.options().broadcast.axis, l.options().broadcast.num_axes);
}
std::string of_function(const ReluOptions& o) { return words(o.negative_slope); }
std::string of_function(const EluOptions& o) { return words(o.alpha); }
std::string of_function(const PowerOptions& o) { return words(o.power, o.scale, o.shift); }
std::string of_function(const ExpOptions& o) { return words(o.base, o.scale, o.shift); }
std::string of_function(const LogOptions& o) { return words(o.base, o.scale, o.shift); }
std::string of_function(const SigmoidOptions&) { return ""; }
std::string of_function(const TanhOptions&) { return ""; }
std::string of_function(const AbsOptions&) { return ""; }
std::string of_function(const BnllOptions&) { return ""; }
std::string options_of(const Pointwise& l) {
  return std::visit([](const auto& function) { return of_function(function); }, l.function());
}
std::string options_of(const PRelu& l) { return words(l.options().channel_shared); }
std::string options_of(const Dropout& l) { return words(l.options().ratio); }
std::string options_of(const Mvn& l) {
  const auto& o = l.options();
  return words(o.normalize_variance, o.across_channels, o.eps);
}
std::string options_of(const Softmax& l) { return words(l.options().axis); }
std::string options_of(const SoftmaxLoss& l) {
  const auto& o = l.options();
  return words(o.axis, o.ignore_label, o.normalization);
}
std::string options_of(const EuclideanLoss&) { return ""; }
std::string options_of(const SigmoidCrossEntropyLoss& l) {
  return words(l.options().ignore_label, l.options().normalization);
}
std::string options_of(const HingeLoss& l) { return words(l.options().norm); }
std::string options_of(const ContrastiveLoss& l) {
  return words(l.options().margin, l.options().legacy_version);
}
std::string options_of(const Accuracy& l) {
  const auto& o = l.options();
  return words(o.top_k, o.axis, o.ignore_label);
}
std::string options_of(const Concat& l) { return words(l.options().axis); }
std::string options_of(const Slice& l) { return words(l.options().axis, l.options().slice_points); }
std::string options_of(const Split&) { return ""; }
std::string options_of(const Eltwise& l) {
  const auto& o = l.options();
  return words(o.operation, o.coeff, o.stable_prod_grad);
}
std::string options_of(const Flatten& l) { return words(l.options().axis, l.options().end_axis); }
std::string options_of(const Reshape& l) {
  const auto& o = l.options();
  return words(o.shape, o.axis, o.num_axes);
}
std::string options_of(const Crop& l) { return words(l.options().axis, l.options().offset); }
std::string options_of(const Reduction& l) {
  const auto& o = l.options();
  return words(o.operation, o.axis, o.coeff);
}
std::string options_of(const ArgMax& l) {
  const auto& o = l.options();
  return words(o.out_max_val, o.top_k, o.axis);
}
std::string options_of(const Tile& l) { return words(l.options().axis, l.options().tiles); }
std::string options_of(const Embed& l) {
  const auto& o = l.options();
  return words(o.num_output, o.input_dim, o.bias_term);
}
std::string options_of(const Silence&) { return ""; }

// The options of the layer where it is one of these; the first that fits.
template <typename... Types>
std::optional<std::string> first_of(const Layer& layer) {
  std::optional<std::string> text;
  auto ask = [&]<typename Type>(const Type* concrete) {
    if (concrete != nullptr) text = options_of(*concrete);
    return concrete != nullptr;
  };
  (ask(dynamic_cast<const Types*>(&layer)) || ...);
  return text;
}

std::optional<std::string> options_text(const Layer& layer) {
  return first_of<Convolution, Deconvolution, InnerProduct, Pooling, Lrn, BatchNorm, Scale, Bias, Pointwise,
                  PRelu, Dropout, Mvn, Softmax, SoftmaxLoss, EuclideanLoss, SigmoidCrossEntropyLoss,
                  HingeLoss, ContrastiveLoss, Accuracy, Concat, Slice, Split, Eltwise, Flatten, Reshape, Crop,
                  Reduction, ArgMax, Tile, Embed, Silence>(layer);
}

std::string flags(const std::vector<bool>& values) {
  std::string text;
  for (bool value : values) text += value ? '1' : '0';
  return text;
}

// Which samples and channels they are takes no other time; how rows and columns lie to the padding may.
std::string text_of(Box box) {
  for (int axis = 0; axis < std::min(box.rank(), 2); ++axis) box[axis] = {0, box[axis].size()};
  return box.text();
}

}  // namespace

std::optional<std::string> problem_of(const Task& task) {
  std::string text;
  for (const LayerPtr& layer : task.layers) {
    const std::optional<std::string> options = options_text(*layer);
    if (!options) return std::nullopt;
    text += fmt::format("{}{}; ", layer->type(), *options);
  }
  text += task.phase == Phase::train ? "train" : "test";
  for (size_t i = 0; i < task.inputs.size(); ++i)
    text += fmt::format("; in {} {}", task.inputs[i].text(), text_of(task.input_boxes[i]));
  for (size_t k = 0; k < task.outputs.size(); ++k)
    text += fmt::format("; out {} {}", task.outputs[k].text(), text_of(task.output_boxes[k]));
  return text + fmt::format("; domain {}; gradients {} {}; {}{}{}", text_of(task.domain_box),
                            flags(task.input_gradients), flags(task.parameter_gradients),
                            task.cut ? "cut" : "whole", task.canonical_parameters ? " canonical" : "",
                            task.local_sums ? " local" : "");
}

std::optional<std::string> problem_of(const Task& task, const std::string& kernels) {
  std::optional<std::string> problem = problem_of(task);
  if (problem && !kernels.empty()) *problem += "; kernels " + kernels;
  return problem;
}

}  // namespace cortado
