#pragma once

#include <string>
#include <vector>

namespace cortado::api {

// Layers that only the network, or only a file of weights, has.
struct PassedOver {
  std::vector<std::string> of_network, of_file;
};

}  // namespace cortado::api
