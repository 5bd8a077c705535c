// Any text is either a machine, which comes back the same from its own text and answers what planners ask, or
// a UserError.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "cortado/base/error.h"
#include "cortado/machine/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cortado;
  try {
    const DeviceGraph graph = parse_machine({reinterpret_cast<const char*>(data), size}, "fuzz.json");
    if (parse_machine(machine_text(graph), "text") != graph) std::abort();
    const int some = std::min(graph.devices(), 8);
    const DeviceGraph part = graph.first(some);
    for (int from = 0; from < some; ++from) {
      for (int to = 0; to < some; ++to) {
        if (part.link(from, to) != graph.link(from, to)) std::abort();
      }
    }
  } catch (const UserError&) {
  }
  return 0;
}
