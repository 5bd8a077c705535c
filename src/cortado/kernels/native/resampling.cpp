#include "cortado/layers/resampling.h"

#include <algorithm>
#include <array>
#include <vector>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/native/native.h"
#include "cortado/kernels/native/simd.h"

namespace cortado {
namespace native {
namespace {

// Each position's channels are a weighted sum of those of its neighbours in the input: 2 along every axis, or
// the one where it lies.
class ResamplingKernel : public Kernel {
 public:
  explicit ResamplingKernel(const Task& task)
      : samples_(task.local_output(0)[0]),
        channels_(task.local_output(0)[1]),
        input_positions_(task.local_input(0).spatial_size()),
        output_positions_(task.local_output(0).spatial_size()) {
    const auto axes = dynamic_cast<const Resampling&>(task.layer()).axes(task.inputs);
    int64_t step = channels_;
    for (size_t i = axes.size(); i-- > 0;) {  // innermost first
      const int axis = static_cast<int>(i) + 2;
      const Range outputs = task.output_boxes[0][axis], inputs = task.input_boxes[0][axis];
      std::vector<Place> places;
      for (int64_t o = outputs.begin; o < outputs.end; ++o) {
        const Neighbours at = axes[i].neighbours(o);
        places.push_back(
            {(at.first - inputs.begin) * step, at.weight > 0 ? step : 0, static_cast<float>(at.weight)});
      }
      axes_.push_back(std::move(places));
      step *= inputs.size();
    }
  }

  std::string name() const override { return "native resampling"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }

  void forward(const Arguments& arguments) override {
    const float* x = arguments.inputs[0];
    float* y = arguments.outputs[0];
    parallel_for(samples_ * output_positions_, [&](int64_t position) {
      const Neighbourhood from = neighbourhood(position % output_positions_);
      const float* image = x + position / output_positions_ * input_positions_ * channels_;
      float* to = y + position * channels_;
      by_lanes(0, channels_, [&]<typename V>(int64_t c) {
        V sum = from.weights[0] * load<V>(image + from.offsets[0] + c);
        for (int k = 1; k < from.count; ++k) sum += from.weights[k] * load<V>(image + from.offsets[k] + c);
        store(to + c, sum);
      });
    });
  }

  // A thread adds up blocks of channels of whole images, which no other thread touches.
  void backward(const Arguments& arguments) override {
    const float* dy = arguments.output_gradients[0];
    float* dx = arguments.input_gradients[0];
    if (!dx) return;
    const int64_t blocks = (channels_ + block_channels - 1) / block_channels;
    parallel_for(samples_ * blocks, [&](int64_t number) {
      const int64_t sample = number / blocks, begin = number % blocks * block_channels;
      const int64_t end = std::min(channels_, begin + block_channels);
      float* image = dx + sample * input_positions_ * channels_;
      for (int64_t p = 0; p < input_positions_; ++p)
        std::fill(image + p * channels_ + begin, image + p * channels_ + end, 0.0f);
      for (int64_t position = 0; position < output_positions_; ++position) {
        const Neighbourhood to = neighbourhood(position);
        const float* from = dy + (sample * output_positions_ + position) * channels_;
        for (int k = 0; k < to.count; ++k) {
          by_lanes(begin, end, [&]<typename V>(int64_t c) {
            float* sum = image + to.offsets[k] + c;
            store(sum, load<V>(sum) + to.weights[k] * load<V>(from + c));
          });
        }
      }
    });
  }

 private:
  static constexpr int64_t block_channels = 64;  // of four cache lines
  static constexpr int most_axes = 3;

  // Where a position along one axis lies in the input: elements to its first neighbour, from there to the
  // second (0: there is none), and how much that counts.
  struct Place {
    int64_t first, step;
    float weight;
  };
  struct Neighbourhood {
    int count = 1;
    std::array<int64_t, 1 << most_axes> offsets{};
    std::array<float, 1 << most_axes> weights{1};
  };

  Neighbourhood neighbourhood(int64_t position) const {
    Neighbourhood all;
    for (const std::vector<Place>& axis : axes_) {
      const auto extent = static_cast<int64_t>(axis.size());
      const Place& at = axis[static_cast<size_t>(position % extent)];
      position /= extent;
      const int before = all.count;
      for (int k = 0; k < before; ++k) {
        all.offsets[k] += at.first;
        if (at.step == 0) continue;
        all.offsets[before + k] = all.offsets[k] + at.step;
        all.weights[before + k] = all.weights[k] * at.weight;
        all.weights[k] *= 1 - at.weight;
        ++all.count;
      }
    }
    return all;
  }

  int64_t samples_, channels_, input_positions_, output_positions_;
  std::vector<std::vector<Place>> axes_;
};

}  // namespace
}  // namespace native

KernelOffer make_native_resampling(const Task& task) {
  if (!dynamic_cast<const Resampling*>(&task.layer()) || task.layers.size() != 1)
    return {nullptr, "only for Upsample and Interp"};
  if (!task.all_f32()) return {nullptr, "tensors of other types than f32"};
  return {std::make_unique<native::ResamplingKernel>(task), ""};
}

}  // namespace cortado
