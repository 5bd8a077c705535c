#include "cortado/tune/cut_bound.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "cortado/base/error.h"

namespace cortado {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

void lower(double& least, double value) { least = std::min(least, value); }

// What a device does of a choice's layers.
DeviceParts::OfNode of_choice(const DeviceParts& device, const CutChoice& choice) {
  DeviceParts::OfNode sum;
  for (NodeIndex node : choice.nodes) {
    const DeviceParts::OfNode& part = device.nodes[node];
    sum.here |= part.here;
    sum.forward += part.forward;
    sum.gradient += part.gradient;
    sum.after += part.after;
    sum.update += part.update;
  }
  return sum;
}

// Of the devices that compute some of the choice's layers.
template <typename Value>
double least_here(const std::vector<DeviceParts>& devices, const CutChoice& choice, Value&& value) {
  double least = infinity;
  for (const DeviceParts& device : devices)
    if (const auto part = of_choice(device, choice); part.here) lower(least, value(device, part));
  return least;
}

}  // namespace

Strategy with_ways(Strategy strategy, const Network& network, const std::vector<CutChoice>& choices,
                   const std::vector<size_t>& ways) {
  for (size_t i = 0; i < ways.size(); ++i) {
    const CutChoice& choice = choices[i];
    for (size_t n = 0; n < choice.nodes.size(); ++n) {
      const std::string& name = network.nodes()[choice.nodes[n]].name;
      const auto rule = std::ranges::find(strategy.rules, name, &Strategy::Rule::pattern);
      ensure(rule != strategy.rules.end(), "each layer has its rule");
      rule->layer = choice.ways[ways[i]][n];
    }
  }
  return strategy;
}

CutBound::CutBound(const Strategy& start, const Network& network, const std::vector<CutChoice>& choices,
                   const StrategyCosts& costs, int most_pairs)
    : choices_(choices) {
  size_t most = 1;
  for (const CutChoice& choice : choices) {
    lane_.emplace_back(choice.ways.size(), infinity);
    most = std::max(most, choice.ways.size());
  }
  // Halves of a batch compute while others move.
  if (network.learns() && !start.schedule.halves) find_path(network);
  for (size_t choice : path_) here_.emplace_back(choices[choice].ways.size(), infinity);
  for (size_t k = 0; k + 1 < path_.size(); ++k)
    between_.emplace_back(choices[path_[k]].ways.size(),
                          std::vector<double>(choices[path_[k + 1]].ways.size(), infinity));
  const bool pairs = !path_.empty() && most * most <= static_cast<size_t>(most_pairs);
  std::vector<bool> odd(choices.size());
  for (size_t k = 1; k < path_.size(); k += 2) odd[path_[k]] = true;
  for (size_t one = 0; one < most; ++one) {
    for (size_t other = pairs ? 0 : one; other < (pairs ? most : one + 1); ++other) {
      std::vector<size_t> ways;
      for (size_t i = 0; i < choices.size(); ++i)
        ways.push_back(std::min(odd[i] ? other : one, choices[i].ways.size() - 1));
      look_at(ways, costs.devices(with_ways(start, network, choices, ways)), pairs);
    }
  }
  find_rest();
}

// The longest path that ends at the last choice.
void CutBound::find_path(const Network& network) {
  if (choices_.empty()) return;
  IndexedVector<TensorIndex, std::optional<size_t>> made_by(network.tensors().size());
  for (size_t i = 0; i < choices_.size(); ++i)
    for (TensorIndex output : network.nodes()[choices_[i].nodes.back()].outputs) made_by[output] = i;
  struct Longest {
    int length = 1;
    std::optional<size_t> before;
    TensorIndex tensor{};
  };
  std::vector<Longest> longest(choices_.size());
  for (size_t i = 0; i < choices_.size(); ++i) {
    for (TensorIndex input : network.nodes()[choices_[i].nodes[0]].inputs) {
      const std::optional<size_t> from = made_by[input];
      if (!from || *from >= i || !network.tensors()[input].needs_gradient) continue;
      if (longest[*from].length + 1 > longest[i].length)
        longest[i] = {longest[*from].length + 1, from, input};
    }
  }
  std::optional<size_t> at = choices_.size() - 1;
  while (at) {
    path_.insert(path_.begin(), *at);
    if (longest[*at].before) steps_.insert(steps_.begin(), longest[*at].tensor);
    at = longest[*at].before;
  }
}

void CutBound::look_at(const std::vector<size_t>& ways, const std::vector<DeviceParts>& devices, bool pairs) {
  for (size_t i = 0; i < choices_.size(); ++i) {
    double sum = 0;
    for (const DeviceParts& device : devices) sum += of_choice(device, choices_[i]).total().count;
    lower(lane_[i][ways[i]], sum / static_cast<double>(devices.size()));
  }
  for (size_t k = 0; k < path_.size(); ++k) {
    const double least = least_here(devices, choices_[path_[k]], [&](const auto&, const auto& part) {
      return (part.forward + part.gradient + (k == 0 ? part.after : Seconds{})).count;
    });
    lower(here_[k][ways[path_[k]]], least);
  }
  for (size_t k = 0; k + 1 < path_.size(); ++k)
    if (pairs)
      look_at_step(k, ways, devices);
    else
      between_[k].assign(between_[k].size(), std::vector<double>(between_[k][0].size(), 0));
}

void CutBound::look_at_step(size_t k, const std::vector<size_t>& ways,
                            const std::vector<DeviceParts>& devices) {
  const CutChoice &from = choices_[path_[k]], &to = choices_[path_[k + 1]];
  const auto moved = [&](const DeviceParts& device) {
    const auto found = device.moved.find({steps_[k], to.nodes[0]});
    return found == device.moved.end() ? DeviceParts::Moved{} : found->second;
  };
  const double there = least_here(
      devices, to, [&](const DeviceParts& device, const auto&) { return moved(device).there.count; });
  double back = least_here(devices, from,
                           [&](const DeviceParts& device, const auto&) { return moved(device).back.count; });
  // A device that computes both goes on with the one when it has done with the other.
  const bool both = std::ranges::all_of(devices, [&](const DeviceParts& device) {
    return !of_choice(device, from).here || of_choice(device, to).here;
  });
  if (both)
    back = std::max(back,
                    least_here(devices, to, [](const auto&, const auto& part) { return part.after.count; }));
  lower(between_[k][ways[path_[k]]][ways[path_[k + 1]]], there + back);
}

void CutBound::find_rest() {
  rest_of_lane_.assign(choices_.size() + 1, 0);
  for (size_t i = choices_.size(); i-- > 0;)
    rest_of_lane_[i] = rest_of_lane_[i + 1] + std::ranges::min(lane_[i]);
  rest_of_path_.resize(path_.size() + 1);
  if (path_.empty()) return;
  rest_of_path_.back().assign(here_.back().size(), 0);
  for (size_t k = path_.size(); k-- > 0;) {
    const size_t before = k == 0 ? 1 : here_[k - 1].size();
    rest_of_path_[k].assign(before, infinity);
    for (size_t a = 0; a < before; ++a)
      for (size_t b = 0; b < here_[k].size(); ++b)
        lower(rest_of_path_[k][a],
              (k == 0 ? 0 : between_[k - 1][a][b]) + here_[k][b] + rest_of_path_[k + 1][b]);
  }
}

double CutBound::of(const std::vector<size_t>& ways) const {
  double lane = rest_of_lane_[ways.size()];
  for (size_t i = 0; i < ways.size(); ++i) lane += lane_[i][ways[i]];
  if (path_.empty()) return lane;
  double path = 0;
  size_t k = 0;
  for (; k < path_.size() && path_[k] < ways.size(); ++k) {
    const size_t way = ways[path_[k]];
    path += here_[k][way] + (k == 0 ? 0 : between_[k - 1][ways[path_[k - 1]]][way]);
  }
  path += rest_of_path_[k][k == 0 ? 0 : ways[path_[k - 1]]];
  return std::max(lane, path);
}

}  // namespace cortado
