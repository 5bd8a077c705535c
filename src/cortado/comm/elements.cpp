#include "cortado/comm/elements.h"

#include <type_traits>

#include "cortado/base/error.h"

namespace cortado {

void ensure_summed(ElementType type) {
  const bool summed = with_element_type(type, []<typename E>() { return std::is_arithmetic_v<E>; });
  ensure(summed, "ranks sum numbers that add up by themselves");
}

void add_elements(ElementPointer sums, const void* addends, int64_t count) {
  ensure_summed(sums.type);
  with_element_type(sums.type, [&]<typename E>() {
    if constexpr (std::is_arithmetic_v<E>) {
      E* mine = static_cast<E*>(sums.memory);
      const E* theirs = static_cast<const E*>(addends);
      for (int64_t i = 0; i < count; ++i) mine[i] += theirs[i];
    }
  });
}

}  // namespace cortado
