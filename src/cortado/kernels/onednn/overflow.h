#pragma once

#include <cstdint>

namespace cortado::onednn {

// Whether floating-point arithmetic has overflowed, or divided by zero, on a compute thread since the last
// call: what the processor notes of itself in each thread's MXCSR register (IEEE 754-2019, section 7.4;
// kernels mask the exception, the note stays). Clears the notes. Without one, and from finite values, every
// result is finite: this finds an infinity that a ReLU has made 0, and reads no tensor.
bool take_overflow();

// Whether all of `values`[0, count) are finite.
bool all_finite(const float* values, int64_t count);

}  // namespace cortado::onednn
