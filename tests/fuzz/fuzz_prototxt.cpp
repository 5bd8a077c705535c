// Any text is either a network (parsed, upgraded, filtered, built, priced) or a UserError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cortado/base/error.h"
#include "cortado/net/read_net.h"

#include "tests/fuzz/build_net.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    cortado::NetFile file =
        cortado::parse_net(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.prototxt");
    cortado::build_both_phases(file);
  } catch (const cortado::UserError&) {
  }
  return 0;
}
