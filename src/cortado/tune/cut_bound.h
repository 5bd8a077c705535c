#pragma once

#include <vector>

#include "cortado/tune/cut_choice.h"
#include "cortado/tune/strategy_costs.h"

namespace cortado {

// Bounds from below what an iteration takes, whatever ways the later choices take. The larger of two times:
//   the lane   what a device computes, on average over all devices
//   the path   of layers of which each reads what the one before makes, there and back: the least that any
//              device computes of each, and the messages between. In the backward pass a message may hide
//              what the layer that sends it still computes
class CutBound {
 public:
  // `start` has a rule for each layer. Asks for the devices' parts under about as many strategies as a choice
  // has ways; where these are no more than `most_pairs`, for every pair of ways, else the path has no
  // messages.
  CutBound(const Strategy& start, const Network& network, const std::vector<CutChoice>& choices,
           const StrategyCosts& costs, int most_pairs);

  double of(const std::vector<size_t>& ways) const;  // of the first choices; seconds

 private:
  using Table = std::vector<std::vector<double>>;  // [way of one choice][way of the next]
  void find_path(const Network& network);
  void look_at(const std::vector<size_t>& ways, const std::vector<DeviceParts>& devices, bool pairs);
  void look_at_step(size_t k, const std::vector<size_t>& ways, const std::vector<DeviceParts>& devices);
  void find_rest();

  const std::vector<CutChoice>& choices_;
  std::vector<std::vector<double>> lane_;  // of each choice, by way
  std::vector<double> rest_of_lane_;       // from this choice on, each in its cheapest way
  std::vector<size_t> path_;               // choices, ascending
  std::vector<TensorIndex> steps_;         // of the path: what the next one reads
  std::vector<std::vector<double>> here_;  // of each choice of the path, by way
  std::vector<Table> between_;             // of each step
  Table rest_of_path_;                     // [k][way of k - 1]: from k on; [0][0]: of all
};

}  // namespace cortado
