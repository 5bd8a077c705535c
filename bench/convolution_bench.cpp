// GFLOP/s of each pass of the convolutions that matter, and their share of the FMA peak measured in the same
// run. Usage: convolution_bench [implicit-gemm|onednn|im2col-gemm] [PART OF A NAME] [REPETITIONS]
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <string>
#include <sys/mman.h>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/kernel.h"
#include "cortado/kernels/lowering/lowering.h"
#include "cortado/kernels/onednn/onednn.h"
#include "cortado/kernels/peak.h"
#include "cortado/layers/convolution.h"

namespace cortado {
namespace {

double best_seconds(int repetitions, const std::function<void()>& work) {
  double best = 1e9;
  for (int i = 0; i < repetitions; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
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
    {"alexnet conv1", 64, 3, 64, 224, 11, 11, 4, 2, 2},    {"alexnet conv2", 64, 64, 192, 27, 5, 5, 1, 2, 2},
    {"alexnet conv3", 64, 192, 384, 13, 3, 3, 1, 1, 1},    {"alexnet conv4", 64, 384, 256, 13, 3, 3, 1, 1, 1},
    {"vgg conv1_1", 16, 3, 64, 224, 3, 3, 1, 1, 1},        {"vgg conv1_2", 8, 64, 64, 224, 3, 3, 1, 1, 1},
    {"vgg conv2_1", 16, 64, 128, 112, 3, 3, 1, 1, 1},      {"vgg conv3_2", 16, 256, 256, 56, 3, 3, 1, 1, 1},
    {"vgg conv4_2", 16, 512, 512, 28, 3, 3, 1, 1, 1},      {"vgg conv5_1", 16, 512, 512, 14, 3, 3, 1, 1, 1},
    {"resnet 7x7/2", 16, 3, 64, 224, 7, 7, 2, 3, 3},       {"resnet 3x3 64", 16, 64, 64, 56, 3, 3, 1, 1, 1},
    {"resnet 64-256", 16, 64, 256, 56, 1, 1, 1, 0, 0},     {"resnet 256-64", 16, 256, 64, 56, 1, 1, 1, 0, 0},
    {"resnet 3x3/2", 16, 128, 128, 56, 3, 3, 2, 1, 1},     {"resnet 1x1/2", 16, 256, 512, 56, 1, 1, 2, 0, 0},
    {"resnet 1024-256", 16, 1024, 256, 14, 1, 1, 1, 0, 0}, {"resnet 3x3 512", 16, 512, 512, 7, 3, 3, 1, 1, 1},
    {"inception 1x7", 16, 192, 192, 17, 1, 7, 1, 0, 3},    {"inception 5x5", 16, 48, 64, 35, 5, 5, 1, 2, 2},
};

void measure(const Layer2d& layer, KernelOffer (*make)(const Task&), int repetitions, double peak) {
  ConvolutionOptions options;
  options.num_output = layer.outputs;
  options.kernel = {layer.kernel_h, layer.kernel_w};
  options.stride = {layer.stride};
  options.pad = {layer.pad_h, layer.pad_w};
  const Shape input{layer.batch, layer.channels, layer.extent, layer.extent};
  const Task task = whole_task(std::make_shared<Convolution>(options), Phase::train, {&input, 1}, 1);
  const KernelOffer offer = make(task);
  if (!offer.kernel) return fmt::print("{:<16} refused: {}\n", layer.name, offer.refusal);
  const size_t elements = std::max<int64_t>(offer.kernel->parameter_format(0).elements,
                                            task.layer().parameters(task.inputs)[0].shape.size());
  Buffer x(input.size()), y(task.outputs[0].size()), dx(input.size()), dy(task.outputs[0].size());
  Buffer weight(elements), bias(layer.outputs), weight_gradient(elements), bias_gradient(layer.outputs);
  Buffer scratch(offer.kernel->scratch_bytes().count / sizeof(float) + 1);
  Arguments a;
  a.inputs = {x.data()};
  a.outputs = {y.data()};
  a.input_gradients = {dx.data()};
  a.output_gradients = {dy.data()};
  a.parameters = {weight.data(), bias.data()};
  a.parameter_gradients = {weight_gradient.data(), bias_gradient.data()};
  a.scratch = reinterpret_cast<std::byte*>(scratch.data());
  const double gflop = 2e-9 * task.outputs[0].size() * layer.channels * layer.kernel_h * layer.kernel_w;
  fmt::print("{:<16}", layer.name);
  for (const auto& [pass, run] : {std::pair{"forward", &Kernel::forward},
                                  {"data", &Kernel::backward},
                                  {"weights", &Kernel::backward_weights}}) {
    const double rate = gflop / best_seconds(repetitions, [&, run = run] { ((*offer.kernel).*run)(a); });
    fmt::print("  {} {:6.1f} ({:3.0f} %)", pass, rate, 100 * rate / peak);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

KernelOffer (*maker(const std::string& implementation))(const Task&) {
  if (implementation == "implicit-gemm") return make_implicit_gemm;
  if (implementation == "onednn") return make_onednn_convolution;
  if (implementation == "im2col-gemm") return make_im2col_gemm;
  return nullptr;
}

}  // namespace
}  // namespace cortado

int main(int count, char** arguments) {
  const std::string implementation = count > 1 ? arguments[1] : "implicit-gemm",
                    part = count > 2 ? arguments[2] : "";
  const int repetitions = count > 3 ? std::atoi(arguments[3]) : 5;
  const auto make = cortado::maker(implementation);
  if (!make) {
    fmt::print(stderr, "convolution_bench: no implementation '{}'\n", implementation);
    return 2;
  }
  const double peak = cortado::measure_peak() / 1e9;
  fmt::print("{}, {} threads, peak {:.1f} GFLOP/s\n", implementation, cortado::compute_threads(), peak);
  for (const auto& layer : cortado::layers)
    if (std::string(layer.name).find(part) != std::string::npos)
      cortado::measure(layer, make, repetitions, peak);
}
