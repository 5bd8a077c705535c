#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cortado/exec/executor.h"
#include "cortado/train/layer_difference.h"

namespace cortado {

// A net to train twice with plain momentum SGD from the same start: uncut, on rank 0 alone, and cut.
struct ComparedTraining {
  const Network& network;
  CompileOptions cut;  // for this rank of the job
  Communicator& job;
  device::DeviceRuntime& device = device::host();  // of the cut training; the uncut one is the host's
  // Makes the data of one training, of these parts (Program::samples): the same batches each time.
  std::function<std::map<std::string, BatchSource>(const std::map<std::string, BatchPart>& parts)> data;
  int iterations = 3;
  double rate = 1e-3;
};

struct CutComparison {
  IndexedVector<NodeIndex, LayerDifference> layers;  // in the net's order
  std::vector<double> uncut_losses, cut_losses;      // per iteration
  double loss_difference(size_t iteration) const;    // relative to the uncut one
};

// Magnitudes of weights and of their gradients below this part of the net's largest count as this part: a
// bias in front of a batch normalization has a gradient of nothing but rounding errors.
constexpr double magnitude_floor = 1e-3;

// All ranks call it; the result is complete at rank 0. Iteration 1 is run once more before, with every tensor
// kept; the trainings themselves run as `cortado train` runs them. Whole tensors are at rank 0 only.
CutComparison compare_cut_training(const ComparedTraining& training);
// Throws UserError where the uncut training, at that `rate`, has a loss that is not finite: it compares
// nothing.
void check_finite(const CutComparison& comparison, double rate);

// Empty when the losses agree within their limits and so do, at iteration 1, all activations and gradients of
// weights, and no part is lost. Gradients of tensors only help to name the layer: in front of a batch
// normalization over few values they can be nothing but rounding errors. Else it says how far they
// are apart and names the first layer that differs: the first whose activations do or, when none does, the
// last whose gradients do.
std::string describe_difference(const CutComparison& comparison);

}  // namespace cortado
