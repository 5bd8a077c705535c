// MVN and Normalize: what is divided by sums over groups of elements.
#include <algorithm>
#include <cmath>

#include "cortado/kernels/gpu/elements.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/kernels/gpu/sums.h"
#include "cortado/layers/mvn.h"
#include "cortado/layers/normalize.h"

namespace cortado {
namespace gpu {
namespace {

// Groups of `rows` elements each, which lie `inner` apart in memory.
struct Groups {
  int64_t rows, inner, groups;
  CORTADO_EVERYWHERE int64_t element(int64_t row, int64_t group) const {
    return (group / inner * rows + row) * inner + group % inner;
  }
  CORTADO_EVERYWHERE int64_t of(int64_t i) const { return i / (rows * inner) * inner + i % inner; }
  int64_t elements() const { return rows * groups; }
  Bytes scratch(int64_t sums) const {
    return sum_scratch(rows, groups) + Bytes{sums * groups * int64_t{sizeof(double)}};
  }
  // Where the sums of that number lie in a scratch of scratch().
  double* sums(const Arguments& a, int64_t number) const {
    return reinterpret_cast<double*>(a.scratch + sum_scratch(rows, groups).count) + number * groups;
  }
};

// Sums over groups, each of which may need those before it.
enum class MvnSum { of_x, of_squares, of_gradients, of_products };

// `eps` < 0: the variance is left as it is.
struct MvnStatistics {
  Groups g;
  const double* sums;  // of each group, in the order of MvnSum
  double eps;
  CORTADO_EVERYWHERE double mean_of(MvnSum sum, int64_t group) const {
    return sums[static_cast<int64_t>(sum) * g.groups + group] / static_cast<double>(g.rows);
  }
  CORTADO_EVERYWHERE double divisor(int64_t group) const {
    return eps < 0 ? 1 : sqrt(mean_of(MvnSum::of_squares, group)) + eps;
  }
};

struct MvnTerm {
  MvnStatistics s;
  MvnSum sum;
  const float *x, *dy;
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t group) const {
    const int64_t i = s.g.element(row, group);
    if (sum == MvnSum::of_x) return x[i];
    if (sum == MvnSum::of_gradients) return dy[i];
    const double centred = x[i] - s.mean_of(MvnSum::of_x, group);
    return sum == MvnSum::of_squares ? centred * centred : dy[i] * centred;
  }
};

struct MvnElement {
  MvnStatistics s;
  const float* x;
  float* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t group = s.g.of(i);
    y[i] = static_cast<float>((x[i] - s.mean_of(MvnSum::of_x, group)) / s.divisor(group));
  }
};

// Caffe's formula: layers/mvn.h.
struct MvnGradient {
  MvnStatistics s;
  const float *x, *dy;
  float* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t group = s.g.of(i);
    const double divisor = s.divisor(group), centred = x[i] - s.mean_of(MvnSum::of_x, group);
    const double pull = s.eps < 0 ? 0 : s.mean_of(MvnSum::of_products, group) / (divisor * divisor);
    dx[i] = static_cast<float>((dy[i] - s.mean_of(MvnSum::of_gradients, group) - centred * pull) / divisor);
  }
};

class MvnKernel : public Kernel {
 public:
  MvnKernel(const MvnOptions& options, const Part& part)
      : eps_(options.normalize_variance ? options.eps : -1) {
    const int64_t space = part.d.size * part.h.size * part.w.size, channels = part.c.size;
    if (options.across_channels)
      groups_ = {space * channels, 1, part.n.size};
    else
      groups_ = {space, channels, part.n.size * channels};
  }
  std::string name() const override { return "gpu mvn"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  Bytes scratch_bytes() const override { return groups_.scratch(4); }
  void forward(const Arguments& a) override {
    const MvnStatistics statistics = add_up(a, {MvnSum::of_x, MvnSum::of_squares});
    for_each(a.stream, groups_.elements(), MvnElement{statistics, a.inputs[0], a.outputs[0]});
  }
  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    const MvnStatistics statistics =
        add_up(a, {MvnSum::of_x, MvnSum::of_squares, MvnSum::of_gradients, MvnSum::of_products});
    for_each(a.stream, groups_.elements(),
             MvnGradient{statistics, a.inputs[0], a.output_gradients[0], a.input_gradients[0]});
  }

 private:
  MvnStatistics add_up(const Arguments& a, std::initializer_list<MvnSum> sums) const {
    const MvnStatistics statistics{groups_, groups_.sums(a, 0), eps_};
    const float* dy = a.output_gradients.empty() ? nullptr : a.output_gradients[0];
    for (const MvnSum sum : sums)
      sum_rows(a.stream, groups_.rows, groups_.groups, a.scratch, groups_.sums(a, static_cast<int64_t>(sum)),
               MvnTerm{statistics, sum, a.inputs[0], dy});
    return statistics;
  }

  Groups groups_{};
  double eps_;
};

// `scales`: 1, or as many as channels.
struct NormTerm {
  Groups g;
  const float *x, *dy, *scale;  // dy: null: the squares of x are summed
  int64_t scales;
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t group) const {
    const int64_t i = g.element(row, group);
    return static_cast<double>(x[i]) * (dy ? static_cast<double>(dy[i]) * scale[i % scales] : x[i]);
  }
};

struct NormDivision {
  Groups g;
  const double* squares;
  double eps;
  const float *x, *scale;
  int64_t scales;
  float* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    y[i] = static_cast<float>(static_cast<double>(scale[i % scales]) * x[i] / sqrt(squares[g.of(i)] + eps));
  }
};

// (dy * scale - x * products / s^2) / s with the norm s.
struct NormDivisionGradient {
  Groups g;
  const double *squares, *products;
  double eps;
  const float *x, *dy, *scale;
  int64_t scales;
  float* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t group = g.of(i);
    const double square = squares[group] + eps;
    dx[i] = static_cast<float>(
        (static_cast<double>(scale[i % scales]) * dy[i] - x[i] * products[group] / square) / sqrt(square));
  }
};

struct NormScaleTerm {
  Groups g;
  const double* squares;
  double eps;
  const float *x, *dy;
  int64_t scales;
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t column) const {
    const int64_t i = row * scales + column;
    return static_cast<double>(dy[i]) * x[i] / sqrt(squares[g.of(i)] + eps);
  }
};

class NormalizeKernel : public Kernel {
 public:
  NormalizeKernel(const NormalizeOptions& options, const Part& part)
      : eps_(options.eps), scales_(options.channel_shared ? 1 : part.c.size) {
    const int64_t space = part.d.size * part.h.size * part.w.size, channels = part.c.size;
    if (options.across_spatial)
      groups_ = {space * channels, 1, part.n.size};
    else
      groups_ = {channels, 1, part.n.size * space};
    rows_ = groups_.elements() / scales_;
  }
  std::string name() const override { return "gpu normalize"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  Bytes scratch_bytes() const override { return groups_.scratch(2) + scale_scratch(); }

  void forward(const Arguments& a) override {
    double* squares = groups_.sums(a, 0);
    add_up(a, squares, nullptr);
    for_each(a.stream, groups_.elements(),
             NormDivision{groups_, squares, eps_, a.inputs[0], a.parameters[0], scales_, a.outputs[0]});
  }
  void backward(const Arguments& a) override {
    const float *x = a.inputs[0], *dy = a.output_gradients[0];
    double *squares = groups_.sums(a, 0), *products = groups_.sums(a, 1);
    add_up(a, squares, nullptr);
    if (a.input_gradients[0]) {
      add_up(a, products, dy);
      for_each(a.stream, groups_.elements(),
               NormDivisionGradient{groups_, squares, products, eps_, x, dy, a.parameters[0], scales_,
                                    a.input_gradients[0]});
    }
    if (!a.parameter_gradients[0]) return;
    std::byte* scratch = a.scratch + groups_.scratch(2).count;
    auto* totals = reinterpret_cast<double*>(scratch + sum_scratch(rows_, scales_).count);
    sum_rows(a.stream, rows_, scales_, scratch, totals,
             NormScaleTerm{groups_, squares, eps_, x, dy, scales_});
    for_each(a.stream, scales_, RoundElement{totals, a.parameter_gradients[0]});
  }

 private:
  Bytes scale_scratch() const {
    return sum_scratch(rows_, scales_) + Bytes{scales_ * int64_t{sizeof(double)}};
  }
  void add_up(const Arguments& a, double* sums, const float* dy) const {
    sum_rows(a.stream, groups_.rows, groups_.groups, a.scratch, sums,
             NormTerm{groups_, a.inputs[0], dy, a.parameters[0], scales_});
  }

  Groups groups_{};
  double eps_;
  int64_t scales_, rows_ = 0;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_mvn(const Task& task) {
  const auto* layer = dynamic_cast<const Mvn*>(&task.layer());
  if (!layer) return {nullptr, "not an MVN"};
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  return gpu::offered<gpu::MvnKernel>(layer->options(), gpu::part_of(task.output_boxes[0]));
}

KernelOffer make_gpu_normalize(const Task& task) {
  const auto* layer = dynamic_cast<const Normalize*>(&task.layer());
  if (!layer) return {nullptr, "not a Normalize"};
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  return gpu::offered<gpu::NormalizeKernel>(layer->options(), gpu::part_of(task.output_boxes[0]));
}

}  // namespace cortado
