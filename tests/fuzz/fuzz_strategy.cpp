// Any text is either a strategy, which comes back the same from its own text, or a UserError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "cortado/base/error.h"
#include "cortado/parallel/strategy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cortado;
  try {
    const Strategy strategy = parse_strategy({reinterpret_cast<const char*>(data), size}, "fuzz.json");
    strategy.find("conv1");
    if (parse_strategy(strategy_text(strategy), "text") != strategy) std::abort();
  } catch (const UserError&) {
  }
  return 0;
}
