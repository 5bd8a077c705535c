#pragma once

#include <string>
#include <vector>

#include "cortado/net/network.h"
#include "cortado/train/safetensors.h"

namespace cortado {

// What torchvision calls the parameters of a net of the zoo: "layer1.0.conv1.weight".
struct TorchvisionNames {
  std::string family;  // "resnet"
  IndexedVector<ParameterIndex, std::string>
      of_parameter;                          // empty: torchvision has none (BatchNorm's factor)
  std::vector<std::string> of_other_layers;  // beginnings of names of layers that the zoo leaves out
};

// Throws UserError where the layers of `network` are called as in no net of the zoo that torchvision has.
TorchvisionNames torchvision_names(const Network& network);

// The tensors of a state_dict by this network's parameters. Throws UserError naming `path` and tensor: a
// tensor that the network needs is not there or has another shape, or one is left over.
struct FromTorchvision {
  IndexedVector<ParameterIndex, std::vector<float>> values;
  std::vector<std::string> passed_over;  // tensors of layers that the network has not
};
FromTorchvision from_torchvision(const Network& network, const TorchvisionNames& names,
                                 const SafetensorsFile& file, const std::string& path);

// A state_dict of the network's parameters, as a file.
SafetensorsFile to_torchvision(const Network& network, const TorchvisionNames& names,
                               const IndexedVector<ParameterIndex, std::vector<float>>& values);

}  // namespace cortado
