#pragma once

#include <cstdint>
#include <vector>

#include "cortado/kernels/kernel.h"
#include "cortado/kernels/lowering/lowered_matrix.h"
#include "cortado/kernels/lowering/lowering_type.h"
#include "cortado/kernels/lowering/problem.h"

namespace cortado::lowering {

// A *lowered* axis is expanded in the lowered data, whose rows are then windows along it; a *lifted* one in
// the product, whose rows are then image positions along it, and is summed when lifting.
inline bool lowers(LoweringType type, int axis) {
  return type == LoweringType::one || (type == LoweringType::two && axis == 2);
}

// A convolution as products of matrices, product = lowered data * lowered kernel:
//
//   lowered data    D [row][lowered tap, image channel]
//   lowered kernel  K [lowered tap, image channel][lifted tap, window channel]
//   product         R [row][lifted tap, window channel]
//
// The image is lowered to D, and R is lifted to the windows: both are lattices, one lowers what the other
// lifts backward. A stride along lifted axes splits image positions in classes that are equal modulo the
// stride, each with its own taps; a class is a product of its own, so that nothing is multiplied in vain.
struct LoweringClass {
  LoweredMatrix data;         // of the image
  LoweredMatrix product;      // of the windows
  std::vector<int64_t> taps;  // of the weight, [lowered tap][lifted tap]
  int64_t lowered_taps, lifted_taps;
  int64_t kernel;  // offset of K in a group's weight
};

// Matrices are those of one group; tensors have the channels of all groups.
class Lowering {
 public:
  Lowering(const ConvolutionProblem& problem, LoweringType type);

  LoweringType type() const { return type_; }
  const ConvolutionProblem& problem() const { return problem_; }
  const std::vector<LoweringClass>& classes() const { return classes_; }

  int64_t image_sample() const { return image_sample_; }  // elements of a sample, all channels
  int64_t windows_sample() const { return windows_sample_; }
  int64_t group_weight() const {
    return problem_.image_channels * problem_.window_channels * problem_.taps();
  }
  // Elements that a sample takes in memory beside the tensors, in the class that needs most.
  int64_t data_elements() const;
  int64_t product_elements() const;

  // [group][class][lowered tap][image channel][lifted tap][window channel]
  ParameterFormat weight_format() const;

 private:
  ConvolutionProblem problem_;
  LoweringType type_;
  int64_t image_sample_, windows_sample_;
  std::vector<LoweringClass> classes_;
};

}  // namespace cortado::lowering
