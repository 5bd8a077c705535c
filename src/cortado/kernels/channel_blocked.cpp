#include <algorithm>
#include <string>

#include "cortado/base/error.h"
#include "cortado/base/parallel_for.h"
#include "cortado/base/sum_tree.h"
#include "cortado/kernels/blocked.h"

namespace cortado {
namespace {

// A format in which the slices of blocks of outputs lie one after the other, each in its kernel's order.
ParameterFormat joined_format(const std::vector<ParameterFormat>& formats,
                              const std::vector<int64_t>& canonical) {
  ParameterFormat joined;
  const auto own_elements = [](const ParameterFormat& format, int64_t slice) {
    return format.elements > 0 ? format.elements : slice;
  };
  bool same = true;
  for (size_t c = 0; c < formats.size(); ++c) {
    joined.elements += own_elements(formats[c], canonical[c]);
    same &= formats[c] == ParameterFormat{};
  }
  if (same) return {};
  joined.name = formats[0].name + ", by blocks of outputs";
  const auto convert = [=](bool back, auto* from, auto* to) {
    for (size_t c = 0; c < formats.size(); ++c) {
      const auto& function = back ? formats[c].to_canonical : formats[c].from_canonical;
      const int64_t own = own_elements(formats[c], canonical[c]);
      if (function) {
        function(from, to);
      } else {
        std::copy_n(from, canonical[c], to);
      }
      from += back ? own : canonical[c];
      to += back ? canonical[c] : own;
    }
  };
  joined.from_canonical = [=](const float* from, float* to) { convert(false, from, to); };
  joined.to_canonical = [=](const float* from, float* to) { convert(true, from, to); };
  return joined;
}

// Scratch memory: the kernel's; a block's outputs or their gradients, dense; each block's addend of the
// input's gradient.
class ChannelBlockedKernel : public Kernel {
 public:
  ChannelBlockedKernel(const Task& task, const std::vector<Task>& tasks,
                       std::vector<std::unique_ptr<Kernel>> kernels)
      : kernels_(std::move(kernels)),
        rows_(task.local_output(0)[0]),
        columns_(task.local_output(0)[1]),
        inputs_(task.local_input(0).size()) {
    for (const Task& part : tasks) widths_.push_back(part.local_output(0)[1]);
    const int parameters = static_cast<int>(task.parameter_gradients.size());
    for (int p = 0; p < parameters; ++p) {
      std::vector<ParameterFormat> formats;
      std::vector<int64_t> canonical, own;
      for (size_t c = 0; c < tasks.size(); ++c) {
        formats.push_back(kernels_[c]->parameter_format(p));
        canonical.push_back(tasks[c].parameter_box(0, p).shape().size());
        own.push_back(formats[c].elements > 0 ? formats[c].elements : canonical[c]);
      }
      formats_.push_back(joined_format(formats, canonical));
      elements_.push_back(std::move(own));
    }
    for (const auto& kernel : kernels_) {
      kernel_scratch_ = std::max(kernel_scratch_, aligned(kernel->scratch_bytes().count));
      saved_.push_back(aligned(kernel->saved_bytes().count));
      ensure(kernel->forward_sums() == 0 && kernel->backward_sums() == 0,
             "an inner product sums no statistics");
    }
  }

  std::string name() const override {
    return kernels_[0]->name() + " of " + std::to_string(kernels_.size()) + " of outputs";
  }

  void forward(const Arguments& arguments) override {
    each(arguments, [&](size_t c, const Arguments& part) {
      kernels_[c]->forward(part);
      copy_columns(c, part.outputs[0], arguments.outputs[0], false);
    });
  }
  void backward_weights(const Arguments& arguments) override {
    each(arguments, [&](size_t c, const Arguments& part) {
      copy_columns(c, part.output_gradients[0], arguments.output_gradients[0], true);
      kernels_[c]->backward_weights(part);
    });
  }
  void backward(const Arguments& arguments) override {
    if (!arguments.input_gradients[0]) return;
    std::vector<float*> addends;
    each(arguments, [&](size_t c, const Arguments& part) {
      copy_columns(c, part.output_gradients[0], arguments.output_gradients[0], true);
      kernels_[c]->backward(part);
      addends.push_back(part.input_gradients[0]);
    });
    const std::vector<int64_t> even(kernels_.size(), 1);
    sum_in_tree(even, [&](size_t i, size_t j) {
      parallel_ranges(inputs_, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) addends[i][k] += addends[j][k];
      });
    });
  }

  Bytes saved_bytes() const override {
    Bytes sum;
    for (int64_t bytes : saved_) sum += Bytes{bytes};
    return sum;
  }
  Bytes scratch_bytes() const override {
    return {kernel_scratch_ + block_bytes() + std::ssize(kernels_) * addend_bytes()};
  }
  BackwardReads backward_reads() const override {
    return {.inputs = kernels_[0]->backward_reads().inputs, .outputs = false};
  }
  ParameterFormat parameter_format(int p) const override { return formats_[static_cast<size_t>(p)]; }

 private:
  static int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }
  int64_t block_bytes() const { return aligned(rows_ * widths_[0] * int64_t{sizeof(float)}); }
  int64_t addend_bytes() const { return aligned(inputs_ * int64_t{sizeof(float)}); }

  // Runs work(block, its arguments) for each block in turn. Its outputs and their gradients are dense.
  template <typename Work>
  void each(const Arguments& arguments, Work&& work) {
    std::vector<int64_t> at(elements_.size(), 0);
    int64_t saved = 0;
    for (size_t c = 0; c < kernels_.size(); ++c) {
      Arguments part = arguments;
      auto* dense = reinterpret_cast<float*>(arguments.scratch + kernel_scratch_);
      for (auto* pointers : {&part.outputs, &part.output_gradients})
        for (float*& pointer : *pointers) pointer = dense;
      for (auto* pointers : {&part.parameters, &part.parameter_gradients})
        for (size_t p = 0; p < pointers->size(); ++p)
          if ((*pointers)[p]) (*pointers)[p] += at[p];
      if (c > 0)
        for (float*& pointer : part.input_gradients)
          if (pointer)
            pointer = reinterpret_cast<float*>(arguments.scratch + kernel_scratch_ + block_bytes() +
                                               static_cast<int64_t>(c) * addend_bytes());
      if (part.saved) part.saved += saved;
      work(c, part);
      for (size_t p = 0; p < at.size(); ++p) at[p] += elements_[p][c];
      saved += saved_[c];
    }
  }

  // Copies block c's columns out of `all`, or, else, into it.
  void copy_columns(size_t c, float* dense, float* all, bool out) const {
    const int64_t width = widths_[c];
    float* column = all + static_cast<int64_t>(c) * widths_[0];
    for (int64_t row = 0; row < rows_; ++row, dense += width, column += columns_)
      out ? std::copy_n(column, width, dense) : std::copy_n(dense, width, column);
  }

  std::vector<std::unique_ptr<Kernel>> kernels_;
  int64_t rows_, columns_, inputs_;
  std::vector<int64_t> widths_;                 // outputs of each block
  std::vector<ParameterFormat> formats_;        // per parameter
  std::vector<std::vector<int64_t>> elements_;  // per parameter and block, padding included
  std::vector<int64_t> saved_;                  // bytes, per block
  int64_t kernel_scratch_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_channel_blocked(const Task& task, const std::vector<Task>& tasks,
                                             std::vector<std::unique_ptr<Kernel>> kernels) {
  return std::make_unique<ChannelBlockedKernel>(task, tasks, std::move(kernels));
}

}  // namespace cortado
