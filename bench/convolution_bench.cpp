// GFLOP/s of each pass of the convolutions that matter, and their share of the FMA peak measured beside each,
// both in multiplications of the sum over windows. Several implementations run in turns.
// Usage: convolution_bench [IMPLEMENTATION,...] [PART OF A NAME] [REPETITIONS]
// (implicit-gemm, onednn, depthwise, narrow-groups, lowering-1, -2, -3, winograd, winograd-4x4, winograd-5x5,
// winograd-4x4-of-5x5; winograd-any and so on: also where they are slower)
#include <cstdlib>
#include <fmt/format.h>
#include <sstream>
#include <string>
#include <vector>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/kernel.h"
#include "cortado/kernels/lowering/implicit_gemm.h"
#include "cortado/kernels/lowering/make_lowering.h"
#include "cortado/kernels/native/narrow_groups.h"
#include "cortado/kernels/onednn/onednn.h"
#include "cortado/kernels/peak.h"
#include "cortado/kernels/winograd/winograd.h"
#include "cortado/layers/convolution.h"

#include "bench/match.h"

namespace cortado {
namespace {

struct Layer2d {
  const char* name;
  int64_t batch, channels, outputs, extent, kernel_h, kernel_w, stride, pad_h, pad_w, group = 1;
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
    {"mobile 32-16", 16, 32, 16, 112, 1, 1, 1, 0, 0},
    {"mobile 16-96", 16, 16, 96, 112, 1, 1, 1, 0, 0},
    {"mobile 96-24", 16, 96, 24, 56, 1, 1, 1, 0, 0},
    {"mobile 24-144", 16, 24, 144, 56, 1, 1, 1, 0, 0},
    {"mobile 144-32", 16, 144, 32, 28, 1, 1, 1, 0, 0},
    {"mobile 32-192", 16, 32, 192, 28, 1, 1, 1, 0, 0},
    {"mobile 64-384", 16, 64, 384, 14, 1, 1, 1, 0, 0},
    {"mobile 384-96", 16, 384, 96, 14, 1, 1, 1, 0, 0},
    {"mobile 576-160", 16, 576, 160, 7, 1, 1, 1, 0, 0},
    {"mobile 160-960", 16, 160, 960, 7, 1, 1, 1, 0, 0},
    {"mobile 320-1280", 16, 320, 1280, 7, 1, 1, 1, 0, 0},
    {"groups of 4", 16, 128, 128, 56, 3, 3, 1, 1, 1, 32},
    {"groups of 8/2", 16, 256, 256, 56, 3, 3, 2, 1, 1, 32},
    {"groups of 8", 16, 256, 256, 28, 3, 3, 1, 1, 1, 32},
    {"depthwise 32", 16, 32, 32, 112, 3, 3, 1, 1, 1, 32},
    {"depthwise 96/2", 16, 96, 96, 112, 3, 3, 2, 1, 1, 96},
    {"depthwise 144", 16, 144, 144, 56, 3, 3, 1, 1, 1, 144},
    {"depthwise 192/2", 16, 192, 192, 28, 3, 3, 2, 1, 1, 192},
    {"depthwise 384", 16, 384, 384, 14, 3, 3, 1, 1, 1, 384},
    {"depthwise 960", 16, 960, 960, 7, 3, 3, 1, 1, 1, 960},
    {"depthwise 5x5 240", 16, 240, 240, 28, 5, 5, 1, 2, 2, 240},
    {"depthwise 5x5 672", 16, 672, 672, 14, 5, 5, 1, 2, 2, 672},
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

template <lowering::LoweringType type>
KernelOffer make_lowering_of(const Task& task) {
  return make_lowering(task, type);
}

KernelOffer (*maker(const std::string& implementation))(const Task&) {
  if (implementation == "implicit-gemm") return make_implicit_gemm;
  if (implementation == "onednn") return make_onednn_convolution;
  if (implementation == "depthwise") return make_native_depthwise;
  if (implementation == "narrow-groups") return make_native_narrow_groups;
  if (implementation == "lowering-1") return make_lowering_of<lowering::LoweringType::one>;
  if (implementation == "lowering-2") return make_lowering_of<lowering::LoweringType::two>;
  if (implementation == "lowering-3") return make_lowering_of<lowering::LoweringType::three>;
  if (implementation == "winograd") return make_winograd;
  if (implementation == "winograd-4x4") return make_winograd_4x4;
  if (implementation == "winograd-5x5") return make_winograd_5x5;
  if (implementation == "winograd-5x5-any") return make_winograd_5x5_of_any_size;
  if (implementation == "winograd-any") return make_winograd_of_any_size;
  if (implementation == "winograd-4x4-any") return make_winograd_4x4_of_any_size;
  if (implementation == "winograd-4x4-of-5x5") return make_winograd_4x4_of_5x5;
  if (implementation == "winograd-4x4-of-5x5-any") return make_winograd_4x4_of_5x5_of_any_size;
  return nullptr;
}

Task task_of(const Layer2d& layer) {
  ConvolutionOptions options;
  options.num_output = layer.outputs;
  options.group = layer.group;
  options.kernel = {layer.kernel_h, layer.kernel_w};
  options.stride = {layer.stride};
  options.pad = {layer.pad_h, layer.pad_w};
  const Shape input{layer.batch, layer.channels, layer.extent, layer.extent};
  return whole_task(std::make_shared<Convolution>(options), Phase::train, {&input, 1}, 1);
}

void measure(const Layer2d& layer, const std::vector<Contender>& contenders, int repetitions) {
  const Task task = task_of(layer);
  std::vector<KernelOffer> offers;
  for (const Contender& contender : contenders) offers.push_back(contender.make(task));
  Match match(task, std::move(offers));
  const double peak = measure_peak({0.1}) / 1e9;
  const double gflop =
      2e-9 * task.outputs[0].size() * layer.channels / layer.group * layer.kernel_h * layer.kernel_w;
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
