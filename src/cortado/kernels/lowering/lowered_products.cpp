#include "cortado/kernels/lowering/lowered_products.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/lowering/channels.h"
#include "cortado/kernels/lowering/lowering.h"
#include "cortado/kernels/lowering/partitions.h"

namespace cortado::lowering {

namespace {

constexpr int64_t alignment = 16;  // floats

// A batch in parts: partitions that run at the same time, each with memory for the lowered data and the
// product of a few samples, and with sums of its own for the weight's gradient (partition 0 sums in place).
class LoweredBatch {
 public:
  LoweredBatch(Lowering lowering, const LoweringOptions& options)
      : lowering_(std::move(lowering)), blas_(options.blas), serial_(options.serial) {
    const int64_t batch = std::max<int64_t>(1, lowering_.problem().batch), floats = options.memory.count / 4;
    const int64_t wanted = options.partitions > 0 ? options.partitions : compute_threads();
    partitions_ = std::clamp<int64_t>(wanted, 1, std::min<int64_t>(batch, compute_threads()));
    while (partitions_ > 1 && elements(1) > floats) --partitions_;
    const int64_t samples = options.samples > 0 ? options.samples : chosen_samples();
    samples_ = std::min(samples, divide_up(batch, partitions_));
    while (samples_ > 1 && elements(samples_) > floats) samples_ = (samples_ + 1) / 2;
    fits_ = elements(samples_) <= floats;
  }

  struct Part {
    int64_t partition, first_sample, samples;
    float *data, *product;  // memory
  };

  const Lowering& lowering() const { return lowering_; }
  Blas blas() const { return blas_; }
  bool fits() const { return fits_; }
  int64_t partitions() const { return partitions_; }
  size_t bytes() const { return elements(samples_) * sizeof(float); }
  int64_t weights() const { return lowering_.problem().groups * lowering_.group_weight(); }
  float* sums(std::byte* scratch) const {  // of partitions 1, 2, ...
    return reinterpret_cast<float*>(scratch) + partitions_ * part_elements(samples_);
  }

  template <typename Work>
  void for_each_part(std::byte* scratch, Work&& work) const {
    const int64_t batch = lowering_.problem().batch;
    const ThreadTeam::Scope openmp(nullptr);  // whose parallel regions libraries know
    for_each_partition(static_cast<int>(partitions_), [&](int64_t i) {
      const int64_t end = batch * (i + 1) / partitions_;
      float* data = reinterpret_cast<float*>(scratch) + i * part_elements(samples_);
      for (int64_t n = batch * i / partitions_; n < end; n += samples_)
        work(Part{i, n, std::min(samples_, end - n), data, data + data_elements(samples_)});
    });
  }

  // The tensor as a matrix, in `memory` unless it is one.
  Factor lowered(const LoweredMatrix& matrix, const float* tensor, int64_t samples, float* memory) const {
    if (matrix.is_tensor()) return {tensor, matrix.row_stride()};
    on_its_threads([&] { matrix.gather(tensor, samples, memory); });
    return {memory, matrix.row_stride()};
  }
  void lift(const LoweredMatrix& matrix, const float* product, int64_t samples, float* tensor, bool add,
            const Epilogue& epilogue) const {
    on_its_threads([&] { matrix.scatter(product, samples, tensor, add, epilogue); });
  }

 private:
  template <typename Work>
  void on_its_threads(Work&& work) const {
    if (!serial_) return work();
    const int threads = compute_threads();
    set_compute_threads(1);
    work();
    set_compute_threads(threads);
  }
  // So many that a product has enough rows for BLAS; more leave the caches (docs/explanation/lowering.md).
  int64_t chosen_samples() const {
    constexpr int64_t enough = 700;
    int64_t rows = 1;
    for (const LoweringClass& each : lowering_.classes()) rows = std::max(rows, each.data.rows());
    return divide_up(enough, rows);
  }
  int64_t data_elements(int64_t samples) const {
    return round_up(samples * lowering_.data_elements(), alignment);
  }
  int64_t part_elements(int64_t samples) const {
    return data_elements(samples) + round_up(samples * lowering_.product_elements(), alignment);
  }
  int64_t elements(int64_t samples) const {
    return partitions_ * part_elements(samples) + (partitions_ - 1) * weights();
  }

  Lowering lowering_;
  Blas blas_;
  int64_t partitions_, samples_;
  bool fits_, serial_;
};

using LoweredBatchPtr = std::shared_ptr<const LoweredBatch>;

// Forward: the image is lowered, the product lifted to the windows. Backward: the windows are taken apart as
// the product was lifted, and what was lowered is summed to the image.
class LoweredProduct : public DataProduct {
 public:
  LoweredProduct(LoweredBatchPtr batch, bool forward) : batch_(std::move(batch)), forward_(forward) {
    const ConvolutionProblem& problem = lowering().problem();
    from_channels_ = forward ? problem.image_channels : problem.window_channels;
    to_channels_ = forward ? problem.window_channels : problem.image_channels;
    from_sample_ = forward ? lowering().image_sample() : lowering().windows_sample();
    to_sample_ = forward ? lowering().windows_sample() : lowering().image_sample();
    const auto& classes = lowering().classes();
    lifts_once_ = classes.size() == 1 && !to(classes.front()).is_tensor();
  }

  size_t scratch_bytes() const override { return batch_->bytes(); }

  void run(const float* from, const float* weight, float* to, const Epilogue& epilogue,
           std::byte* scratch) const override {
    const int64_t groups = lowering().problem().groups;
    batch_->for_each_part(scratch, [&](const LoweredBatch::Part& part) {
      float* target = to + part.first_sample * to_sample_;
      for (int64_t group = 0; group < groups; ++group)
        run_group(from + part.first_sample * from_sample_ + group * from_channels_,
                  weight + group * lowering().group_weight(), target + group * to_channels_,
                  lifts_once_ ? epilogue.from_channel(group * to_channels_) : Epilogue{}, part);
      if (!lifts_once_)
        apply(epilogue, part.samples * to_sample_ / (groups * to_channels_), groups * to_channels_, target);
    });
  }

 private:
  const Lowering& lowering() const { return batch_->lowering(); }
  const LoweredMatrix& from(const LoweringClass& part) const { return forward_ ? part.data : part.product; }
  const LoweredMatrix& to(const LoweringClass& part) const { return forward_ ? part.product : part.data; }

  void run_group(const float* source, const float* weight, float* target, const Epilogue& epilogue,
                 const LoweredBatch::Part& part) const {
    bool add = false;
    for (const LoweringClass& each : lowering().classes()) {
      const LoweredMatrix &in = from(each), &out = to(each);
      const Factor left = batch_->lowered(in, source, part.samples, forward_ ? part.data : part.product);
      const Factor right{weight + each.kernel, each.product.columns(), !forward_};
      float* product = out.is_tensor() ? target : forward_ ? part.product : part.data;
      multiply(batch_->blas(), part.samples * in.rows(), out.columns(), in.columns(), left, right,
               out.is_tensor() && add ? 1.0f : 0.0f, product, out.row_stride());
      if (!out.is_tensor()) batch_->lift(out, product, part.samples, target, add, epilogue);
      add = true;
    }
  }

  LoweredBatchPtr batch_;
  bool forward_, lifts_once_;
  int64_t from_channels_, to_channels_, from_sample_, to_sample_;
};

// Gradient of K = lowered data^T * gradient of the product, summed over the parts of the batch.
class LoweredCorrelation : public FilterProduct {
 public:
  explicit LoweredCorrelation(LoweredBatchPtr batch) : batch_(std::move(batch)) {}

  size_t scratch_bytes() const override { return batch_->bytes(); }
  bool wants_masked() const override { return true; }

  void run(const WeightProduct::Operands& operands, float* weight_gradient, float* bias_gradient,
           std::byte* scratch) const override {
    const Lowering& lowering = batch_->lowering();
    const ConvolutionProblem& problem = lowering.problem();
    const float* gradient = operands.rectified ? operands.masked : operands.out_gradient;
    float* others = batch_->sums(scratch);
    if (weight_gradient) clear(weight_gradient, others);
    batch_->for_each_part(scratch, [&](const LoweredBatch::Part& part) {
      const int64_t first = part.first_sample * lowering.windows_sample();
      if (operands.rectified) mask(operands, first, part.samples * lowering.windows_sample());
      if (!weight_gradient) return;
      float* sums = part.partition == 0 ? weight_gradient : others + (part.partition - 1) * batch_->weights();
      for (int64_t group = 0; group < problem.groups; ++group)
        add_group(
            operands.left + part.first_sample * lowering.image_sample() + group * problem.image_channels,
            gradient + first + group * problem.window_channels, sums + group * lowering.group_weight(), part);
    });
    if (weight_gradient) add_others(others, weight_gradient);
    const int64_t channels = problem.groups * problem.window_channels;
    if (bias_gradient)
      sum_rows(gradient, problem.batch * lowering.windows_sample() / channels, channels, bias_gradient);
  }

 private:
  void clear(float* gradient, float* others) const {
    parallel_ranges(batch_->weights(), [&](int64_t begin, int64_t end) {
      std::fill(gradient + begin, gradient + end, 0.0f);
      float* other = others;
      for (int64_t i = 1; i < batch_->partitions(); ++i, other += batch_->weights())
        std::fill(other + begin, other + end, 0.0f);
    });
  }

  static void mask(const WeightProduct::Operands& operands, int64_t first, int64_t count) {
    parallel_ranges(count, [&](int64_t begin, int64_t end) {
      for (int64_t i = first + begin; i < first + end; ++i)
        operands.masked[i] = operands.out_gradient[i] * (operands.rectified[i] > 0 ? 1.0f : operands.slope);
    });
  }

  void add_group(const float* image, const float* gradient, float* sums,
                 const LoweredBatch::Part& part) const {
    for (const LoweringClass& each : batch_->lowering().classes()) {
      Factor data = batch_->lowered(each.data, image, part.samples, part.data);
      data.transposed = true;
      multiply(batch_->blas(), each.data.columns(), each.product.columns(), part.samples * each.data.rows(),
               data, batch_->lowered(each.product, gradient, part.samples, part.product), 1,
               sums + each.kernel, each.product.columns());
    }
  }

  void add_others(const float* others, float* gradient) const {
    parallel_ranges(batch_->weights(), [&](int64_t begin, int64_t end) {
      const float* other = others;
      for (int64_t i = 1; i < batch_->partitions(); ++i, other += batch_->weights())
        for (int64_t k = begin; k < end; ++k) gradient[k] += other[k];
    });
  }

  LoweredBatchPtr batch_;
};

}  // namespace

std::optional<ConvolutionProducts> lowered_products(const ConvolutionProblem& problem, LoweringType type,
                                                    const LoweringOptions& options, std::string& refusal) {
  refusal = refusal_of(options.blas);
  if (!refusal.empty()) return std::nullopt;
  auto batch = std::make_shared<const LoweredBatch>(Lowering(problem, type), options);
  if (!batch->fits()) {
    constexpr double mebi = 1 << 20;
    refusal = fmt::format("a lowered sample takes {:.1f} MiB, more than {:.1f} MiB",
                          static_cast<double>(batch->bytes()) / mebi,
                          static_cast<double>(options.memory.count) / mebi);
    return std::nullopt;
  }
  return ConvolutionProducts{std::make_unique<LoweredProduct>(batch, true),
                             std::make_unique<LoweredProduct>(batch, false),
                             std::make_unique<LoweredCorrelation>(batch), name_of(type, options.blas),
                             batch->lowering().weight_format()};
}

}  // namespace cortado::lowering
