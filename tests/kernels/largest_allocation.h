#pragma once

#include <atomic>
#include <cstddef>

namespace cortado::check {

// The most bytes that the program that links this asked `new` for at once, since it was last set to 0.
extern std::atomic<size_t> largest_allocation;

}  // namespace cortado::check
