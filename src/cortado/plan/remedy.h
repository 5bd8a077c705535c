#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace cortado::plan {

// What would make a net fit that does not fit in a device's memory; 0: none was found.
struct Remedy {
  int devices = 0;    // fewest, of those tried, on which it fits with the same batch
  int64_t batch = 0;  // largest that fits on the same devices
};

// Whether it fits on so many devices with such a batch; throws UserError where that cannot be.
using Fits = std::function<bool(int devices, int64_t batch)>;

// Tries up to `most_devices`: each number up to 8, then doubled ones; and batches by bisection, multiples of
// the number of devices where there are any below `batch`.
Remedy find_remedy(const Fits& fits, int devices, int most_devices, int64_t batch);

// "fits on 4 devices, or with a batch of 24".
std::string text_of(const Remedy& remedy, int most_devices);

}  // namespace cortado::plan
