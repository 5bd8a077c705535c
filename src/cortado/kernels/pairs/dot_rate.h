#pragma once

namespace cortado::pairs {

// How many vdpbf16ps a core does in the time of one multiply-add of as many floats: 1 where both are as fast,
// so that products of bf16 numbers are twice as many. The processor must have the instructions. Measured, in
// a fifth of a millisecond: processors of one vendor differ.
double dots_for_a_multiply_add();

}  // namespace cortado::pairs
