// What cuDNN and cuBLASLt do without a device: tensors, operations and graphs of random convolutions, and
// plans for a GPU that is described. Builds with both libraries have this test; nothing of it runs on a GPU.
#include "cortado/kernels/gpu_libraries.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>

#include "cortado/kernels/cublaslt/product.h"
#include "cortado/kernels/cudnn/plan.h"
#include "cortado/kernels/cudnn/problem.h"
#include "cortado/layers/deconvolution.h"
#include "cortado/layers/pointwise.h"

#include "tests/kernels/cut_cases.h"
#include "tests/kernels/native_task.h"

namespace cortado::check {
namespace {

using cudnn::GraphOf;
using cudnn::Pass;

// An H100 as cuDNN describes it (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION).
const char* const a_gpu =
    R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"multiProcessorCount":132,)"
    R"("warpSize":32,"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,"reservedSharedMemoryPerBlock":1024,)"
    R"("maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,)"
    R"("isTccDriver":0,"supportCoopLaunch":1,"totalGlobalMem":85000000000,"smClockRateKHz":1980000,"memClockRateKHz":2619000,)"
    R"("l2CacheSize":52428800,"cudaDeviceId":0,"deviceVer":900,"driverVer":13000,"deviceName":"NVIDIA H100 80GB HBM3"})";

// The graphs of all passes of a problem, as the kernel asks for them.
std::vector<GraphOf> graphs_of(const cudnn::Problem& problem) {
  const cudnn::Convolution& c = problem.convolution;
  std::vector<GraphOf> all{{c, Pass::forward}, {c, Pass::backward_data}, {c, Pass::backward_weights}};
  if (problem.bias || problem.relu) all.push_back({c, Pass::forward, problem.bias, problem.relu});
  return all;
}

cudnn::Problem problem_of(const Task& task, bool tf32 = false) {
  const auto* spreads = dynamic_cast<const Deconvolution*>(&task.layer());
  const ConvolutionOptions& options =
      spreads ? spreads->options() : dynamic_cast<const Convolution&>(task.layer()).options();
  return cudnn::problem_of(task, options, spreads != nullptr, tf32);
}

Task convolution(ConvolutionOptions options, const Shape& image, ElementType type = ElementType::f32,
                 bool relu = false) {
  std::vector<LayerPtr> layers{std::make_shared<Convolution>(std::move(options))};
  if (relu) layers.push_back(std::make_shared<Pointwise>(ReluOptions{}));
  Task task = chain_task(std::move(layers), image);
  task.input_types = task.output_types = {type};
  return task;
}

TEST(CudnnGraphs, AreMadeForRandomConvolutionsAndParts) {
  int made = 0;
  std::map<std::string, int> refused;
  for (int kind = 0; kind < cut_kinds(); ++kind) {
    std::mt19937_64 generator(4200 + static_cast<uint64_t>(kind));
    for (int number = 0; number < 20; ++number) {
      const CutCase cut = random_cut_case(kind, generator);
      if (cut.layers[0]->type() != "Convolution" && cut.layers[0]->type() != "Deconvolution") break;
      for (Task task : device_tasks(cut, whole_task(cut))) {
        for (const ElementType type : {ElementType::f32, ElementType::bf16}) {
          task.input_types = task.output_types = {type};
          const cudnn::Problem problem = problem_of(task);
          if (!problem.refusal.empty()) {
            ++refused[problem.refusal];
            continue;
          }
          for (const GraphOf& of : graphs_of(problem)) {
            try {
              cudnn::graph(of, nullptr);
              ++made;
            } catch (const cudnn::Refusal& refusal) {
              ADD_FAILURE() << of.text() << ": " << refusal.what();
              return;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(made, 100);
  for (const auto& [reason, count] : refused) RecordProperty(reason, count);
}

// The sizes must agree: cuDNN finds windows that padding does not give.
TEST(CudnnGraphs, RefuseWindowsThatDoNotFit) {
  cudnn::Problem problem =
      problem_of(convolution({.num_output = 8, .kernel = {3}, .pad = {1}}, {2, 4, 9, 9}));
  problem.convolution.before[0] = 0;
  EXPECT_THROW(cudnn::graph({problem.convolution, Pass::forward}, nullptr), cudnn::Refusal);
}

TEST(CudnnProblem, PadsAfterTheImageAsMuchAsBeforeItWhereItCan) {
  const auto padding = [](const Task& task) {
    const cudnn::Problem problem = problem_of(task);
    EXPECT_EQ(problem.refusal, "");
    return std::pair(problem.convolution.before, problem.convolution.after);
  };
  using Both = std::pair<std::vector<int64_t>, std::vector<int64_t>>;
  const ConvolutionOptions stem{.num_output = 8, .kernel = {7}, .stride = {2}, .pad = {3}};
  EXPECT_EQ(padding(convolution(stem, {2, 3, 224, 224})), (Both{{3, 3}, {3, 3}}));
  Task part = convolution({.num_output = 8, .kernel = {3}, .pad = {1}}, {2, 4, 8, 8});
  part.output_boxes[0][2] = {0, 4};
  part.input_boxes[0][2] = {0, 5};  // a halo in place of the padding
  EXPECT_EQ(padding(part), (Both{{1, 1}, {0, 1}}));
}

TEST(CudnnProblem, SaysWhatItRefuses) {
  Task narrow = convolution({.num_output = 8, .kernel = {3}}, {2, 4, 8, 8}, ElementType::bf16);
  narrow.input_types = {ElementType::f32};
  EXPECT_EQ(problem_of(narrow).refusal, "an input in f32 that wants a gradient");
  narrow.input_gradients = {false};
  EXPECT_EQ(problem_of(narrow).refusal, "");
  EXPECT_TRUE(problem_of(narrow).narrows_source);
  narrow.input_types = {ElementType::bf16};
  narrow.output_types = {ElementType::f32};
  EXPECT_EQ(problem_of(narrow).refusal, "an output that is not bf16");
  Task across = convolution({.num_output = 8, .group = 2, .kernel = {3}}, {2, 4, 8, 8});
  across.output_boxes[0][1] = {2, 6};
  EXPECT_EQ(problem_of(across).refusal, "channels cut across groups");
}

// Every graph that cuDNN plans without the driver has a plan whose rounding and workspace are allowed: all of
// f32 but those with a ReLU, and of bf16 single operations.
TEST(CudnnPlans, AreMadeForAGpuThatIsNotHere) {
  const cudnn::PlanFor there{.properties = cudnn::device_properties(a_gpu)};
  const Shape image{8, 64, 28, 28};
  Task halo = convolution({.num_output = 64, .kernel = {3}, .pad = {1}}, image);
  halo.output_boxes[0][2] = {0, 14};
  halo.input_boxes[0][2] = {0, 15};
  const Task tasks[] = {
      halo, convolution({.num_output = 64, .kernel = {3}, .pad = {1}}, image),
      convolution({.num_output = 64, .group = 4, .kernel = {3}, .stride = {2}, .pad = {1}}, image),
      convolution({.num_output = 16, .kernel = {3}, .dilation = {2}}, {2, 16, 9, 12, 12}),
      convolution({.num_output = 64, .kernel = {3}, .pad = {1}}, image, ElementType::bf16)};
  for (const Task& task : tasks) {
    for (const GraphOf& of : graphs_of(problem_of(task))) {
      const bool narrow = of.convolution.type == ElementType::bf16;
      if (narrow && of.bias) continue;
      const std::vector<cudnn::Plan> plans = cudnn::plans(of, there, 4);
      EXPECT_FALSE(plans.empty()) << of.text();
      for (const cudnn::Plan& plan : plans) EXPECT_LE(plan.workspace, cudnn::most_workspace);
    }
  }
}

TEST(CudnnPlans, RoundToTf32OnlyWhereTheyMay) {
  const cudnn::PlanFor there{.properties = cudnn::device_properties(a_gpu)};
  const Task task = convolution({.num_output = 64, .kernel = {3}, .pad = {1}}, {8, 64, 28, 28});
  const auto engines = [&](bool tf32) {
    std::vector<int64_t> found;
    const GraphOf of{problem_of(task, tf32).convolution, Pass::forward};
    for (const cudnn::Plan& plan : cudnn::plans(of, there, 64)) found.push_back(plan.engine);
    std::ranges::sort(found);
    return found;
  };
  const std::vector<int64_t> exact = engines(false), fast = engines(true);
  EXPECT_LT(exact.size(), fast.size());
  EXPECT_TRUE(std::ranges::includes(fast, exact));
}

// Engine 1 read memory that is not its own for such a part, and ended the process on an H100.
TEST(CudnnPlans, LeaveOutAnEngineForGradientsOfWeightsUnderUnequalPadding) {
  const cudnn::PlanFor there{.properties = cudnn::device_properties(a_gpu)};
  const auto engines = [&](int64_t after) {
    const int64_t rows = 15, windows = rows + 2 + after - 4;
    cudnn::Convolution c{.x = {256, 96, rows, 27}, .w = {256, 48, 5, 5}, .y = {256, 256, windows, 27}};
    c.stride = c.dilation = {1, 1};
    c.before = {2, 2};
    c.after = {after, 2};
    std::vector<int64_t> found;
    for (const cudnn::Plan& plan : cudnn::plans({c, Pass::backward_weights}, there, 64))
      found.push_back(plan.engine);
    return found;
  };
  const std::vector<int64_t> equal = engines(2), unequal = engines(0);
  EXPECT_EQ(std::ranges::count(equal, 1), 1);
  EXPECT_EQ(std::ranges::count(unequal, 1), 0);
  EXPECT_FALSE(unequal.empty());
}

TEST(CublasltProducts, AreDescribedWithoutADevice) {
  for (const ElementType type : {ElementType::f32, ElementType::bf16})
    for (const bool transpose : {false, true})
      for (const bool bias : {false, true})
        EXPECT_NO_THROW(cublaslt::Product({.m = 30,
                                           .n = 8,
                                           .k = 50,
                                           .transpose_a = transpose,
                                           .factors = type,
                                           .result = type,
                                           .bias = bias}));
}

// Here, where there is no GPU; where there is one the tests of kernels run on it (scripts/test_gpu.sh).
TEST(GpuLibraries, RefuseWhereThereIsNoGpu) {
  const Task task = convolution({.num_output = 8, .kernel = {3}}, {2, 4, 8, 8});
  const KernelOffer offer = make_cudnn_convolution(task);
  EXPECT_NE(offer.kernel == nullptr, offer.refusal.empty());
  EXPECT_GE(std::stoi(cudnn_version()), 9);
  EXPECT_GE(std::stoi(cublaslt_version()), 12);
}

}  // namespace
}  // namespace cortado::check
