#include "cortado/parallel/layer_cut.h"

#include "cortado/base/error.h"

namespace cortado {
namespace {

int parameters_of(const Layer& layer, std::span<const Shape> inputs) {
  return static_cast<int>(layer.parameters(inputs).size());
}

}  // namespace

LayerCutter::LayerCutter(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs,
                         const ParallelConfig& config)
    : layer_(layer),
      inputs_(inputs),
      outputs_(outputs),
      config_(config),
      domain_(layer.domain(inputs, outputs)),
      bias_after_(config.degrees.r > 1 && layer.without_bias() ? parameters_of(layer, inputs) - 1 : -1) {}

Box LayerCutter::reads(int input, int index) const {
  if (inputs_.empty()) return {};
  Box box = read_box(layer_, inputs_, outputs_, input, domain(index));
  if (config_.degrees.r > 1 && input == 0) box[1] = summed_channels(index);
  return box;
}

Range LayerCutter::summed_channels(int index) const {
  return block_of(inputs_[0][1], config_.degrees.r, coordinates_of(config_.degrees, index).r);
}

Box LayerCutter::replicas_domain(int index) const {
  Box box = Box::whole(domain_);
  if (box.rank() > 1) box[1] = domain(index)[1];
  return box;
}

Box LayerCutter::replicas_reads(int index) const {
  if (inputs_.empty()) return {};
  Box box = layer_.input_box(inputs_, 0, 0, replicas_domain(index));
  if (config_.degrees.r > 1) box[1] = summed_channels(index);
  return box;
}

Box LayerCutter::computes(int output, int index) const {
  return layer_.output_box(inputs_, outputs_, output, domain(index));
}

std::optional<Box> LayerCutter::owns(int output, int index) const {
  if (config_.degrees.r > 1) return summed_block(outputs_[static_cast<size_t>(output)], config_, index);
  if (config_.devices.size() == 1 || !layer_.sums(output)) return computes(output, index);
  if (index > 0) return std::nullopt;
  return Box::whole(outputs_[static_cast<size_t>(output)]);
}

Box LayerCutter::slice(int parameter, int index) const {
  const Box read = reads(0, index);
  ensure(!read.empty(), "a layer with parameters reads nothing");
  const bool after = parameter == bias_after_;
  return layer_.parameter_box(inputs_, parameter, after ? *owns(0, index) : domain(index), read);
}

// If any part lies in the padding, so does the first or the last one: along the axis on whose edge it is they
// are further out.
bool parts_read(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs,
                const ParallelConfig& config) {
  if (inputs.empty() || layer.parameters(inputs).empty()) return true;
  const Shape domain = layer.domain(inputs, outputs);
  const auto reads = [&](int index) {
    return !layer.input_box(inputs, 0, 0, domain_block(domain, config, index)).empty();
  };
  return reads(0) && reads(config.degrees.product() - 1);
}

LayerCut cut_layer(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs,
                   const ParallelConfig& config, int ranks) {
  const LayerCutter cutter(layer, inputs, outputs, config);
  auto each = [&](auto&& box_of) {
    Layout layout(static_cast<size_t>(ranks));
    for (int index = 0; index < static_cast<int>(config.devices.size()); ++index)
      layout[static_cast<size_t>(config.devices[static_cast<size_t>(index)])] = box_of(index);
    return layout;
  };
  LayerCut cut;
  cut.domain = each([&](int index) { return cutter.domain(index); });
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
    cut.reads.push_back(each([&](int index) { return cutter.reads(i, index); }));
    for (auto& box : cut.reads.back()) {
      if (box && box->empty()) box.reset();
    }
  }
  for (int k = 0; k < static_cast<int>(outputs.size()); ++k) {
    cut.computes.push_back(each([&](int index) { return cutter.computes(k, index); }));
    cut.owns.push_back(each([&](int index) { return cutter.owns(k, index); }));
  }
  const int parameters = parameters_of(layer, inputs);
  for (int p = 0; p < parameters; ++p)
    cut.slices.push_back(each([&](int index) { return cutter.slice(p, index); }));
  if (parameters > 0) {
    cut.replicas_domain = each([&](int index) { return cutter.replicas_domain(index); });
    cut.replicas_reads = each([&](int index) { return cutter.replicas_reads(index); });
  }
  return cut;
}

}  // namespace cortado
