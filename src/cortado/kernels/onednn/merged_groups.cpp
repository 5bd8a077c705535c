#include "cortado/kernels/onednn/merged_groups.h"

#include <algorithm>

#include "cortado/kernels/forwarding_kernel.h"
#include "cortado/layers/convolution.h"

namespace cortado::onednn {
namespace {

// The groups of a part of a convolution, and how many of them are merged into one.
struct Merging {
  int64_t groups = 1, merged = 1;
  int64_t inputs = 0, outputs = 0;  // channels of a group
};

const ConvolutionOptions& options_of(const Task& task) {
  return dynamic_cast<const Convolution&>(task.layer()).options();
}

// As few groups as fill a vector on both sides. Depthwise convolutions have kernels of their own.
Merging merging_of(const Task& task, int64_t groups) {
  Merging merging{groups, 1, task.local_input(0)[1] / groups, task.local_output(0)[1] / groups};
  const auto [few, many] = std::minmax(merging.inputs, merging.outputs);
  const int64_t lanes = __builtin_cpu_supports("avx512f") ? 16 : 8, most_channels = 4 * lanes;
  if (few == 1 || few >= lanes) return merging;
  for (int64_t merged = 2; merged <= groups && merged * many <= most_channels; ++merged) {
    if (groups % merged != 0 || merged * few < lanes) continue;
    merging.merged = merged;
    break;
  }
  return merging;
}

// The task of the weights' gradient alone. Of the channels it knows only the part's.
Task merged_task(const Task& task, const Merging& merging) {
  const int64_t inputs = merging.groups * merging.inputs, outputs = merging.groups * merging.outputs;
  ConvolutionOptions options = options_of(task);
  options.num_output = outputs;
  options.group = merging.groups / merging.merged;
  Task merged = task;
  merged.layers[0] = std::make_shared<Convolution>(std::move(options));
  merged.inputs[0].set(1, inputs);
  merged.outputs[0].set(1, outputs);
  merged.input_boxes[0][1] = {0, inputs};
  merged.output_boxes[0][1] = merged.domain_box[1] = {0, outputs};
  merged.input_gradients[0] = false;
  merged.canonical_parameters = true;
  return merged;
}

// Scratch of the gradient: that of its kernel, the gradient of merged groups, then, where the weights lie in
// an order of their own, the canonical gradient.
class MergedGradientKernel : public ForwardingKernel {
 public:
  MergedGradientKernel(std::unique_ptr<Kernel> inner_kernel, std::unique_ptr<Kernel> gradient,
                       const Task& task, const Merging& merging)
      : ForwardingKernel(std::move(inner_kernel)),
        gradient_(std::move(gradient)),
        format_(inner().parameter_format(0)),
        merging_(merging) {
    const int64_t rows = task.local_output(0)[1];
    row_ = merging.inputs;
    for (const WindowAxis& axis : options_of(task).resolve(task.inputs[0].rank())) row_ *= axis.kernel;
    merged_at_ = aligned(gradient_->scratch_bytes().count);
    canonical_at_ = merged_at_ + aligned(rows * merging.merged * row_ * int64_t{sizeof(float)});
    end_ = canonical_at_ + (format_.from_canonical ? aligned(rows * row_ * int64_t{sizeof(float)}) : 0);
  }

  std::string name() const override { return inner().name() + ", gradient of merged groups"; }
  Bytes scratch_bytes() const override { return {std::max(end_, inner().scratch_bytes().count)}; }

  void backward_weights(const Arguments& arguments) override {
    float* const target = arguments.parameter_gradients[0];
    auto* const merged = reinterpret_cast<float*>(arguments.scratch + merged_at_);
    Arguments of_merged = arguments;
    if (target) of_merged.parameter_gradients[0] = merged;
    gradient_->backward_weights(of_merged);
    if (!target) return;
    if (!format_.from_canonical) return keep_groups(merged, target);
    auto* const canonical = reinterpret_cast<float*>(arguments.scratch + canonical_at_);
    keep_groups(merged, canonical);
    format_.from_canonical(canonical, target);
  }

 private:
  // A row is the weights of an output channel. A merged one holds as many, of which one is of its own group.
  void keep_groups(const float* merged, float* canonical) const {
    for (int64_t row = 0; row < merging_.groups * merging_.outputs; ++row) {
      const int64_t own = row / merging_.outputs % merging_.merged;
      std::copy_n(merged + (row * merging_.merged + own) * row_, row_, canonical + row * row_);
    }
  }

  std::unique_ptr<Kernel> gradient_;
  ParameterFormat format_;
  Merging merging_;
  int64_t row_ = 0;  // weights of an output channel
  int64_t merged_at_ = 0, canonical_at_ = 0, end_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> with_merged_gradient(std::unique_ptr<Kernel> kernel, const Task& task, int64_t groups,
                                             KernelOffer (*make)(const Task&)) {
  const Merging merging = merging_of(task, groups);
  if (merging.merged == 1 || !task.parameter_gradients[0]) return kernel;
  KernelOffer gradient = make(merged_task(task, merging));
  if (!gradient.kernel) return kernel;
  return std::make_unique<MergedGradientKernel>(std::move(kernel), std::move(gradient.kernel), task, merging);
}

}  // namespace cortado::onednn
