#include "cortado/report/overlap_ratio.h"

#include <algorithm>

namespace cortado {

std::optional<double> overlap_ratio(Seconds communication, Seconds exposed) {
  if (communication.count <= 0) return std::nullopt;
  return std::max(0.0, 100 * (communication - exposed).count / communication.count);
}

}  // namespace cortado
