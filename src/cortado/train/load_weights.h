#pragma once

#include <string>
#include <vector>

#include "cortado/exec/executor.h"

namespace cortado {

// The layers with parameters that only the network, or only a file of weights, has.
struct PassedOver {
  std::vector<std::string> of_network, of_file;
};

// Copies the weights of a file into the parameters of a network by layer name (Caffe's rules: layers of only
// one side are passed over). Throws UserError when nothing fits, or when a blob has another shape.
PassedOver load_weights(const std::string& path, const Executor& executor, ParameterStore& parameters);

}  // namespace cortado
