#include "cortado/kernels/onednn/weighted.h"

#include <algorithm>
#include <limits>

#include "cortado/base/compute_threads.h"
#include "cortado/kernels/arrays.h"
#include "cortado/kernels/native/relu_mask.h"
#include "cortado/kernels/onednn/overflow.h"
#include "cortado/kernels/onednn/reorder.h"
#include "cortado/kernels/onednn/sample_parts.h"

namespace cortado::onednn {

namespace {

int64_t padded_to_cache_line(size_t bytes) { return static_cast<int64_t>((bytes + 63) / 64 * 64); }

int64_t element_count(const dnnl::memory::desc& dense) {
  int64_t count = 1;
  for (const int64_t extent : dense.dims()) count *= extent;
  return count;
}

// The scratch memory of a kernel: what lies where, in bytes. Each pass uses it afresh.
struct Scratch {
  int64_t copy = 0;             // at 0: of the weights, or their gradient, in the order and type of the pass
  int64_t between = 0;          // plain weights on their way from one order to another
  int64_t source = 0;           // narrowed to bf16, or its gradient before it is widened
  int64_t target_gradient = 0;  // the same
  int64_t pad = 0;              // the primitive's own

  int64_t between_at() const { return copy; }
  int64_t source_at() const { return between_at() + between; }
  int64_t target_gradient_at() const { return source_at() + source; }
  int64_t pad_at() const { return target_gradient_at() + target_gradient; }
  int64_t bytes() const { return pad_at() + pad; }
};

class WeightedKernel : public Kernel {
 public:
  WeightedKernel(const WeightedProblem& problem, const WeightedPasses& passes, PassPlanner of_samples);

  std::string name() const override { return "onednn " + passes_.forward.implementation; }
  Bytes saved_bytes() const override {
    return {saves_weights_ ? padded_to_cache_line(passes_.forward.weights.get_size()) : 0};
  }
  Bytes scratch_bytes() const override { return {scratch_.bytes()}; }
  BackwardReads backward_reads() const override {
    return {.inputs = problem_.parameter_gradient(), .outputs = problem_.relu};
  }
  bool overwrites_output_gradients() const override { return problem_.relu && !problem_.narrows_gradient(); }
  ParameterFormat parameter_format(int parameter) const override;

  void forward(const Arguments& arguments) override;
  void backward(const Arguments& arguments) override;
  void backward_weights(const Arguments& arguments) override;

 private:
  Reorder from_stored(const WeightedPass& pass) const {
    return {passes_.stored, pass.weights, problem_.canonical};
  }
  // A gradient of the bias alone still makes one of the weights.
  bool gradient_in_copy() const { return !problem_.weight_gradient || !from_gradient_->changes_nothing(); }
  dnnl::memory scratchpad(const WeightedPass& pass, const Arguments& arguments) const {
    return view(pass.scratchpad, arguments.scratch + scratch_.pad_at());
  }
  dnnl::memory weights(const Reorder& reorder, const WeightedPass& pass, std::byte* copy,
                       const Arguments& arguments) const;
  dnnl::memory source(const Arguments& arguments) const;
  dnnl::memory target_gradient(const Arguments& arguments, bool first) const;
  const SampleParts* parts_for(ThreadTeam* team);
  void run_forward(const Memory& memory);
  bool hides_infinity(const Memory& forward_memory, const float* input);

  WeightedProblem problem_;
  WeightedPasses passes_;
  PassPlanner of_samples_;
  std::optional<SampleParts> parts_;  // once they were wanted
  Reorder to_forward_;
  std::optional<Reorder> to_backward_data_, from_gradient_;
  bool saves_weights_ = false;  // the copy of the forward pass, for the backward pass, which wants the same
  Scratch scratch_;
};

WeightedKernel::WeightedKernel(const WeightedProblem& problem, const WeightedPasses& passes,
                               PassPlanner of_samples)
    : problem_(problem),
      passes_(passes),
      of_samples_(std::move(of_samples)),
      to_forward_(from_stored(passes.forward)) {
  auto want_reorder = [this](const Reorder& reorder) {
    scratch_.between = std::max(scratch_.between, padded_to_cache_line(reorder.between_bytes()));
  };
  auto want_copy = [this](const WeightedPass& pass) {
    scratch_.copy = std::max(scratch_.copy, padded_to_cache_line(pass.weights.get_size()));
  };
  auto want_pad = [this](const WeightedPass& pass) {
    scratch_.pad = std::max(scratch_.pad, padded_to_cache_line(pass.scratchpad.get_size()));
  };
  want_pad(passes.forward);
  want_reorder(to_forward_);
  if (passes.backward_data) {
    to_backward_data_ = from_stored(*passes.backward_data);
    saves_weights_ = problem.in_bf16() && passes.backward_data->weights == passes.forward.weights;
    want_pad(*passes.backward_data);
    if (!saves_weights_) want_reorder(*to_backward_data_);
    if (!saves_weights_ && !to_backward_data_->changes_nothing()) want_copy(*passes.backward_data);
  }
  if (!saves_weights_ && !to_forward_.changes_nothing()) want_copy(passes.forward);
  if (passes.backward_weights) {
    from_gradient_ = Reorder(passes.backward_weights->weights, passes.stored, problem.canonical);
    want_pad(*passes.backward_weights);
    want_reorder(*from_gradient_);
    if (gradient_in_copy()) want_copy(*passes.backward_weights);
  }
  if (problem.narrows_source) scratch_.source = padded_to_cache_line(problem.source.get_size());
  if (problem.narrows_gradient() && problem.training)
    scratch_.target_gradient = padded_to_cache_line(problem.target_gradient.get_size());
}

ParameterFormat WeightedKernel::parameter_format(int parameter) const {
  const dnnl::memory::desc &canonical = problem_.canonical, &stored = passes_.stored;
  const auto& permutation = problem_.permutation;
  if (parameter != 0 || (stored == canonical && !permutation)) return {};
  ParameterFormat format;
  format.name = order_name(stored);
  format.elements = static_cast<int64_t>(stored.get_size() / sizeof(float));
  if (!permutation) {
    format.from_canonical = [=](const float* from, float* to) {
      reorder(view(canonical, from), view(stored, to));
    };
    format.to_canonical = [=](const float* from, float* to) {
      reorder(view(stored, from), view(canonical, to));
    };
    return format;
  }
  format.name += ", " + permutation->name;
  format.from_canonical = [=, p = *permutation](const float* from, float* to) {
    std::vector<float> between(p.canonical.get_size() / sizeof(float));
    reorder(view(p.file, from), view(p.canonical, between.data()));
    reorder(view(canonical, between.data()), view(stored, to));
  };
  format.to_canonical = [=, p = *permutation](const float* from, float* to) {
    std::vector<float> between(p.canonical.get_size() / sizeof(float));
    reorder(view(stored, from), view(canonical, between.data()));
    reorder(view(p.canonical, between.data()), view(p.file, to));
  };
  return format;
}

// The weights as the pass reads them; in `copy` where they lie otherwise in memory.
dnnl::memory WeightedKernel::weights(const Reorder& reorder, const WeightedPass& pass, std::byte* copy,
                                     const Arguments& arguments) const {
  if (reorder.changes_nothing()) return view(pass.weights, arguments.parameters[0]);
  reorder.run(arguments.parameters[0], copy, arguments.scratch + scratch_.between_at());
  return view(pass.weights, copy);
}

// The source as the passes read it.
dnnl::memory WeightedKernel::source(const Arguments& arguments) const {
  if (!problem_.narrows_source) return view(problem_.source, arguments.inputs[0]);
  bf16* narrow = reinterpret_cast<bf16*>(arguments.scratch + scratch_.source_at());
  arrays::convert(arguments.inputs[0], narrow, element_count(problem_.source));
  return view(problem_.source, narrow);
}

// The gradient before the ReLU as the backward passes read it. The `first` step makes it of that after the
// ReLU, where it lies; where it is narrowed, each step does so in scratch memory.
dnnl::memory WeightedKernel::target_gradient(const Arguments& arguments, bool first) const {
  float* dy = arguments.output_gradients[0];
  const int64_t count = element_count(problem_.target);
  if (problem_.narrows_gradient()) {
    bf16* narrow = reinterpret_cast<bf16*>(arguments.scratch + scratch_.target_gradient_at());
    if (problem_.relu) {
      native::relu_mask(narrow, dy, arguments.outputs[0], count);
    } else {
      arrays::convert(dy, narrow, count);
    }
    return view(problem_.target_gradient, narrow);
  }
  if (problem_.relu && first) {
    if (problem_.in_bf16()) {
      native::relu_mask(elements<bf16>(dy), elements<bf16>(dy), elements<bf16>(arguments.outputs[0]), count);
    } else {
      native::relu_mask(dy, dy, arguments.outputs[0], count);
    }
  }
  return view(problem_.target_gradient, dy);
}

// Null where the passes run over all samples at once: on OpenMP's threads, or within a part of a loop.
const SampleParts* WeightedKernel::parts_for(ThreadTeam* team) {
  if (!team || compute_threads() == 1 || !of_samples_) return nullptr;
  if (!parts_) parts_.emplace(problem_, passes_, compute_threads(), of_samples_);
  return &*parts_;
}

void WeightedKernel::run_forward(const Memory& memory) {
  ThreadTeam* const team = ThreadTeam::current();
  if (const SampleParts* parts = parts_for(team); parts && parts->run_forward(*team, memory)) return;
  run("forward pass", passes_.forward.primitive, memory);
}

void WeightedKernel::forward(const Arguments& arguments) {
  const WeightedPass& pass = passes_.forward;
  std::byte* copy = saves_weights_ ? arguments.saved : arguments.scratch;
  Memory memory{{DNNL_ARG_SRC, source(arguments)},
                {DNNL_ARG_WEIGHTS, weights(to_forward_, pass, copy, arguments)},
                {DNNL_ARG_DST, view(problem_.target, arguments.outputs[0])},
                {DNNL_ARG_SCRATCHPAD, scratchpad(pass, arguments)}};
  if (problem_.bias) memory.emplace(DNNL_ARG_BIAS, view(*problem_.bias, arguments.parameters[1]));
  static constexpr float infinity = std::numeric_limits<float>::infinity();
  const bool may_hide = problem_.relu && !problem_.in_bf16();
  if (may_hide)
    memory.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
                   view(infinity_of(problem_.target), &infinity));
  run_forward(memory);
  if (may_hide && hides_infinity(memory, arguments.inputs[0]))
    arguments.outputs[0][0] = std::numeric_limits<float>::quiet_NaN();
}

// Whether a sum of products may have been minus infinity, which the fused ReLU has made 0. Something has
// overflowed since the last fused product, or nothing is hidden: if not in the input, then here or in a
// backward pass or an update, which running again tells apart.
bool WeightedKernel::hides_infinity(const Memory& forward_memory, const float* input) {
  if (!take_overflow()) return false;
  if (!all_finite(input, static_cast<int64_t>(problem_.source.get_size() / sizeof(float)))) return true;
  run_forward(forward_memory);
  return take_overflow();
}

void WeightedKernel::backward(const Arguments& arguments) {
  if (!passes_.backward_data) return;
  const WeightedPass& pass = *passes_.backward_data;
  const bool first = !problem_.parameter_gradient() || arguments.input_gradients_first;
  float* const dx = arguments.input_gradients[0];
  auto* const narrow = reinterpret_cast<bf16*>(arguments.scratch + scratch_.source_at());
  const Memory memory{
      {DNNL_ARG_DIFF_DST, target_gradient(arguments, first)},
      {DNNL_ARG_WEIGHTS, saves_weights_ ? view(pass.weights, arguments.saved)
                                        : weights(*to_backward_data_, pass, arguments.scratch, arguments)},
      {DNNL_ARG_DIFF_SRC,
       problem_.narrows_source ? view(problem_.source, narrow) : view(problem_.source, dx)},
      {DNNL_ARG_SCRATCHPAD, scratchpad(pass, arguments)}};
  ThreadTeam* const team = ThreadTeam::current();
  const SampleParts* parts = parts_for(team);
  if (!parts || !parts->run_backward_data(*team, memory)) run("backward-data pass", pass.primitive, memory);
  if (problem_.narrows_source) arrays::convert(narrow, dx, element_count(problem_.source));
}

void WeightedKernel::backward_weights(const Arguments& arguments) {
  if (!passes_.backward_weights) return;
  const WeightedPass& pass = *passes_.backward_weights;
  float* target = problem_.weight_gradient ? arguments.parameter_gradients[0] : nullptr;
  float* gradient = gradient_in_copy() ? reinterpret_cast<float*>(arguments.scratch) : target;
  Memory memory{{DNNL_ARG_SRC, source(arguments)},
                {DNNL_ARG_DIFF_DST, target_gradient(arguments, !arguments.input_gradients_first)},
                {DNNL_ARG_DIFF_WEIGHTS, view(pass.weights, gradient)},
                {DNNL_ARG_SCRATCHPAD, scratchpad(pass, arguments)}};
  if (problem_.bias_gradient) {
    memory.emplace(DNNL_ARG_DIFF_BIAS, view(*problem_.bias, arguments.parameter_gradients[1]));
  }
  run("backward-weights pass", pass.primitive, memory);
  if (target && gradient != target)
    from_gradient_->run(gradient, target, arguments.scratch + scratch_.between_at());
}

// oneDNN 2.6's bf16 products of 1x1 windows are wrong for some numbers of pixels (30) if they sum over an odd
// number of channels.
bool is_wrong(const WeightedPass& pass, int64_t summed) {
  return pass.implementation.starts_with("jit_bf16_1x1") && summed % 2 != 0;
}

}  // namespace

KernelOffer offer_weighted_kernel(const WeightedProblem& problem, const WeightedPasses& passes,
                                  PassPlanner of_samples) {
  const auto &data = passes.backward_data, &weights = passes.backward_weights;
  for (const auto* pass : {&passes.forward, data ? &*data : nullptr, weights ? &*weights : nullptr}) {
    if (pass && pass->implementation.starts_with("ref"))
      return {nullptr, "oneDNN has only its reference for it"};
  }
  const dnnl::memory::dims extents = problem.canonical.dims();
  const int groups =
      extents.size() > problem.source.dims().size();  // axes of the weights before the channels
  if (is_wrong(passes.forward, extents[groups + 1]) || (data && is_wrong(*data, extents[groups])))
    return {nullptr, "oneDNN's sums over an odd number of channels"};
  if (order_name(passes.stored).empty()) return {nullptr, "oneDNN's order of the weights has no name"};
  return {std::make_unique<WeightedKernel>(problem, passes, std::move(of_samples)), ""};
}

}  // namespace cortado::onednn
