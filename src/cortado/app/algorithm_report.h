#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cortado/measure/algorithms.h"
#include "cortado/net/network.h"
#include "cortado/program/program.h"

namespace cortado {

// A convolution of a net, and the layers that are the same one.
struct ReportedConvolution {
  std::vector<std::string> layers;
  Task task;
  AlgorithmTable table;
};

// The convolutions of a program in its order, each problem once.
std::vector<ReportedConvolution> convolutions_of(const Network& network, const Program& program,
                                                 Algorithms& algorithms);

// `peak`: of the compute threads, in FLOP per second.
std::string algorithms_text(const std::vector<ReportedConvolution>& convolutions, double peak);
nlohmann::ordered_json algorithms_json(const std::vector<ReportedConvolution>& convolutions, double peak);

}  // namespace cortado
