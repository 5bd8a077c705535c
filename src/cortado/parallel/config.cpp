#include "cortado/parallel/config.h"

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

Range cut(int64_t extent, int degree, int index, const ParallelConfig& config) {
  return block_of(extent, degree, index, degree > 1 ? config.weights : std::vector<double>{});
}

}  // namespace

std::string Degrees::text() const {
  std::string text;
  auto add = [&](char name, int degree) {
    if (degree > 1) text += fmt::format("{}{}{}", text.empty() ? "" : " ", name, degree);
  };
  add('n', n), add('c', c), add('d', d), add('h', h), add('w', w), add('r', r);
  return text.empty() ? "1" : text;
}

int ParallelConfig::index_of(int rank) const {
  auto found = std::ranges::find(devices, rank);
  return found == devices.end() ? -1 : static_cast<int>(found - devices.begin());
}

std::string ParallelConfig::text() const {
  bool run = devices.size() > 1;
  for (size_t i = 1; i < devices.size(); ++i) run &= devices[i] == devices[i - 1] + 1;
  std::string text = degrees.text();
  if (!weights.empty()) {
    const double least = *std::ranges::min_element(weights);
    std::vector<std::string> shares;
    for (double weight : weights) shares.push_back(fmt::format("{:.3g}", weight / least));
    text += fmt::format(" by {}", fmt::join(shares, ":"));
  }
  if (run) return fmt::format("{} on {}-{}", text, devices.front(), devices.back());
  return fmt::format("{} on {}", text, fmt::join(devices, ","));
}

bool can_weigh(const Degrees& degrees) {
  int cut = 0;
  for (int degree : {degrees.n, degrees.c, degrees.d, degrees.h, degrees.w}) cut += degree > 1;
  return cut == 1 && degrees.r == 1;
}

ParallelConfig weighed(ParallelConfig config, std::span<const double> weights_of_ranks) {
  config.weights.clear();
  if (weights_of_ranks.empty() || !can_weigh(config.degrees)) return config;
  for (int device : config.devices) config.weights.push_back(weights_of_ranks[static_cast<size_t>(device)]);
  const auto [least, most] = std::ranges::minmax(config.weights);
  if (least == most) config.weights.clear();
  return config;
}

Coordinates coordinates_of(const Degrees& degrees, int index) {
  Coordinates at;
  auto take = [&](int degree) {
    int coordinate = index % degree;
    index /= degree;
    return coordinate;
  };
  at.r = take(degrees.r);
  at.c = take(degrees.c);
  at.w = take(degrees.w);
  at.h = take(degrees.h);
  at.d = take(degrees.d);
  at.n = take(degrees.n);
  return at;
}

Range block_of(int64_t extent, int parts, int index, const std::vector<double>& weights) {
  if (weights.empty()) return {extent * index / parts, extent * (index + 1) / parts};
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  // Every block keeps at least one index.
  Range block;
  double sum = 0;
  for (int i = 0; i <= index; ++i) {
    sum += weights[static_cast<size_t>(i)];
    const auto end = static_cast<int64_t>(std::llround(sum / all * static_cast<double>(extent)));
    const int64_t least = block.end + 1, most = extent - (parts - 1 - i);
    block = {block.end, std::clamp(end, least, std::max(least, most))};
  }
  return block;
}

DimensionAxes dimension_axes(int rank) {
  DimensionAxes axes;
  if (rank < 1) axes.n = -1;
  if (rank >= 2) axes.c = 1;
  if (rank > 5) return axes;
  if (rank >= 3) axes.w = rank - 1;
  if (rank >= 4) axes.h = rank - 2;
  if (rank >= 5) axes.d = rank - 3;
  return axes;
}

Box domain_block(const Shape& domain, const ParallelConfig& config, int index) {
  const Coordinates at = coordinates_of(config.degrees, index);
  const DimensionAxes axes = dimension_axes(domain.rank());
  Box box = Box::whole(domain);
  auto set = [&](int axis, int degree, int coordinate) {
    if (axis >= 0) box[axis] = cut(domain[axis], degree, coordinate, config);
  };
  set(axes.n, config.degrees.n, at.n);
  set(axes.c, config.degrees.c, at.c);
  set(axes.d, config.degrees.d, at.d);
  set(axes.h, config.degrees.h, at.h);
  set(axes.w, config.degrees.w, at.w);
  return box;
}

Box summed_block(const Shape& domain, const ParallelConfig& config, int index) {
  Box box = domain_block(domain, config, index);
  const int part = coordinates_of(config.degrees, index).r;
  const Range own = block_of(box[1].size(), config.degrees.r, part);
  box[1] = {box[1].begin + own.begin, box[1].begin + own.end};
  return box;
}

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
