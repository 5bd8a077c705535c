#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cortado/base/units.h"
#include "cortado/kernels/lowering/lowering_type.h"
#include "cortado/kernels/lowering/problem.h"

namespace cortado::lowering {

// The cost model of the lowerings (Caffe con Troll, Figure 6), of the forward pass of the whole batch, in
// floats and operations. Of an axis with n image positions, m windows and k taps a lowered axis
// (lowering.h) gives the lowered data m k columns' worth and the product m, a lifted one n and n k:
//
//                    type 1      type 2        type 3
//   lowered data     k^2 d m^2   k d m n       d n^2
//   lowered kernel   k^2 d o     k^2 d o       k^2 d o
//   multiply         2 k^2 d o m^2   2 k^2 d o m n   2 k^2 d o n^2     operations
//   product          o m^2       k o m n       k^2 o n^2
//   lift             0           k o m^2       k^2 o m^2       additions
//   lift reads       o m^2       k o m n       k^2 o n^2
//
// Beyond the figure: three axes; with a stride s a lifted axis has n k / s, rounded as its classes have it,
// in place of n k; taps in the padding are not added when lifting; the batch and groups multiply all but the
// kernel, which groups alone multiply.
struct LoweringCost {
  int64_t lowered_data = 0, lowered_kernel = 0, product = 0, lift_reads = 0;  // floats
  Flops multiply, lift;
  // What is copied beside the tensors: where the image is the lowered data, or the product the windows,
  // nothing is.
  int64_t copied_data = 0, copied_product = 0;
  int64_t image = 0, windows = 0;  // floats of the tensors
};

LoweringCost lowering_cost(const ConvolutionProblem& problem, LoweringType type);

// Seconds of a pass: the multiplication at `peak`, and each float that is read or written at the bandwidth of
// the memory. What is copied is written once and read once. It holds forward and backward: backward
// lowers what forward lifts. Caches make passes faster than this, borders of matrices slower: it ranks.
Seconds predicted_time(const LoweringCost& cost, FlopRate peak, Bandwidth memory);
// The same for a product that copies nothing: implicit-gemm, or a library's direct convolution.
Seconds predicted_direct_time(const ConvolutionProblem& problem, FlopRate peak, Bandwidth memory);
// Winograd's F(m x m, r x r) in tiles of `side` m: of m^2 windows each with (m + r - 1)^2 multiplications in
// place of r^2 m^2, and as many numbers for m^2 of each tensor, written and read.
Seconds predicted_winograd_time(const ConvolutionProblem& problem, int64_t side, FlopRate peak,
                                Bandwidth memory);

// Predicts a pass of a Convolution or Deconvolution task by the implementation of that name; nothing for
// others.
std::optional<Seconds> predicted_pass(const Task& task, const std::string& implementation, FlopRate peak,
                                      Bandwidth memory);

}  // namespace cortado::lowering
