#include "cortado/kernels/native/few_outputs.h"

#include <algorithm>
#include <utility>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/forwarding_kernel.h"
#include "cortado/kernels/native/simd.h"
#include "cortado/layers/convolution.h"

namespace cortado::native {
namespace {

constexpr int most_outputs = 8;         // whose sums are held in registers
constexpr int64_t pixels_at_once = 64;  // that stay in the first cache while all their channels are summed

// Calls function.template operator()<outputs>().
template <typename Function>
void with_outputs(int64_t outputs, Function&& function) {
  [&]<int... n>(std::integer_sequence<int, n...>) {
    ((outputs == n + 1 ? function.template operator()<n + 1>() : void()), ...);
  }
  (std::make_integer_sequence<int, most_outputs>());
}

// Pixels of all samples, one after the other, channels last.
struct Pixels {
  int64_t count = 0, inputs = 0, outputs = 0;

  int64_t weights() const { return inputs * outputs; }
};

// Writes the image's gradient of pixels [begin, end). weights[output][input]
template <int outputs, bool streaming>
void image_gradient(const Pixels& p, const float* weights, const bf16* gradient, int64_t begin, int64_t end,
                    bf16* target) {
  for (int64_t pixel = begin; pixel < end; ++pixel) {
    float factors[outputs];
    for (int o = 0; o < outputs; ++o) factors[o] = to_float(gradient[pixel * outputs + o]);
    by_lanes(0, p.inputs, [&]<typename V>(int64_t c) {
      V sum = factors[0] * load<V>(weights + c);
#pragma GCC unroll 8
      for (int o = 1; o < outputs; ++o) sum += factors[o] * load<V>(weights + o * p.inputs + c);
      store<streaming>(target + pixel * p.inputs + c, sum);
    });
  }
  if constexpr (streaming) finish_streaming();
}

// Adds what pixels [begin, end) make of the gradients of the weights and of the bias.
template <int outputs>
void add_weight_gradient(const Pixels& p, const bf16* image, const bf16* gradient, int64_t begin, int64_t end,
                         float* weights, float* bias) {
  float factors[pixels_at_once][outputs];
  for (int64_t first = begin; first < end; first += pixels_at_once) {
    const int64_t count = std::min(pixels_at_once, end - first);
    for (int64_t pixel = 0; pixel < count; ++pixel)
      for (int o = 0; o < outputs; ++o) {
        factors[pixel][o] = to_float(gradient[(first + pixel) * outputs + o]);
        bias[o] += factors[pixel][o];
      }
    by_lanes(0, p.inputs, [&]<typename V>(int64_t c) {
      V sum[outputs] = {};
      for (int64_t pixel = 0; pixel < count; ++pixel) {
        const V values = load<V>(image + (first + pixel) * p.inputs + c);
#pragma GCC unroll 8
        for (int o = 0; o < outputs; ++o) sum[o] += factors[pixel][o] * values;
      }
#pragma GCC unroll 8
      for (int o = 0; o < outputs; ++o) {
        float* const to = weights + o * p.inputs + c;
        store(to, load<V>(to) + sum[o]);
      }
    });
  }
}

// Scratch of backward(): the weights, rounded; of backward_weights(): the sums of each thread, of weights and
// bias.
class FewOutputsKernel : public ForwardingKernel {
 public:
  FewOutputsKernel(std::unique_ptr<Kernel> forward_kernel, const Task& task, const Pixels& pixels)
      : ForwardingKernel(std::move(forward_kernel)),
        pixels_(pixels),
        reads_inputs_(std::ranges::count(task.parameter_gradients, true) > 0) {}

  std::string name() const override { return inner().name() + ", native gradients"; }
  Bytes scratch_bytes() const override {
    return {std::max(compute_threads() * bytes_of_sums(), inner().scratch_bytes().count)};
  }
  BackwardReads backward_reads() const override { return {.inputs = reads_inputs_, .outputs = false}; }

  void backward(const Arguments& arguments) override {
    if (!arguments.input_gradients[0]) return;
    const Pixels& p = pixels_;
    auto* const weights = reinterpret_cast<float*>(arguments.scratch);
    std::transform(arguments.parameters[0], arguments.parameters[0] + p.weights(), weights,
                   [](float weight) { return to_float(to_bf16(weight)); });
    const bf16* const gradient = elements<bf16>(arguments.output_gradients[0]);
    bf16* const target = elements<bf16>(arguments.input_gradients[0]);
    const bool streaming = wants_streaming(target, p.count * p.inputs, p.inputs);
    with_outputs(p.outputs, [&]<int outputs>() {
      const auto run = streaming ? image_gradient<outputs, true> : image_gradient<outputs, false>;
      parallel_ranges(p.count,
                      [&](int64_t begin, int64_t end) { run(p, weights, gradient, begin, end, target); });
    });
  }

  void backward_weights(const Arguments& arguments) override {
    if (!reads_inputs_) return;
    const Pixels& p = pixels_;
    const int threads = compute_threads();
    const auto sums = [&](int64_t thread) {
      return reinterpret_cast<float*>(arguments.scratch + thread * bytes_of_sums());
    };
    parallel_for(threads, [&](int64_t thread) {
      std::fill_n(sums(thread), p.weights() + p.outputs, 0.0f);
      with_outputs(p.outputs, [&]<int outputs>() {
        add_weight_gradient<outputs>(p, elements<bf16>(arguments.inputs[0]),
                                     elements<bf16>(arguments.output_gradients[0]),
                                     p.count * thread / threads, p.count * (thread + 1) / threads,
                                     sums(thread), sums(thread) + p.weights());
      });
    });
    const auto finish = [&](int64_t begin, int64_t count, float* target) {
      for (int64_t i = 0; target && i < count; ++i) {
        target[i] = 0;
        for (int thread = 0; thread < threads; ++thread) target[i] += sums(thread)[begin + i];
      }
    };
    finish(0, p.weights(), arguments.parameter_gradients[0]);
    if (arguments.parameter_gradients.size() > 1)
      finish(p.weights(), p.outputs, arguments.parameter_gradients[1]);
  }

 private:
  int64_t bytes_of_sums() const {
    return aligned((pixels_.weights() + pixels_.outputs) * int64_t{sizeof(float)});
  }

  Pixels pixels_;
  bool reads_inputs_;
};

}  // namespace

bool has_few_outputs(const Task& task) {
  const auto* layer = dynamic_cast<const Convolution*>(&task.layer());
  if (!layer || task.layers.size() > 1) return false;
  if (task.input_type(0) != ElementType::bf16 || task.output_type(0) != ElementType::bf16) return false;
  const ConvolutionOptions& options = layer->options();
  const bool pointwise = std::ranges::all_of(
      options.resolve(task.inputs[0].rank()),
      [](const WindowAxis& axis) { return axis.kernel == 1 && axis.stride == 1 && axis.pad == 0; });
  return pointwise && options.group == 1 && task.local_output(0)[1] <= most_outputs;
}

std::unique_ptr<Kernel> with_gradients_of_few_outputs(std::unique_ptr<Kernel> forward, const Task& task) {
  const Shape image = task.local_input(0);
  const Pixels pixels{image.size() / image[1], image[1], task.local_output(0)[1]};
  return std::make_unique<FewOutputsKernel>(std::move(forward), task, pixels);
}

}  // namespace cortado::native
