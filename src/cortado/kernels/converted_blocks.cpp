#include "cortado/kernels/converted_blocks.h"

#include <algorithm>
#include <utility>

#include "cortado/kernels/arrays.h"
#include "cortado/kernels/forwarding_kernel.h"
#include "cortado/kernels/moved.h"
#include "cortado/layers/deconvolution.h"

namespace cortado {
namespace {

constexpr int64_t block_bytes = 4 << 20;  // of f32 copies: a share of the last-level cache
constexpr int64_t weights_of_block = 4;   // its copies are so many times the gradient of the weights, or more

// Of the f32 copies of a task's tensors.
int64_t copied_bytes(const Task& task) {
  int64_t elements = 0;
  for (int i = 0; i < std::ssize(task.input_boxes); ++i) elements += task.local_input(i).size();
  for (int k = 0; k < std::ssize(task.output_boxes); ++k) elements += task.local_output(k).size();
  return elements * int64_t{sizeof(float)};
}

int64_t weight_bytes(const Task& task) {
  return task.parameter_box(0, 0).shape().size() * int64_t{sizeof(float)};
}

// The task's first samples.
Task first_samples(const Task& task, int64_t count) {
  Task part = task;
  const auto shorten = [&](Box& box) { box[0].end = box[0].begin + count; };
  shorten(part.domain_box);
  for (Box& box : part.input_boxes) shorten(box);
  for (Box& box : part.output_boxes) shorten(box);
  return part;
}

// Scratch memory: of either kernel; then of the block's gradients of parameters.
class ConvertedInBlocks : public ForwardingKernel {
 public:
  ConvertedInBlocks(std::unique_ptr<Kernel> whole, std::unique_ptr<Kernel> block, const Task& task,
                    const Task& block_task)
      : ForwardingKernel(std::move(whole)),
        block_(std::move(block)),
        blocks_(task.output_boxes[0][0].size() / block_task.output_boxes[0][0].size()),
        input_bytes_(bytes_of(block_task.local_input(0).size(), task.input_type(0)).count),
        output_bytes_(bytes_of(block_task.local_output(0).size(), task.output_type(0)).count),
        sums_at_(aligned(std::max(inner().scratch_bytes().count, block_->scratch_bytes().count))) {
    for (int p = 0; p < std::ssize(task.parameter_gradients); ++p) {
      const int64_t padded = block_->parameter_format(p).elements;
      parameters_.push_back(padded > 0 ? padded : task.parameter_box(0, p).shape().size());
      sums_bytes_ += aligned(bytes_of(parameters_.back(), ElementType::f32).count);
    }
    sums_weights_ = weights_of_block * sums_bytes_ <= copied_bytes(block_task);
  }

  Bytes scratch_bytes() const override { return {sums_at_ + (sums_weights_ ? sums_bytes_ : 0)}; }

  void forward(const Arguments& a) override {
    for (int64_t b = 0; b < blocks_; ++b) block_->forward(of_block(a, b));
  }
  void backward(const Arguments& a) override {
    for (int64_t b = 0; b < blocks_; ++b) block_->backward(of_block(a, b));
  }
  void backward_weights(const Arguments& a) override {
    if (!sums_weights_) return inner().backward_weights(a);
    block_->backward_weights(of_block(a, 0));
    for (int64_t b = 1; b < blocks_; ++b) {
      Arguments part = of_block(a, b);
      auto* sums = a.scratch + sums_at_;
      for (size_t p = 0; p < parameters_.size(); ++p) {
        if (part.parameter_gradients[p]) part.parameter_gradients[p] = reinterpret_cast<float*>(sums);
        sums += aligned(bytes_of(parameters_[p], ElementType::f32).count);
      }
      block_->backward_weights(part);
      for (size_t p = 0; p < parameters_.size(); ++p)
        if (float* const gradient = a.parameter_gradients[p])
          arrays::add(gradient, gradient, part.parameter_gradients[p], parameters_[p]);
    }
  }

 private:
  Arguments of_block(const Arguments& a, int64_t index) const {
    Arguments part = a;
    const auto move = [&](auto& pointers, int64_t bytes) {
      for (auto& pointer : pointers) pointer = moved(pointer, index * bytes);
    };
    move(part.inputs, input_bytes_);
    move(part.input_gradients, input_bytes_);
    move(part.outputs, output_bytes_);
    move(part.output_gradients, output_bytes_);
    return part;
  }

  std::unique_ptr<Kernel> block_;
  int64_t blocks_, input_bytes_, output_bytes_, sums_at_;
  std::vector<int64_t> parameters_;  // elements
  int64_t sums_bytes_ = 0;
  bool sums_weights_ = false;
};

bool can_go_in_blocks(const Kernel& kernel) {
  return kernel.saved_bytes().count == 0 && kernel.forward_sums() == 0 && kernel.backward_sums() == 0;
}

}  // namespace

std::optional<Task> block_of_samples(const Task& task) {
  if (!convolution_options(task.layer()) || task.inputs.size() != 1) return std::nullopt;
  const int64_t samples = task.output_boxes[0][0].size();
  int64_t blocks = 1;
  while (blocks < samples && (samples % blocks != 0 || copied_bytes(task) > blocks * block_bytes)) ++blocks;
  if (blocks == 1) return std::nullopt;
  const Task block = first_samples(task, samples / blocks);
  const bool reads_more_weights = weight_bytes(task) > copied_bytes(block);
  return reads_more_weights ? std::nullopt : std::optional(block);
}

std::unique_ptr<Kernel> make_converted_in_blocks(std::unique_ptr<Kernel> whole, std::unique_ptr<Kernel> block,
                                                 const Task& task, const Task& block_task) {
  for (int p = 0; p < std::ssize(task.parameter_gradients); ++p)
    if (whole->parameter_format(p) != block->parameter_format(p)) return whole;
  if (!can_go_in_blocks(*whole) || !can_go_in_blocks(*block)) return whole;
  return std::make_unique<ConvertedInBlocks>(std::move(whole), std::move(block), task, block_task);
}

}  // namespace cortado
