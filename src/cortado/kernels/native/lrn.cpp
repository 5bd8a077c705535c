#include "cortado/layers/lrn.h"

#include <algorithm>
#include <vector>

#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/channels.h"
#include "cortado/kernels/native/lrn_power.h"
#include "cortado/kernels/native/lrn_within.h"
#include "cortado/kernels/native/native.h"

namespace cortado {

namespace native {

namespace {

// Across channels: y = x * s^-beta, s[c] = k + alpha/size * sum over the window around c of x^2.
//   dx[c] = dy[c]*s[c]^-beta - 2*alpha*beta/size * x[c] * sum over the window of dy*y/s
// The channels of one position are worked on in the first-level cache; s is computed anew in the backward
// pass.
template <typename E>
class LrnKernel : public Kernel {
 public:
  LrnKernel(const LrnOptions& options, const Task& task)
      : x_(task.local_input(0)),
        y_(task.local_output(0)),
        first_(task.output_boxes[0][1].begin - task.input_boxes[0][1].begin),
        half_(options.local_size / 2),
        k_(static_cast<float>(options.k)),
        share_(static_cast<float>(options.alpha / options.local_size)),
        beta_(static_cast<float>(options.beta)) {}

  std::string name() const override { return "native lrn"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  bool in_place() const override { return !is_part(); }

  void forward(const Arguments& arguments) override {
    const E* x = elements<E>(arguments.inputs[0]);
    E* y = elements<E>(arguments.outputs[0]);
    const bool streaming = x != y && wants_streaming(y, y_.size(), y_.channels);
    with_power(beta_, [&](auto power) {
      streaming ? run_forward<true>(x, y, power) : run_forward<false>(x, y, power);
    });
  }

  void backward(const Arguments& arguments) override {
    const E *x = elements<E>(arguments.inputs[0]), *dy = elements<E>(arguments.output_gradients[0]);
    E* dx = elements<E>(arguments.input_gradients[0]);
    if (!dx) return;
    const bool streaming = dx != dy && wants_streaming(dx, x_.size(), x_.channels);
    with_power(beta_, [&](auto power) {
      streaming ? run_backward<true>(x, dy, dx, power) : run_backward<false>(x, dy, dx, power);
    });
  }

 private:
  // Other devices have other channels; the input then has those around this device's.
  bool is_part() const { return y_.channels < x_.channels; }

  // Room for the channels of one position with the zeros that surround them.
  std::vector<float> padded_row() const { return std::vector<float>(x_.channels + 2 * half_); }

  // Sum of the window around channel c.
  template <typename V>
  V window_sum(const float* padded, int64_t c) const {
    V total = load<V>(padded + c);
    for (int64_t j = 1; j <= 2 * half_; ++j) total += load<V>(padded + c + j);
    return total;
  }

  void set_squares(const E* x, float* squares) const {
    by_lanes(0, x_.channels, [&]<typename V>(int64_t c) {
      V value = load<V>(x + c);
      store(squares + half_ + c, value * value);
    });
  }

  template <bool streaming, typename Power>
  void run_forward(const E* inputs, E* outputs, Power power) const {
    parallel_ranges(x_.rows, [&](int64_t begin, int64_t end) {
      std::vector<float> squares = padded_row();
      for (int64_t row = begin; row < end; ++row) {
        const E* x = inputs + row * x_.channels;
        E* y = outputs + row * y_.channels;
        set_squares(x, squares.data());
        by_lanes(0, y_.channels, [&]<typename V>(int64_t c) {
          V s = k_ + share_ * window_sum<V>(squares.data(), first_ + c);
          store<streaming>(y + c, load<V>(x + first_ + c) * power(s));
        });
      }
      finish_streaming();
    });
  }

  template <bool streaming, typename Power>
  void run_backward(const E* inputs, const E* gradients, E* targets, Power power) const {
    const float factor = 2 * share_ * beta_;
    parallel_ranges(x_.rows, [&](int64_t begin, int64_t end) {
      std::vector<float> squares = padded_row(), ratios = padded_row(), powers(x_.channels);
      std::vector<E> padded_gradient(is_part() ? x_.channels : 0);  // zero for the channels of others
      for (int64_t row = begin; row < end; ++row) {
        const E *x = inputs + row * x_.channels, *dy = gradients + row * y_.channels;
        E* dx = targets + row * x_.channels;
        if (is_part()) {
          std::copy_n(dy, y_.channels, padded_gradient.data() + first_);
          dy = padded_gradient.data();
        }
        set_squares(x, squares.data());
        by_lanes(0, x_.channels, [&]<typename V>(int64_t c) {
          V s = k_ + share_ * window_sum<V>(squares.data(), c), p = power(s);
          store(powers.data() + c, p);
          store(ratios.data() + half_ + c, load<V>(dy + c) * load<V>(x + c) * p / s);
        });
        by_lanes(0, x_.channels, [&]<typename V>(int64_t c) {
          V spread = factor * load<V>(x + c) * window_sum<V>(ratios.data(), c);
          store<streaming>(dx + c, load<V>(dy + c) * load<V>(powers.data() + c) - spread);
        });
      }
      finish_streaming();
    });
  }

  ChannelRows x_, y_;
  int64_t first_;  // of this device's channels among those of the input
  int64_t half_;
  float k_, share_, beta_;
};

}  // namespace

}  // namespace native

KernelOffer make_native_lrn(const Task& task) {
  auto* lrn = dynamic_cast<const Lrn*>(&task.layer());
  if (!lrn) return {nullptr, "not an LRN"};
  if (task.layers.size() > 1) return {nullptr, "a layer after LRN does not fuse"};
  if (lrn->options().region == LrnOptions::Region::within_channel)
    return native::make_lrn_within_channel(lrn->options(), task);
  return native::offer_by_type(
      task, [&]<typename E>() { return std::make_unique<native::LrnKernel<E>>(lrn->options(), task); });
}

}  // namespace cortado
