#include <algorithm>
#include <cblas.h>
#include <fmt/format.h>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/lowering/channels.h"
#include "cortado/kernels/lowering/lowering.h"
#include "cortado/kernels/lowering/problem.h"

namespace cortado {
namespace {

using lowering::ChainTail;
using lowering::ConvolutionProblem;

constexpr int64_t lowered_bytes = 64 << 20;  // of the lowered matrix, unless one sample needs more

// One group's lowered matrix of some samples: [sample, window][channel][tap], the canonical order of the
// weight.
class Im2col {
 public:
  explicit Im2col(const ConvolutionProblem& problem)
      : problem_(problem),
        windows_(problem.axis[0].windows * problem.axis[1].windows * problem.axis[2].windows),
        positions_(problem.axis[0].image * problem.axis[1].image * problem.axis[2].image) {}

  int64_t windows() const { return windows_; }  // of a sample
  int64_t depth() const { return problem_.image_channels * problem_.taps(); }
  int64_t channels() const { return problem_.groups * problem_.image_channels; }
  int64_t image_size() const { return positions_ * channels(); }

  void lower(const float* image, int64_t samples, float* lowered) const {
    const int64_t taps = problem_.taps();
    parallel_for(samples * windows_, [&](int64_t row) {
      const float* sample = image + row / windows_ * image_size();
      visit(row % windows_, [&](int64_t tap, int64_t position) {
        for (int64_t c = 0; c < problem_.image_channels; ++c)
          lowered[row * depth() + c * taps + tap] = position < 0 ? 0.0f : sample[position * channels() + c];
      });
    });
  }

  // The adjoint: adds each lowered element to the image element it came from.
  void raise(const float* lowered, int64_t samples, float* image) const {
    const int64_t taps = problem_.taps();
    parallel_for(samples, [&](int64_t n) {
      for (int64_t window = 0; window < windows_; ++window) {
        const float* row = lowered + (n * windows_ + window) * depth();
        visit(window, [&](int64_t tap, int64_t position) {
          for (int64_t c = 0; position >= 0 && c < problem_.image_channels; ++c)
            image[n * image_size() + position * channels() + c] += row[c * taps + tap];
        });
      }
    });
  }

 private:
  // Calls work(tap, image position) for each tap of a window; the position is negative outside the image.
  template <typename Work>
  void visit(int64_t window, Work&& work) const {
    const auto& [d, h, w] = problem_.axis;
    const int64_t od = window / w.windows / h.windows, oh = window / w.windows % h.windows,
                  ow = window % w.windows;
    int64_t tap = 0;
    for (int64_t kd = 0; kd < d.kernel; ++kd)
      for (int64_t kh = 0; kh < h.kernel; ++kh)
        for (int64_t kw = 0; kw < w.kernel; ++kw, ++tap) {
          const int64_t id = od * d.stride + d.offset(kd), ih = oh * h.stride + h.offset(kh);
          const int64_t iw = ow * w.stride + w.offset(kw);
          const bool inside = id >= 0 && id < d.image && ih >= 0 && ih < h.image && iw >= 0 && iw < w.image;
          work(tap, inside ? (id * h.image + ih) * w.image + iw : -1);
        }
  }

  ConvolutionProblem problem_;
  int64_t windows_, positions_;
};

class Im2colKernel : public Kernel {
 public:
  Im2colKernel(const ConvolutionProblem& problem, const ChainTail& tail, const Task& task)
      : problem_(problem),
        tail_(tail),
        im2col_(problem),
        outputs_(problem.groups * problem.window_channels),
        weights_step_(std::find(task.parameter_gradients.begin(), task.parameter_gradients.end(), true) !=
                      task.parameter_gradients.end()) {
    const int64_t sample_bytes = im2col_.windows() * im2col_.depth() * sizeof(float);
    partition_ = std::clamp<int64_t>(lowered_bytes / std::max<int64_t>(1, sample_bytes), 1,
                                     std::max<int64_t>(1, problem.batch));
  }

  std::string name() const override { return "im2col-gemm"; }
  BackwardReads backward_reads() const override {
    return {.inputs = weights_step_, .outputs = tail_.rectify};
  }
  bool overwrites_output_gradients() const override { return tail_.rectify; }
  Bytes scratch_bytes() const override {
    return {partition_ * im2col_.windows() * im2col_.depth() * static_cast<int64_t>(sizeof(float))};
  }

  void forward(const Arguments& a) override {
    for_each_part(a, [&](const Part& part) {
      im2col_.lower(lowering::first_input(a) + part.image, part.samples, part.lowered);
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, part.rows, columns(), depth(), 1, part.lowered,
                  depth(), a.parameters[0] + part.weight, depth(), 0, a.outputs[0] + part.windows, outputs_);
    });
    finish(a.outputs[0], a.parameters.size() > 1 ? a.parameters[1] : nullptr);
  }

  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    if (!weights_step_) mask(a);
    std::fill_n(a.input_gradients[0], problem_.batch * im2col_.image_size(), 0.0f);
    for_each_part(a, [&](const Part& part) {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, part.rows, depth(), columns(), 1,
                  a.output_gradients[0] + part.windows, outputs_, a.parameters[0] + part.weight, depth(), 0,
                  part.lowered, depth());
      im2col_.raise(part.lowered, part.samples, a.input_gradients[0] + part.image);
    });
  }

  void backward_weights(const Arguments& a) override {
    if (!weights_step_) return;
    mask(a);
    if (a.parameter_gradients.size() > 1 && a.parameter_gradients[1])
      lowering::sum_rows(a.output_gradients[0], rows(), outputs_, a.parameter_gradients[1]);
    float* gradient = a.parameter_gradients[0];
    if (!gradient) return;
    std::fill_n(gradient, outputs_ * im2col_.depth(), 0.0f);
    for_each_part(a, [&](const Part& part) {
      im2col_.lower(lowering::first_input(a) + part.image, part.samples, part.lowered);
      cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, columns(), depth(), part.rows, 1,
                  a.output_gradients[0] + part.windows, outputs_, part.lowered, depth(), 1,
                  gradient + part.weight, depth());
    });
  }

 private:
  // A partition of the batch, of one group: offsets of its tensors and the memory of its lowered matrix.
  struct Part {
    int64_t samples, image, windows, weight;
    int rows;
    float* lowered;
  };

  template <typename Work>
  void for_each_part(const Arguments& a, Work&& work) const {
    for (int64_t group = 0; group < problem_.groups; ++group)
      for (int64_t n = 0; n < problem_.batch; n += partition_) {
        const int64_t samples = std::min(partition_, problem_.batch - n);
        if (samples * im2col_.windows() == 0) continue;
        work(Part{samples, n * im2col_.image_size() + group * problem_.image_channels,
                  n * im2col_.windows() * outputs_ + group * problem_.window_channels,
                  group * problem_.window_channels * im2col_.depth(),
                  static_cast<int>(samples * im2col_.windows()), reinterpret_cast<float*>(a.scratch)});
      }
  }

  int depth() const { return static_cast<int>(im2col_.depth()); }
  int columns() const { return static_cast<int>(problem_.window_channels); }
  int64_t rows() const { return problem_.batch * im2col_.windows(); }

  void mask(const Arguments& a) const {
    if (tail_.rectify)
      lowering::mask_gradient(a.outputs[0], tail_.slope, rows() * outputs_, a.output_gradients[0]);
  }

  // Bias and ReLU.
  void finish(float* outputs, const float* bias) const {
    if (!bias && !tail_.rectify) return;
    parallel_for(rows(), [&](int64_t row) {
      for (int64_t c = 0; c < outputs_; ++c) {
        float value = outputs[row * outputs_ + c] + (bias ? bias[c] : 0.0f);
        outputs[row * outputs_ + c] = tail_.rectify && value < 0 ? tail_.slope * value : value;
      }
    });
  }

  ConvolutionProblem problem_;
  ChainTail tail_;
  Im2col im2col_;
  int64_t outputs_;        // channels of all groups
  int64_t partition_ = 1;  // samples lowered at a time
  bool weights_step_;      // backward_weights runs, and masks the output gradient for backward
};

}  // namespace

KernelOffer make_im2col_gemm(const Task& task) {
  KernelOffer offer;
  const auto* layer = dynamic_cast<const Convolution*>(&task.layer());
  if (!layer) {
    offer.refusal = fmt::format("{} is not a convolution", task.layer().type());
    return offer;
  }
  const std::optional<ChainTail> tail = lowering::chain_tail(task, offer.refusal);
  if (!tail) return offer;
  const auto problem = lowering::convolution_problem(layer->options(), task.inputs[0], task.input_boxes[0],
                                                     task.outputs[0], task.output_boxes[0], offer.refusal);
  if (problem) offer.kernel = std::make_unique<Im2colKernel>(*problem, *tail, task);
  return offer;
}

}  // namespace cortado
