#include "cortado/parallel/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <numeric>

#include "cortado/base/error.h"

namespace cortado {
namespace {

Range cut(int64_t extent, int degree, int index, const ParallelConfig& config) {
  return block_of(extent, degree, index, degree > 1 ? config.weights : std::vector<double>{});
}

std::string text_of_run(int first, int length) {
  return length == 1 ? fmt::format("{}", first) : fmt::format("{}-{}", first, first + length - 1);
}

// "0-3", "2,0"; where more than four runs of a length follow each other at a distance "0-3,8-11,...,56-59".
std::string text_of(const std::vector<int>& devices) {
  constexpr int most_runs = 4;
  const int all = static_cast<int>(devices.size());
  const auto at = [&](int i) { return devices[static_cast<size_t>(i)]; };
  int length = 1;
  while (length < all && at(length) == at(0) + length) ++length;
  if (length == all && all > 1) return text_of_run(at(0), all);
  const int runs = all / length;
  const auto in_its_place = [&](int i) { return at(0) + i / length * (at(length) - at(0)) + i % length; };
  bool evenly = runs > most_runs && runs * length == all;
  for (int i = 0; evenly && i < all; ++i) evenly = at(i) == in_its_place(i);
  if (!evenly) return fmt::format("{}", fmt::join(devices, ","));
  return fmt::format("{},{},...,{}", text_of_run(at(0), length), text_of_run(at(length), length),
                     text_of_run(at(all - length), length));
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
  std::string text = degrees.text();
  if (!weights.empty()) {
    const double least = *std::ranges::min_element(weights);
    std::vector<std::string> shares;
    for (double weight : weights) shares.push_back(fmt::format("{:.3g}", weight / least));
    text += fmt::format(" by {}", fmt::join(shares, ":"));
  }
  return fmt::format("{} on {}", text, text_of(devices));
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

ParallelConfig spread(ParallelConfig config, int devices) {
  const int parts = config.degrees.n, used = static_cast<int>(config.devices.size());
  if (parts == 1 || used == devices || devices % parts != 0 || !config.weights.empty()) return config;
  for (int i = 0; i < used; ++i)
    if (config.devices[static_cast<size_t>(i)] != i) return config;
  const int of_part = used / parts;  // samples run slowest
  for (int i = 0; i < used; ++i)
    config.devices[static_cast<size_t>(i)] = i / of_part * (devices / parts) + i % of_part;
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

}  // namespace cortado
