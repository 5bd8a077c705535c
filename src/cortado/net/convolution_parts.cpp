#include "cortado/net/convolution_parts.h"

#include <fmt/format.h>
#include <optional>

#include "cortado/base/error.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/deconvolution.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/reshape.h"

namespace cortado {
namespace {

LayerPtr reshape_to(std::vector<int64_t> shape) {
  return std::make_shared<Reshape>(ReshapeOptions{.shape = std::move(shape)});
}

class Parts {
 public:
  Parts(const LayerDeclaration& layer, const ConvolutionOptions& options, const Shape& input,
        const std::function<std::string(std::string)>& unused)
      : layer_(layer),
        options_(options),
        input_(input),
        axis_(input.canonical_axis(options.axis)),
        unused_(unused) {
    convolution_ = axis_ == input.rank() - 1 ? without_space() : with_channels_on_axis_1();
  }

  void add(size_t bottom) {
    const bool moved = axis_ != 1 && axis_ != input_.rank() - 1;
    const std::string in = moved ? unused_(layer_.name + "#in") : layer_.bottoms[bottom];
    const std::string out = moved ? unused_(layer_.name + "#out") : layer_.tops[bottom];
    std::optional<bool> gradient;
    if (bottom < layer_.propagate_down.size()) gradient = layer_.propagate_down[bottom];
    if (moved) add_part(in, reshape_to(joined()), layer_.bottoms[bottom], in, gradient);
    const std::string number = fmt::format("{}#{}", layer_.name, bottom + 1);
    add_part(bottom == 0 ? layer_.name : unused_(number), convolution_, in, out, gradient);
    // propagate_down: false stops the gradient at the bottom alone. The weights still need the gradient that
    // comes through the part after the convolution.
    if (!gradient.value_or(false)) gradient.reset();
    if (moved) add_part(out, reshape_to(taken_apart()), out, layer_.tops[bottom], gradient);
    if (bottom < layer_.loss_weights.size()) parts_.back().loss_weights = {layer_.loss_weights[bottom]};
  }

  std::vector<LayerDeclaration> take() { return std::move(parts_); }

 private:
  void add_part(const std::string& name, LayerPtr layer, const std::string& in, const std::string& out,
                std::optional<bool> gradient) {
    LayerDeclaration part = layer_;
    part.name = name;
    if (name != layer_.name) part.part_of = layer_.name;
    part.layer = std::move(layer);
    part.bottoms = {in};
    part.tops = {out};
    if (name != layer_.name) part.parameters.clear();
    part.loss_weights.clear();
    part.propagate_down = {gradient};
    parts_.push_back(std::move(part));
  }

  LayerPtr with_channels_on_axis_1() const {
    ConvolutionOptions options = options_;
    options.axis = 1;
    if (layer_.layer->type() == "Convolution") return std::make_shared<Convolution>(std::move(options));
    return std::make_shared<Deconvolution>(std::move(options));
  }

  LayerPtr without_space() const {
    for (const auto* values : {&options_.kernel, &options_.stride, &options_.pad, &options_.dilation}) {
      if (values->size() <= 1) continue;
      throw UserError(fmt::format("{} values for the spatial axes of {}, which has none after axis {}",
                                  values->size(), input_.text(), axis_));
    }
    if (options_.group != 1)
      throw UserError(fmt::format("group {} needs spatial axes after axis {}", options_.group, axis_));
    return std::make_shared<InnerProduct>(
        InnerProductOptions{.num_output = options_.num_output,
                            .bias_term = options_.bias_term,
                            .transpose = layer_.layer->type() == "Deconvolution",
                            .axis = axis_,
                            .weight_filler = options_.weight_filler,
                            .bias_filler = options_.bias_filler});
  }

  // The input with one axis of all before the channels.
  std::vector<int64_t> joined() const {
    std::vector<int64_t> extents{input_.count(0, axis_)};
    for (int axis = axis_; axis < input_.rank(); ++axis) extents.push_back(input_[axis]);
    return extents;
  }

  // The output with the input's axes before the channels.
  std::vector<int64_t> taken_apart() const {
    const Shape joined_input(joined());
    const Shape output = convolution_->output_shapes(std::span(&joined_input, 1), 1)[0];
    std::vector<int64_t> extents(input_.extents().begin(), input_.extents().begin() + axis_);
    for (int axis = 1; axis < output.rank(); ++axis) extents.push_back(output[axis]);
    return extents;
  }

  const LayerDeclaration& layer_;
  const ConvolutionOptions& options_;
  const Shape& input_;
  int axis_;
  const std::function<std::string(std::string)>& unused_;
  LayerPtr convolution_;
  std::vector<LayerDeclaration> parts_;
};

}  // namespace

std::vector<LayerDeclaration> convolution_parts(const LayerDeclaration& layer, std::span<const Shape> inputs,
                                                const std::function<std::string(std::string)>& unused) {
  const ConvolutionOptions* options = convolution_options(*layer.layer);
  if (!options || inputs.empty()) return {layer};
  const bool plain = inputs[0].canonical_axis(options->axis) == 1 && inputs[0].rank() > 2;
  if (plain && inputs.size() == 1) return {layer};
  if (layer.tops.size() != inputs.size()) {
    throw UserError(
        fmt::format("{} bottoms and {} tops; it needs as many", inputs.size(), layer.tops.size()));
  }
  for (const Shape& input : inputs) {
    if (input == inputs[0]) continue;
    throw UserError(
        fmt::format("bottoms of shapes {} and {}; all must have one", inputs[0].text(), input.text()));
  }
  Parts parts(layer, *options, inputs[0], unused);
  for (size_t bottom = 0; bottom < inputs.size(); ++bottom) parts.add(bottom);
  return parts.take();
}

}  // namespace cortado
