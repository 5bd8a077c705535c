#pragma once

#include <string_view>

#include "cortado/base/json_object.h"
#include "cortado/machine/device_graph.h"

namespace cortado {

// What reading and writing a machine file share.
inline constexpr int machine_version = 1;
inline constexpr std::string_view machine_format = "cortado-machine";

inline constexpr JsonUnit plain{1}, giga{1e9L}, micro{1e-6L}, micro_per_mega{1e-12L}, gibi{1 << 30};

inline constexpr std::string_view kind_keys[task_kinds] = {"convolution", "inner_product", "memory"};
inline constexpr std::string_view pass_keys[task_passes] = {"forward", "backward_weights", "backward"};

}  // namespace cortado
