#include "cortado/layers/batch_norm.h"

#include <cmath>
#include <vector>

#include "cortado/kernels/carry.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"

namespace cortado {
namespace {

template <typename T>
class BatchNormReference : public KernelOf<T> {
 public:
  explicit BatchNormReference(const Task& task)
      : options_(dynamic_cast<const BatchNorm&>(task.layer()).options()),
        global_(options_.global_statistics(task.phase)),
        summed_(task.cut && !task.local_sums && !global_),
        place_(tensor_place(task.output_boxes[0])),
        channels_(place_.box().rank() > 1 ? place_.box()[1].size() : 1),
        per_channel_(place_.size() / channels_) {
    const Shape& whole = task.inputs[0];
    if (summed_) per_channel_ = whole.rank() > 1 ? whole[0] * whole.count(2) : whole.size();
  }

  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  // Where devices share the layer: sums of x and x^2, and of dy and dy * y, per channel. The statistics of
  // the batch are kept for the backward pass.
  int64_t forward_sums() const override { return summed_ ? 2 * channels_ : 0; }
  int64_t backward_sums() const override { return summed_ ? 2 * channels_ : 0; }
  Bytes saved_bytes() const override { return {forward_sums() * int64_t{sizeof(double)}}; }

  void forward_partial(const ArgumentsOf<T>& a) override {
    std::fill_n(a.sums, 2 * channels_, 0.0);
    for_each_index(place_.box(), [&](const Index& index) {
      double x = a.inputs[0][place_(index)];
      a.sums[channel(index)] += x;
      a.sums[channels_ + channel(index)] += x * x;
    });
  }

  void backward_partial(const ArgumentsOf<T>& a) override {
    Statistics statistics = kept(a);
    std::fill_n(a.sums, 2 * channels_, 0.0);
    for_each_index(place_.box(), [&](const Index& index) {
      double dy = a.output_gradients[0][place_(index)];
      a.sums[channel(index)] += dy;
      a.sums[channels_ + channel(index)] += dy * normalized(a.inputs[0], index, statistics);
    });
  }

  void forward(const ArgumentsOf<T>& a) override {
    Statistics statistics = global_ ? running(a) : summed_ ? of_sums(a) : of_batch(a.inputs[0]);
    for_each_index(place_.box(), [&](const Index& index) {
      a.outputs[0][place_(index)] = normalized(a.inputs[0], index, statistics);
    });
    if (!global_ && !a.again) update_running(a, statistics);
  }

  void backward(const ArgumentsOf<T>& a) override {
    if (!a.input_gradients[0]) return;
    Statistics statistics = global_ ? running(a) : summed_ ? kept(a) : of_batch(a.inputs[0]);
    const T* dy = a.output_gradients[0];
    std::vector<double> mean(channels_), correlation(channels_);  // of dy, and of dy with y
    if (summed_) {
      for (int64_t c = 0; c < channels_; ++c) {
        mean[c] = a.sums[c] / per_channel_;
        correlation[c] = a.sums[channels_ + c] / per_channel_;
      }
    } else if (!global_) {
      mean = channel_means([&](const Index& index) { return dy[place_(index)]; });
      correlation = channel_means(
          [&](const Index& index) { return dy[place_(index)] * normalized(a.inputs[0], index, statistics); });
    }
    for_each_index(place_.box(), [&](const Index& index) {
      int64_t c = channel(index);
      double y = normalized(a.inputs[0], index, statistics);
      a.input_gradients[0][place_(index)] =
          (dy[place_(index)] - mean[c] - correlation[c] * y) / statistics.deviation(c, options_.eps);
    });
  }

 private:
  struct Statistics {
    std::vector<double> mean, variance;
    double deviation(int64_t c, double eps) const { return carry(std::sqrt(variance[c] + eps), variance[c]); }
  };

  int64_t channel(const Index& index) const {
    return place_.box().rank() > 1 ? index[1] - place_.box()[1].begin : 0;
  }
  double normalized(const T* x, const Index& index, const Statistics& statistics) const {
    int64_t c = channel(index);
    return (x[place_(index)] - statistics.mean[c]) / statistics.deviation(c, options_.eps);
  }

  template <typename Value>
  std::vector<double> channel_means(Value&& value) const {
    std::vector<double> sums(channels_);
    for_each_index(place_.box(), [&](const Index& index) { sums[channel(index)] += value(index); });
    for (double& sum : sums) sum /= per_channel_;
    return sums;
  }

  Statistics of_batch(const T* x) const {
    Statistics result;
    result.mean = channel_means([&](const Index& index) { return x[place_(index)]; });
    result.variance = channel_means([&](const Index& index) {
      double difference = x[place_(index)] - result.mean[channel(index)];
      return difference * difference;
    });
    return result;
  }

  Statistics of_sums(const ArgumentsOf<T>& a) const {
    Statistics result{std::vector<double>(channels_), std::vector<double>(channels_)};
    for (int64_t c = 0; c < channels_; ++c) {
      double mean = a.sums[c] / per_channel_;
      result.mean[c] = mean;
      result.variance[c] = std::max(a.sums[channels_ + c] / per_channel_ - mean * mean, 0.0);
    }
    if (auto* memory = reinterpret_cast<double*>(a.saved)) {
      std::copy(result.mean.begin(), result.mean.end(), memory);
      std::copy(result.variance.begin(), result.variance.end(), memory + channels_);
    }
    return result;
  }

  Statistics kept(const ArgumentsOf<T>& a) const {
    const auto* memory = reinterpret_cast<const double*>(a.saved);
    return {{memory, memory + channels_}, {memory + channels_, memory + 2 * channels_}};
  }

  Statistics running(const ArgumentsOf<T>& a) const {
    double factor = a.parameters[2][0], scale = factor == 0 ? 0 : carry(1 / factor, factor);
    Statistics result{std::vector<double>(channels_), std::vector<double>(channels_)};
    for (int64_t c = 0; c < channels_; ++c) {
      result.mean[c] = scale * a.parameters[0][c];
      result.variance[c] = scale * a.parameters[1][c];
    }
    return result;
  }

  void update_running(const ArgumentsOf<T>& a, const Statistics& batch) const {
    double fraction = options_.moving_average_fraction, m = per_channel_;
    double correction = m > 1 ? m / (m - 1) : 1;
    for (int64_t c = 0; c < channels_; ++c) {
      a.parameters[0][c] = fraction * a.parameters[0][c] + batch.mean[c];
      a.parameters[1][c] = fraction * a.parameters[1][c] + correction * batch.variance[c];
    }
    a.parameters[2][0] = fraction * a.parameters[2][0] + 1;
  }

  BatchNormOptions options_;
  bool global_;
  bool summed_;  // the statistics are of the batch, and other devices hold parts of it
  Place place_;
  int64_t channels_;
  int64_t per_channel_;  // elements that a statistic is over
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_batch_norm_reference(const Task& task) {
  return std::make_unique<BatchNormReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_batch_norm_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_batch_norm_reference<double>(const Task&);

}  // namespace cortado
