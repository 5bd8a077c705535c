// GFLOP/s of each pass of the convolutions that matter, and their share of the FMA peak measured beside each,
// both in multiplications of the sum over windows. Several implementations run in turns.
// Usage: convolution_bench [IMPLEMENTATION,...] [PART OF A NAME] [REPETITIONS]
// (implicit-gemm, onednn, im2col-gemm, winograd, or winograd-any: also where it is slower)
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <memory>
#include <sstream>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/kernel.h"
#include "cortado/kernels/lowering/lowering.h"
#include "cortado/kernels/onednn/onednn.h"
#include "cortado/kernels/peak.h"
#include "cortado/kernels/winograd/winograd.h"
#include "cortado/layers/convolution.h"

namespace cortado {
namespace {

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Memory as the trainer has it: huge pages where the system gives them.
class Buffer {
 public:
  explicit Buffer(size_t elements) : bytes_((elements * sizeof(float) + page) / page * page) {
    data_ = static_cast<float*>(std::aligned_alloc(page, bytes_));
    madvise(data_, bytes_, MADV_HUGEPAGE);
    for (size_t i = 0; i < bytes_ / sizeof(float); ++i) data_[i] = static_cast<float>(i % 13) * 0.01f - 0.06f;
  }
  Buffer(const Buffer&) = delete;
  ~Buffer() { std::free(data_); }
  float* data() { return data_; }

 private:
  static constexpr size_t page = 2 << 20;
  size_t bytes_;
  float* data_;
};

struct Layer2d {
  const char* name;
  int64_t batch, channels, outputs, extent, kernel_h, kernel_w, stride, pad_h, pad_w;
};

constexpr Layer2d layers[] = {
    {"alexnet conv1", 64, 3, 64, 224, 11, 11, 4, 2, 2},
    {"alexnet conv2", 64, 64, 192, 27, 5, 5, 1, 2, 2},
    {"alexnet conv3", 64, 192, 384, 13, 3, 3, 1, 1, 1},
    {"alexnet conv4", 64, 384, 256, 13, 3, 3, 1, 1, 1},
    {"vgg conv1_1", 16, 3, 64, 224, 3, 3, 1, 1, 1},
    {"vgg conv1_2", 8, 64, 64, 224, 3, 3, 1, 1, 1},
    {"vgg conv2_1", 16, 64, 128, 112, 3, 3, 1, 1, 1},
    {"vgg conv2_2", 16, 128, 128, 112, 3, 3, 1, 1, 1},
    {"vgg conv3_1", 16, 128, 256, 56, 3, 3, 1, 1, 1},
    {"vgg conv3_2", 16, 256, 256, 56, 3, 3, 1, 1, 1},
    {"vgg conv4_1", 16, 256, 512, 28, 3, 3, 1, 1, 1},
    {"vgg conv4_2", 16, 512, 512, 28, 3, 3, 1, 1, 1},
    {"vgg conv5_1", 16, 512, 512, 14, 3, 3, 1, 1, 1},
    {"resnet 7x7/2", 16, 3, 64, 224, 7, 7, 2, 3, 3},
    {"resnet 64-256", 16, 64, 256, 56, 1, 1, 1, 0, 0},
    {"resnet 256-64", 16, 256, 64, 56, 1, 1, 1, 0, 0},
    {"resnet 3x3/2", 16, 128, 128, 56, 3, 3, 2, 1, 1},
    {"resnet 1x1/2", 16, 256, 512, 56, 1, 1, 2, 0, 0},
    {"resnet 1024-256", 16, 1024, 256, 14, 1, 1, 1, 0, 0},
    {"resnet 3x3 64", 16, 64, 64, 56, 3, 3, 1, 1, 1},
    {"resnet 3x3 128", 16, 128, 128, 28, 3, 3, 1, 1, 1},
    {"resnet 3x3 256", 16, 256, 256, 14, 3, 3, 1, 1, 1},
    {"resnet 3x3 512", 16, 512, 512, 7, 3, 3, 1, 1, 1},
    {"inception 1x7", 16, 192, 192, 17, 1, 7, 1, 0, 3},
    {"inception 5x5", 16, 48, 64, 35, 5, 5, 1, 2, 2},
    {"inception 3x3 32", 16, 32, 32, 149, 3, 3, 1, 0, 0},
    {"inception 3x3 64", 16, 32, 64, 147, 3, 3, 1, 1, 1},
    {"inception 3x3 80", 16, 80, 192, 73, 3, 3, 1, 0, 0},
    {"inception 3x3 96", 16, 96, 96, 35, 3, 3, 1, 1, 1},
    {"inception 3x3 8", 16, 448, 384, 8, 3, 3, 1, 1, 1},
    {"small 8", 16, 8, 8, 56, 3, 3, 1, 1, 1},
    {"small 8-32", 16, 8, 32, 56, 3, 3, 1, 1, 1},
    {"small 32-8", 16, 32, 8, 56, 3, 3, 1, 1, 1},
    {"small 16", 16, 16, 16, 56, 3, 3, 1, 1, 1},
    {"small 32", 16, 32, 32, 28, 3, 3, 1, 1, 1},
    {"small 128x14", 16, 128, 128, 14, 3, 3, 1, 1, 1},
    {"small 128x7", 16, 128, 128, 7, 3, 3, 1, 1, 1},
    {"small 256x4", 16, 256, 256, 4, 3, 3, 1, 1, 1},
    {"small 512x3", 16, 512, 512, 3, 3, 3, 1, 1, 1},
};

struct Contender {
  std::string name;
  KernelOffer (*make)(const Task&);
};

KernelOffer (*maker(const std::string& implementation))(const Task&) {
  if (implementation == "implicit-gemm") return make_implicit_gemm;
  if (implementation == "onednn") return make_onednn_convolution;
  if (implementation == "im2col-gemm") return make_im2col_gemm;
  if (implementation == "winograd") return make_winograd;
  if (implementation == "winograd-any") return make_winograd_of_any_size;
  return nullptr;
}

Task task_of(const Layer2d& layer) {
  ConvolutionOptions options;
  options.num_output = layer.outputs;
  options.kernel = {layer.kernel_h, layer.kernel_w};
  options.stride = {layer.stride};
  options.pad = {layer.pad_h, layer.pad_w};
  const Shape input{layer.batch, layer.channels, layer.extent, layer.extent};
  return whole_task(std::make_shared<Convolution>(options), Phase::train, {&input, 1}, 1);
}

// The contenders' kernels of a layer, and memory that all of them run on.
class Match {
 public:
  Match(const Task& task, const std::vector<Contender>& contenders)
      : x_(task.inputs[0].size()),
        y_(task.outputs[0].size()),
        dx_(task.inputs[0].size()),
        dy_(task.outputs[0].size()) {
    size_t elements = task.layer().parameters(task.inputs)[0].shape.size(), scratch = 0;
    for (const Contender& contender : contenders) {
      offers_.push_back(contender.make(task));
      const Kernel* kernel = offers_.back().kernel.get();
      if (!kernel) continue;
      elements = std::max<size_t>(elements, kernel->parameter_format(0).elements);
      scratch = std::max<size_t>(scratch, kernel->scratch_bytes().count);
    }
    for (size_t bytes : {elements, elements, size_t(task.outputs[0][1]), size_t(task.outputs[0][1])})
      parameters_.push_back(std::make_unique<Buffer>(bytes));
    scratch_ = std::make_unique<Buffer>(scratch / sizeof(float) + 1);
    arguments_.inputs = {x_.data()};
    arguments_.outputs = {y_.data()};
    arguments_.input_gradients = {dx_.data()};
    arguments_.output_gradients = {dy_.data()};
    arguments_.parameters = {parameters_[0]->data(), parameters_[2]->data()};
    arguments_.parameter_gradients = {parameters_[1]->data(), parameters_[3]->data()};
    arguments_.scratch = reinterpret_cast<std::byte*>(scratch_->data());
  }

  const KernelOffer& offer(size_t contender) const { return offers_[contender]; }

  // The best time of each contender, 0 where it refuses.
  std::vector<double> times(void (Kernel::*pass)(const Arguments&), int repetitions) {
    std::vector<double> best(offers_.size());
    for (int i = 0; i < repetitions; ++i)
      for (size_t c = 0; c < offers_.size(); ++c) {
        if (!offers_[c].kernel) continue;
        const double seconds = seconds_of([&] { (offers_[c].kernel.get()->*pass)(arguments_); });
        best[c] = i == 0 ? seconds : std::min(best[c], seconds);
      }
    return best;
  }

 private:
  std::vector<KernelOffer> offers_;
  Buffer x_, y_, dx_, dy_;
  std::vector<std::unique_ptr<Buffer>> parameters_;  // weight, its gradient, bias, its gradient
  std::unique_ptr<Buffer> scratch_;
  Arguments arguments_;
};

void measure(const Layer2d& layer, const std::vector<Contender>& contenders, int repetitions) {
  const Task task = task_of(layer);
  Match match(task, contenders);
  const double peak = measure_peak({0.1}) / 1e9;
  const double gflop = 2e-9 * task.outputs[0].size() * layer.channels * layer.kernel_h * layer.kernel_w;
  std::vector<std::string> lines(contenders.size());
  for (const auto& [pass, run] : {std::pair{"forward", &Kernel::forward},
                                  {"data", &Kernel::backward},
                                  {"weights", &Kernel::backward_weights}}) {
    const std::vector<double> times = match.times(run, repetitions);
    for (size_t c = 0; c < contenders.size(); ++c)
      lines[c] +=
          fmt::format("  {} {:6.1f} ({:3.0f} %)", pass, gflop / times[c], 100 * gflop / times[c] / peak);
  }
  for (size_t c = 0; c < contenders.size(); ++c) {
    const KernelOffer& offer = match.offer(c);
    fmt::print("{:<16} {:<13}{}\n", layer.name, contenders[c].name,
               offer.kernel ? lines[c] : "  refused: " + offer.refusal);
  }
  std::fflush(stdout);
}

}  // namespace
}  // namespace cortado

int main(int count, char** arguments) {
  std::stringstream names(count > 1 ? arguments[1] : "implicit-gemm");
  const std::string part = count > 2 ? arguments[2] : "";
  const int repetitions = count > 3 ? std::atoi(arguments[3]) : 5;
  std::vector<cortado::Contender> contenders;
  for (std::string name; std::getline(names, name, ',');) {
    contenders.push_back({name, cortado::maker(name)});
    if (contenders.back().make) continue;
    fmt::print(stderr, "convolution_bench: no implementation '{}'\n", name);
    return 2;
  }
  fmt::print("{} threads, peak {:.1f} GFLOP/s\n", cortado::compute_threads(), cortado::measure_peak() / 1e9);
  for (const auto& layer : cortado::layers)
    if (std::string(layer.name).find(part) != std::string::npos)
      cortado::measure(layer, contenders, repetitions);
}
