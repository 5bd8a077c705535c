#include "cortado/kernels/onednn/sample_parts.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <vector>

#include "cortado/base/compute_threads.h"

namespace cortado::onednn {
namespace {

constexpr int parts_of_thread = 4;           // the more, the shorter a wait for the last
constexpr size_t most_pad_bytes = 64 << 10;  // of a part, which allocates it

// The largest number of equal parts, `most` at most.
int equal_parts(int64_t samples, int most) {
  int parts = static_cast<int>(std::clamp<int64_t>(samples, 1, most));
  while (samples % parts != 0) --parts;
  return parts;
}

dnnl::memory::desc of_samples(const dnnl::memory::desc& tensor, int64_t samples) {
  dnnl::memory::dims extents = tensor.dims();
  extents[0] = samples;
  const auto* strides = tensor.data.format_desc.blocking.strides;
  return {extents, tensor.data_type(), {strides, strides + extents.size()}};
}

WeightedProblem of_samples(WeightedProblem problem, int64_t samples) {
  for (dnnl::memory::desc* tensor : {&problem.source, &problem.target, &problem.target_gradient})
    *tensor = of_samples(*tensor, samples);
  problem.weight_gradient = problem.bias_gradient = false;
  return problem;
}

bool fits(const WeightedPass& part, const WeightedPass& whole) {
  return part.implementation == whole.implementation && part.weights == whole.weights &&
         part.scratchpad.get_size() <= most_pad_bytes;
}

// Part `number` of the tensor.
dnnl::memory part_of(const dnnl::memory& whole, const dnnl::memory::desc& part, int number) {
  return view(part, static_cast<std::byte*>(whole.get_data_handle()) +
                        number * static_cast<int64_t>(part.get_size()));
}

struct Pad {
  static constexpr std::align_val_t alignment{64};
  explicit Pad(size_t bytes) : memory(::operator new(bytes, alignment)) {}
  ~Pad() { ::operator delete(memory, alignment); }
  Pad(const Pad&) = delete;
  Pad& operator=(const Pad&) = delete;
  void* const memory;
};

}  // namespace

SampleParts::SampleParts(const WeightedProblem& problem, const WeightedPasses& whole, int threads,
                         const PassPlanner& plan) {
  const int64_t samples = problem.source.dims()[0];
  count_ = equal_parts(samples, parts_of_thread * threads);
  if (count_ == 1) return;
  const WeightedProblem part = of_samples(problem, samples / count_);
  const ComputeThreads one(1);
  WeightedPasses passes;
  try {
    passes = plan(part);
  } catch (const dnnl::error&) {
    return;  // oneDNN has no passes over so few samples
  }
  if (fits(passes.forward, whole.forward))
    forward_ = {"forward pass", passes.forward, DNNL_ARG_SRC, DNNL_ARG_DST, part.source, part.target};
  if (passes.backward_data && fits(*passes.backward_data, *whole.backward_data))
    backward_data_ = {"backward-data pass", *passes.backward_data, DNNL_ARG_DIFF_SRC,
                      DNNL_ARG_DIFF_DST,    part.source,           part.target_gradient};
}

void SampleParts::run_pass(ThreadTeam& team, const PartedPass& parted, const Memory& memory) const {
  std::vector<std::exception_ptr> failures(static_cast<size_t>(count_));
  team.run(count_, [&](int part) {
    try {
      const Pad pad(parted.pass.scratchpad.get_size());
      Memory own = memory;
      own[parted.source] = part_of(memory.at(parted.source), parted.of_source, part);
      own[parted.target] = part_of(memory.at(parted.target), parted.of_target, part);
      own[DNNL_ARG_SCRATCHPAD] = view(parted.pass.scratchpad, pad.memory);
      run(parted.what, parted.pass.primitive, own);
    } catch (...) {
      failures[static_cast<size_t>(part)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

bool SampleParts::run_forward(ThreadTeam& team, const Memory& memory) const {
  if (forward_) run_pass(team, *forward_, memory);
  return forward_.has_value();
}

bool SampleParts::run_backward_data(ThreadTeam& team, const Memory& memory) const {
  if (backward_data_) run_pass(team, *backward_data_, memory);
  return backward_data_.has_value();
}

}  // namespace cortado::onednn
