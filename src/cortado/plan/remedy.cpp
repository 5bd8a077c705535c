#include "cortado/plan/remedy.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado::plan {
namespace {

bool does_fit(const Fits& fits, int devices, int64_t batch) {
  try {
    return fits(devices, batch);
  } catch (const UserError&) {  // a net that this batch does not suit
    return false;
  }
}

// The largest k in [0, most] for which `holds`, which may not hold above one for which it does not; 0 holds.
template <typename Holds>
int64_t largest(int64_t most, Holds&& holds) {
  int64_t low = 0, high = most;
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (holds(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

int64_t largest_batch(const Fits& fits, int devices, int64_t batch) {
  const int64_t multiple = largest((batch - 1) / devices, [&](int64_t k) {  //
    return does_fit(fits, devices, k * devices);
  });
  if (multiple > 0) return multiple * devices;
  return largest(std::min<int64_t>(devices, batch) - 1,
                 [&](int64_t k) { return does_fit(fits, devices, k); });
}

}  // namespace

Remedy find_remedy(const Fits& fits, int devices, int most_devices, int64_t batch) {
  Remedy remedy;
  constexpr int tried_singly = 8;
  for (int more = devices; more < most_devices && remedy.devices == 0;) {
    more = more < tried_singly ? more + 1 : std::min(2 * more, most_devices);
    if (does_fit(fits, more, batch)) remedy.devices = more;
  }
  remedy.batch = largest_batch(fits, devices, batch);
  return remedy;
}

std::string text_of(const Remedy& remedy, int most_devices) {
  if (remedy.devices == 0 && remedy.batch == 0)
    return fmt::format("it fits neither on all {} devices of the machine nor with a smaller batch",
                       most_devices);
  std::string text = "it fits ";
  if (remedy.devices > 0) text += fmt::format("on {} devices", remedy.devices);
  if (remedy.devices > 0 && remedy.batch > 0) text += ", or ";
  if (remedy.batch > 0) text += fmt::format("with a batch of {}", remedy.batch);
  return text;
}

}  // namespace cortado::plan
