#include "cortado/kernels/native/lrn_within.h"

#include <algorithm>
#include <vector>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/lrn_power.h"

namespace cortado::native {
namespace {

// The part of an image that a device holds, and the windows around its places.
struct Part {
  int64_t rows = 0, columns = 0, channels = 0;

  int64_t row_elements() const { return columns * channels; }
  int64_t elements() const { return rows * row_elements(); }
};

// [place - reach, place + reach] within [0, extent); perhaps empty.
Range window(int64_t place, int64_t reach, int64_t extent) {
  const int64_t begin = std::max<int64_t>(0, place - reach);
  return {begin, std::max(begin, std::min(extent, place + reach + 1))};
}

// sums[i] = the sum over these rows of value(element i of the row).
template <typename E, typename Value>
void sum_rows(const E* rows, Range range, int64_t row_elements, float* sums, Value value) {
  by_lanes(0, row_elements, [&]<typename V>(int64_t i) {
    V total{};
    for (int64_t row = range.begin; row < range.end; ++row)
      total += value(load<V>(rows + row * row_elements + i));
    store(sums + i, total);
  });
}

// The sum over these columns at channel c of the row's sums.
template <typename V>
V sum_columns(const float* sums, Range range, int64_t channels, int64_t c) {
  V total{};
  for (int64_t column = range.begin; column < range.end; ++column)
    total += load<V>(sums + column * channels + c);
  return total;
}

// y = x * s^-beta, s = 1 + alpha/size^2 * sum over the window around it of x^2.
//   dx = dy*s^-beta - 2*alpha*beta/size^2 * x * sum over the window of dy*x*s^(-beta-1)
// Scratch of the backward pass: both addends of each output, the second without its factor.
template <typename E>
class WithinChannelLrnKernel : public Kernel {
 public:
  WithinChannelLrnKernel(const LrnOptions& options, const Task& task)
      : samples_(task.local_input(0)[0]),
        input_(part_of(task.local_input(0))),
        output_(part_of(task.local_output(0))),
        first_row_(task.output_boxes[0][2].begin - task.input_boxes[0][2].begin),
        first_column_(task.output_boxes[0][3].begin - task.input_boxes[0][3].begin),
        reach_(options.local_size / 2),
        share_(
            static_cast<float>(options.alpha / static_cast<double>(options.local_size * options.local_size))),
        beta_(static_cast<float>(options.beta)) {}

  std::string name() const override { return "native lrn within channels"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  Bytes scratch_bytes() const override {
    return {2 * samples_ * output_.elements() * int64_t{sizeof(float)}};
  }

  void forward(const Arguments& arguments) override {
    const E* x = elements<E>(arguments.inputs[0]);
    E* y = elements<E>(arguments.outputs[0]);
    with_power(beta_, [&](auto power) {
      for_each_output(
          x, [&]<typename V>(int64_t from, int64_t to, V s) { store(y + to, load<V>(x + from) * power(s)); });
    });
  }

  void backward(const Arguments& arguments) override {
    E* dx = elements<E>(arguments.input_gradients[0]);
    if (!dx) return;
    const E *x = elements<E>(arguments.inputs[0]), *dy = elements<E>(arguments.output_gradients[0]);
    auto* const own = reinterpret_cast<float*>(arguments.scratch);
    float* const ratios = own + samples_ * output_.elements();
    with_power(beta_, [&](auto power) {
      for_each_output(x, [&]<typename V>(int64_t from, int64_t to, V s) {
        const V passed = load<V>(dy + to) * power(s);
        store(own + to, passed);
        store(ratios + to, passed * load<V>(x + from) / s);
      });
    });
    spread(x, own, ratios, dx);
  }

 private:
  static Part part_of(const Shape& local) { return {local[2], local[3], local[1]}; }

  // body.operator()<V>(element of the input, the same of the output, s) for each output.
  template <typename Body>
  void for_each_output(const E* x, Body&& body) const {
    parallel_ranges(samples_ * output_.rows, [&](int64_t begin, int64_t end) {
      std::vector<float> sums(static_cast<size_t>(input_.row_elements()));
      for (int64_t place = begin; place < end; ++place) {
        const int64_t sample = place / output_.rows, row = place % output_.rows + first_row_;
        const int64_t image = sample * input_.elements();
        sum_rows(x + image, window(row, reach_, input_.rows), input_.row_elements(), sums.data(),
                 [](auto value) { return value * value; });
        for (int64_t column = 0; column < output_.columns; ++column) {
          const Range near = window(column + first_column_, reach_, input_.columns);
          const int64_t from =
              image + row * input_.row_elements() + (column + first_column_) * input_.channels;
          const int64_t to = place * output_.row_elements() + column * output_.channels;
          by_lanes(0, output_.channels, [&]<typename V>(int64_t c) {
            const V s = 1 + share_ * sum_columns<V>(sums.data(), near, input_.channels, c);
            body.template operator()<V>(from + c, to + c, s);
          });
        }
      }
    });
  }

  void spread(const E* x, const float* own, const float* ratios, E* dx) const {
    const float factor = 2 * share_ * beta_;
    parallel_ranges(samples_ * input_.rows, [&](int64_t begin, int64_t end) {
      std::vector<float> sums(static_cast<size_t>(output_.row_elements()));
      for (int64_t place = begin; place < end; ++place) {
        const int64_t sample = place / input_.rows, row = place % input_.rows - first_row_;
        const int64_t image = sample * output_.elements();
        sum_rows(ratios + image, window(row, reach_, output_.rows), output_.row_elements(), sums.data(),
                 [](auto value) { return value; });
        const bool has_row = row >= 0 && row < output_.rows;
        for (int64_t i = 0; i < input_.columns; ++i) {
          const int64_t column = i - first_column_;
          const bool passes = has_row && column >= 0 && column < output_.columns;
          const float* const passed = own + image + row * output_.row_elements() + column * output_.channels;
          const Range near = window(column, reach_, output_.columns);
          const int64_t to = place * input_.row_elements() + i * input_.channels;
          by_lanes(0, input_.channels, [&]<typename V>(int64_t c) {
            const V around =
                factor * load<V>(x + to + c) * sum_columns<V>(sums.data(), near, output_.channels, c);
            store(dx + to + c, passes ? load<V>(passed + c) - around : -around);
          });
        }
      }
    });
  }

  int64_t samples_;
  Part input_, output_;
  int64_t first_row_, first_column_;  // of this device's outputs among the inputs that it holds
  int64_t reach_;
  float share_, beta_;
};

}  // namespace

KernelOffer make_lrn_within_channel(const LrnOptions& options, const Task& task) {
  if (task.inputs[0].rank() != 4) return {nullptr, "within-channel region, but not of 2-D images"};
  return offer_by_type(
      task, [&]<typename E>() { return std::make_unique<WithinChannelLrnKernel<E>>(options, task); });
}

}  // namespace cortado::native
