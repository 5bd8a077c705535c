#pragma once

#include <gtest/gtest.h>
#include <string>

#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"

#include "tests/base/scratch_folder.h"

namespace cortado {

inline LoadedNetwork load(const std::string& text, Phase phase = Phase::train) {
  return load_network(parse_net(text, "net.prototxt"), net_state(phase), declared_source_shapes);
}

inline std::string load_error(const std::string& text) {
  return error_of([&] { load(text); });
}

}  // namespace cortado
