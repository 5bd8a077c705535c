#include "cortado/parallel/config_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <numeric>

#include "cortado/base/error.h"
#include "cortado/parallel/layer_cut.h"

namespace cortado {
namespace {

// One dimension of a configuration with what a layer offers along it.
struct Dimension {
  const char* name;
  const char* what;  // what is counted along it
  int Degrees::*degree;
  bool allowed;
  int64_t extent;  // 1 where the domain has no such axis
};

std::array<Dimension, 6> dimensions_of(const Layer& layer, std::span<const Shape> inputs,
                                       std::span<const Shape> outputs) {
  const Shape domain = layer.domain(inputs, outputs);
  const DimensionAxes axes = dimension_axes(domain.rank());
  const Cuts cuts = layer.cuts(inputs);
  auto extent = [&](int axis) { return axis >= 0 ? domain[axis] : 1; };
  const int64_t summed = cuts.r && inputs[0].rank() > 1 ? inputs[0][1] : 1;
  return {{{"n", "samples", &Degrees::n, cuts.n, extent(axes.n)},
           {"c", "channels", &Degrees::c, cuts.c, extent(axes.c)},
           {"d", "planes", &Degrees::d, cuts.d, extent(axes.d)},
           {"h", "rows", &Degrees::h, cuts.h, extent(axes.h)},
           {"w", "columns", &Degrees::w, cuts.w, extent(axes.w)},
           {"r", "input channels", &Degrees::r, cuts.r, summed}}};
}

void check_devices(const ParallelConfig& config, int ranks) {
  const int product = config.degrees.product();
  if (product > ranks) {
    throw UserError(
        fmt::format("{} needs {} devices, the job has {} ranks; lower a degree or start more ranks",
                    config.degrees.text(), product, ranks));
  }
  if (static_cast<int>(config.devices.size()) != product) {
    throw UserError(fmt::format("{} devices are given for {}, which needs {}", config.devices.size(),
                                config.degrees.text(), product));
  }
  for (size_t i = 0; i < config.devices.size(); ++i) {
    const int device = config.devices[i];
    if (device < 0 || device >= ranks) {
      throw UserError(fmt::format("device {} does not exist: the job has ranks 0 to {}", device, ranks - 1));
    }
    if (std::ranges::count(config.devices, device) > 1)
      throw UserError(fmt::format("device {} is given twice", device));
  }
}

void check_weights(const ParallelConfig& config) {
  if (config.weights.empty()) return;
  if (config.weights.size() != config.devices.size()) {
    throw UserError(
        fmt::format("{} weights are given for {} devices", config.weights.size(), config.devices.size()));
  }
  if (!can_weigh(config.degrees)) throw UserError("weights need exactly one of n, c, d, h, w above 1");
  for (double weight : config.weights) {
    if (!(weight > 0) || !std::isfinite(weight))
      throw UserError(fmt::format("weight {} is not a positive number", weight));
  }
}

}  // namespace

void check_config(const ParallelConfig& config, const Layer& layer, std::span<const Shape> inputs,
                  std::span<const Shape> outputs, int ranks) {
  for (const Dimension& dimension : dimensions_of(layer, inputs, outputs)) {
    const int degree = config.degrees.*dimension.degree;
    if (degree < 1) throw UserError(fmt::format("{} is {}, must be at least 1", dimension.name, degree));
    if (degree == 1) continue;
    if (!dimension.allowed) {
      throw UserError(
          fmt::format("{} = {}: a layer of type {} with these shapes is not cut along {}; set {} to 1",
                      dimension.name, degree, layer.type(), dimension.name, dimension.name));
    }
    if (degree > dimension.extent) {
      throw UserError(fmt::format("{} = {}: there are only {} {}; use at most {}", dimension.name, degree,
                                  dimension.extent, dimension.what, dimension.extent));
    }
  }
  const Degrees& degrees = config.degrees;
  if (degrees.r > 1 && degrees.c * degrees.r > outputs[0][1]) {
    throw UserError(
        fmt::format("c * r = {}: each of these devices owns a part of the sum, but there are only {} "
                    "output channels; use at most that many",
                    degrees.c * degrees.r, outputs[0][1]));
  }
  check_devices(config, ranks);
  check_weights(config);
  if (!parts_read(layer, inputs, outputs, config)) {
    throw UserError(fmt::format("{}: a part at the edge would read padding alone; use fewer parts{}",
                                config.text(),
                                config.weights.empty() ? "" : ", or weights that are less unequal"));
  }
}

Degrees most_degrees(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs) {
  Degrees most;
  for (const Dimension& dimension : dimensions_of(layer, inputs, outputs)) {
    const int64_t extent = dimension.allowed ? dimension.extent : 1;
    most.*dimension.degree = static_cast<int>(std::min<int64_t>(extent, std::numeric_limits<int>::max()));
  }
  return most;
}

ParallelConfig clamped(ParallelConfig config, const Layer& layer, std::span<const Shape> inputs,
                       std::span<const Shape> outputs) {
  const Degrees before = config.degrees;
  for (const Dimension& dimension : dimensions_of(layer, inputs, outputs)) {
    int& degree = config.degrees.*dimension.degree;
    degree = dimension.allowed ? static_cast<int>(std::min<int64_t>(degree, dimension.extent)) : 1;
  }
  if (config.degrees != before) config.weights.clear();
  config.devices.resize(static_cast<size_t>(config.degrees.product()));
  return config;
}

}  // namespace cortado
