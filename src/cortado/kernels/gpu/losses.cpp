// Losses of one number whose gradient is a function of one element: Euclidean, sigmoid cross-entropy, hinge,
// contrastive and multinomial logistic.
#include <cmath>
#include <limits>

#include "cortado/kernels/gpu/classes.h"
#include "cortado/kernels/gpu/divided_loss.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/layers/contrastive_loss.h"
#include "cortado/layers/euclidean_loss.h"
#include "cortado/layers/hinge_loss.h"
#include "cortado/layers/multinomial_logistic_loss.h"
#include "cortado/layers/sigmoid_cross_entropy_loss.h"

namespace cortado {
namespace gpu {
namespace {

// The loss is the sum of the elements' terms over the samples of the whole batch.
//   Elements bind to arguments; rows() of them are summed by operator()(row, 0), and gradient(i, input) is
//   that of element i, in spoken order, of an input, per loss weight over samples.
template <typename Elements>
struct LossGradientElement {
  Elements elements;
  int input;
  SpokenOrder order;
  double samples;
  const float* loss_weight;
  float* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    dx[order.offset(i)] = static_cast<float>(elements.gradient(i, input) * (*loss_weight / samples));
  }
};

template <typename Elements>
class LossKernel : public Kernel {
 public:
  explicit LossKernel(const Task& task) : elements_(task), samples_(static_cast<double>(task.inputs[0][0])) {
    for (int i = 0; i < Elements::gradients; ++i) shapes_.push_back(task.local_input(i));
  }
  std::string name() const override { return "gpu loss"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  Bytes scratch_bytes() const override { return loss_scratch(elements_.rows()); }
  void forward(const Arguments& a) override {
    add_up_loss(a.stream, elements_.rows(), a.scratch, elements_.bound(a), samples_ * Elements::halves,
                a.outputs[0]);
  }
  void backward(const Arguments& a) override {
    for (int input = 0; input < Elements::gradients; ++input) {
      const Shape& shape = shapes_[static_cast<size_t>(input)];
      float* dx = a.input_gradients[static_cast<size_t>(input)];
      if (dx)
        for_each(a.stream, shape.size(),
                 LossGradientElement<Elements>{elements_.bound(a), input, SpokenOrder(shape), samples_,
                                               a.output_gradients[0], dx});
    }
  }

 private:
  Elements elements_;
  double samples_;
  std::vector<Shape> shapes_;
};

struct EuclideanElements {
  static constexpr int gradients = 2, halves = 2;
  SpokenOrder a_order, b_order;
  int64_t size;
  const float *a = nullptr, *b = nullptr;
  explicit EuclideanElements(const Task& task)
      : a_order(task.local_input(0)), b_order(task.local_input(1)), size(task.local_input(0).size()) {}
  int64_t rows() const { return size; }
  EuclideanElements bound(const Arguments& arguments) const {
    EuclideanElements elements = *this;
    elements.a = arguments.inputs[0], elements.b = arguments.inputs[1];
    return elements;
  }
  CORTADO_EVERYWHERE double difference(int64_t i) const {
    return static_cast<double>(a[a_order.offset(i)]) - b[b_order.offset(i)];
  }
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t) const {
    return difference(row) * difference(row);
  }
  CORTADO_EVERYWHERE double gradient(int64_t i, int input) const {
    return input == 0 ? difference(i) : -difference(i);
  }
};

// Scores of classes and a label for each sample.
struct LabelledScores {
  SpokenOrder x_order, labels_order;
  int64_t samples, classes;
  const float *x = nullptr, *labels = nullptr;
  explicit LabelledScores(const Task& task)
      : x_order(task.local_input(0)),
        labels_order(task.local_input(1)),
        samples(task.local_input(0)[0]),
        classes(task.local_input(0).count(1)) {}
  template <typename Elements>
  static Elements bound(Elements elements, const Arguments& arguments) {
    elements.x = arguments.inputs[0], elements.labels = arguments.inputs[1];
    return elements;
  }
  CORTADO_EVERYWHERE double score(int64_t i) const { return x[x_order.offset(i)]; }
  CORTADO_EVERYWHERE int64_t label(int64_t sample) const {
    return named_class(labels[labels_order.offset(sample)], classes);
  }
  CORTADO_EVERYWHERE static double not_a_number() { return std::numeric_limits<double>::quiet_NaN(); }
};

struct HingeElements : LabelledScores {
  static constexpr int gradients = 1, halves = 1;
  bool squared;
  explicit HingeElements(const Task& task)
      : LabelledScores(task),
        squared(dynamic_cast<const HingeLoss&>(task.layer()).options().norm == HingeLossOptions::Norm::l2) {}
  int64_t rows() const { return samples * classes; }
  HingeElements bound(const Arguments& a) const { return LabelledScores::bound(*this, a); }
  CORTADO_EVERYWHERE double sign(int64_t i) const { return i % classes == label(i / classes) ? 1 : -1; }
  CORTADO_EVERYWHERE double margin(int64_t i) const {
    const double value = 1 - sign(i) * score(i);
    return (value > 0 ? value : 0) + score(i) * 0;
  }
  CORTADO_EVERYWHERE double operator()(int64_t i, int64_t) const {
    if (label(i / classes) < 0) return not_a_number();
    return squared ? margin(i) * margin(i) : margin(i);
  }
  CORTADO_EVERYWHERE double gradient(int64_t i, int) const {
    return -sign(i) * (squared ? 2 * margin(i) : margin(i) > 0 ? 1 : 0);
  }
};

struct MultinomialElements : LabelledScores {
  static constexpr int gradients = 1, halves = 1;
  using LabelledScores::LabelledScores;
  int64_t rows() const { return samples * classes; }
  MultinomialElements bound(const Arguments& a) const { return LabelledScores::bound(*this, a); }
  CORTADO_EVERYWHERE double bounded(int64_t i) const { return score(i) > 1e-20 ? score(i) : 1e-20; }
  CORTADO_EVERYWHERE double operator()(int64_t i, int64_t) const {
    const int64_t own = label(i / classes);
    if (own < 0) return not_a_number();
    return (i % classes == own ? -log(bounded(i)) : 0) + score(i) * 0;
  }
  CORTADO_EVERYWHERE double gradient(int64_t i, int) const {
    return i % classes == label(i / classes) ? -1 / bounded(i) : 0;
  }
};

// Rows are pairs of vectors.
struct ContrastiveElements {
  static constexpr int gradients = 2, halves = 2;
  double distance_margin;
  bool legacy;
  int64_t pairs, channels;
  const float *a = nullptr, *b = nullptr, *similarity = nullptr;
  explicit ContrastiveElements(const Task& task)
      : pairs(task.local_input(0)[0]), channels(task.local_input(0)[1]) {
    const ContrastiveLossOptions& options = dynamic_cast<const ContrastiveLoss&>(task.layer()).options();
    distance_margin = options.margin, legacy = options.legacy_version;
  }
  int64_t rows() const { return pairs; }
  ContrastiveElements bound(const Arguments& arguments) const {
    ContrastiveElements elements = *this;
    elements.a = arguments.inputs[0], elements.b = arguments.inputs[1];
    elements.similarity = arguments.inputs[2];
    return elements;
  }
  CORTADO_EVERYWHERE double difference(int64_t i) const { return static_cast<double>(a[i]) - b[i]; }
  CORTADO_EVERYWHERE bool similar(int64_t pair) const { return trunc(similarity[pair]) != 0; }
  CORTADO_EVERYWHERE double squared(int64_t pair) const {
    double sum = 0;
    for (int64_t i = pair * channels; i < (pair + 1) * channels; ++i) sum += difference(i) * difference(i);
    return sum;
  }
  CORTADO_EVERYWHERE double operator()(int64_t pair, int64_t) const {
    const double square = squared(pair), zero = square * 0;
    if (similar(pair)) return square;
    const double gap = distance_margin - (legacy ? square : sqrt(square));
    const double bounded = (gap > 0 ? gap : 0) + zero;
    return legacy ? bounded : bounded * bounded;
  }
  // By d^2 / 2. Caffe's 1e-4 keeps the quotient finite at d = 0.
  CORTADO_EVERYWHERE double slope(int64_t pair) const {
    if (similar(pair)) return 1;
    const double square = squared(pair);
    if (legacy) return distance_margin > square ? -1 : 0;
    const double distance = sqrt(square);
    return distance_margin > distance ? -(distance_margin - distance) / (distance + 1e-4) : 0;
  }
  CORTADO_EVERYWHERE double gradient(int64_t i, int input) const {
    const double value = slope(i / channels) * difference(i);
    return input == 0 ? value : -value;
  }
};

// Column 0: losses; column 1: targets that count.
struct CrossEntropyTerm {
  SpokenOrder x_order, targets_order;
  bool ignores;
  float ignored;
  const float *x, *targets;
  CORTADO_EVERYWHERE bool counts(int64_t i) const {
    return !(ignores && truncf(targets[targets_order.offset(i)]) == ignored);
  }
  // -(t log(s) + (1 - t) log(1 - s)) = max(x, 0) - x t + log(1 + exp(-|x|)), which cannot overflow.
  CORTADO_EVERYWHERE double operator()(int64_t i, int64_t column) const {
    if (column == 1) return counts(i);
    const double score = x[x_order.offset(i)];
    if (!counts(i)) return score * 0;
    const double target = targets[targets_order.offset(i)];
    return (score > 0 ? score : 0) - score * target + log1p(exp(-fabs(score))) + score * 0;
  }
};
struct CrossEntropyCount {
  CrossEntropyTerm term;
  CORTADO_EVERYWHERE double operator()(int64_t i, int64_t) const { return term.counts(i); }
};

struct CrossEntropyGradient {
  CrossEntropyTerm term;
  const float* loss_weight;
  const double* divisor;
  float* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t at = term.x_order.offset(i);
    const double score = term.x[at], target = term.targets[term.targets_order.offset(i)];
    dx[at] =
        term.counts(i) ? static_cast<float>((1 / (1 + exp(-score)) - target) * (*loss_weight / *divisor)) : 0;
  }
};

class CrossEntropyKernel : public Kernel {
 public:
  CrossEntropyKernel(const SigmoidCrossEntropyLossOptions& o, const Task& task)
      : size_(task.local_input(0).size()),
        backward_(task.has_backward()),
        term_{SpokenOrder(task.local_input(0)),
              SpokenOrder(task.local_input(1)),
              o.ignore_label.has_value(),
              static_cast<float>(o.ignore_label.value_or(0)),
              nullptr,
              nullptr},
        divisor_(task, o.normalization, o.ignore_label.has_value(), task.inputs[0][0],
                 task.inputs[0].count(1)) {}
  std::string name() const override { return "gpu sigmoid-cross-entropy"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  int64_t forward_sums() const override { return divisor_.travels ? 1 : 0; }
  Bytes saved_bytes() const override { return {backward_ ? int64_t{sizeof(double)} : 0}; }
  Bytes scratch_bytes() const override { return loss_scratch(size_) + Bytes{int64_t{sizeof(double)}}; }

  void forward_partial(const Arguments& a) override {
    sum_rows(a.stream, size_, 1, a.scratch, a.sums, CrossEntropyCount{bound(a)});
  }
  void forward(const Arguments& a) override {
    double* const totals = loss_totals(a.scratch, size_);
    sum_rows(a.stream, size_, 2, a.scratch, totals, bound(a));
    auto* const divisor = backward_ ? reinterpret_cast<double*>(a.saved) : totals + 2;
    for_each(
        a.stream, 1,
        WriteCountedLoss{totals, divisor_.travels ? a.sums : nullptr, divisor_.fixed, divisor, a.outputs[0]});
  }
  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    for_each(a.stream, size_,
             CrossEntropyGradient{bound(a), a.output_gradients[0], reinterpret_cast<const double*>(a.saved),
                                  a.input_gradients[0]});
  }

 private:
  CrossEntropyTerm bound(const Arguments& a) const {
    CrossEntropyTerm term = term_;
    term.x = a.inputs[0], term.targets = a.inputs[1];
    return term;
  }
  int64_t size_;
  bool backward_;
  CrossEntropyTerm term_;
  CountedDivisor divisor_;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_loss(const Task& task) {
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  const Layer* layer = &task.layer();
  if (dynamic_cast<const EuclideanLoss*>(layer))
    return gpu::offered<gpu::LossKernel<gpu::EuclideanElements>>(task);
  if (dynamic_cast<const HingeLoss*>(layer)) return gpu::offered<gpu::LossKernel<gpu::HingeElements>>(task);
  if (dynamic_cast<const ContrastiveLoss*>(layer))
    return gpu::offered<gpu::LossKernel<gpu::ContrastiveElements>>(task);
  if (dynamic_cast<const MultinomialLogisticLoss*>(layer))
    return gpu::offered<gpu::LossKernel<gpu::MultinomialElements>>(task);
  if (const auto* cross_entropy = dynamic_cast<const SigmoidCrossEntropyLoss*>(layer))
    return gpu::offered<gpu::CrossEntropyKernel>(cross_entropy->options(), task);
  return {nullptr, "none of these losses"};
}

}  // namespace cortado
