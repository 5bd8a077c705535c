#pragma once

#include <optional>

#include "cortado/base/thread_team.h"
#include "cortado/kernels/onednn/weighted_passes.h"

namespace cortado::onednn {

// The forward pass and the gradient of the source over parts of the samples, each part on one thread, for a
// ThreadTeam: its threads take the next part as they have a core, where oneDNN's own threads have equal
// shares and meet in the end. The results are those of the passes over all samples, bit for bit.
class SampleParts {
 public:
  // A pass that oneDNN makes otherwise of fewer samples has no parts.
  SampleParts(const WeightedProblem& problem, const WeightedPasses& whole, int threads,
              const PassPlanner& plan);

  // Whether the pass has parts, and was run; `memory` is that of the pass over all samples.
  bool run_forward(ThreadTeam& team, const Memory& memory) const;
  bool run_backward_data(ThreadTeam& team, const Memory& memory) const;

 private:
  struct PartedPass {
    const char* what;
    WeightedPass pass;
    int source, target;  // oneDNN's numbers of the two tensors that have samples
    dnnl::memory::desc of_source, of_target;
  };

  void run_pass(ThreadTeam& team, const PartedPass& parted, const Memory& memory) const;

  int count_ = 1;
  std::optional<PartedPass> forward_, backward_data_;
};

}  // namespace cortado::onednn
