// On a ThreadTeam, beside others, kernels write the bits that they write on OpenMP's threads.
#include <atomic>
#include <cstring>

#include "cortado/base/compute_threads.h"
#include "cortado/base/error.h"
#include "cortado/base/parallel_for.h"
#include "cortado/base/thread_team.h"
#include "cortado/kernels/select.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/pointwise.h"

#include "tests/kernels/buffers.h"
#include "tests/kernels/cut_cases.h"
#include "tests/kernels/native_task.h"
#include "tests/kernels/random_products.h"
#include "tests/kernels/windows.h"

namespace cortado::check {
namespace {

// What the kernel of that name writes in a step, tensor by tensor.
std::vector<std::vector<float>> step(const Task& task, const CheckOptions& data, const std::string& kernels) {
  const auto kernel = select_kernel(task, kernels).kernel;
  TaskBuffers<float> buffers(task, *kernel, TaskData<float>(task, data));
  kernel->forward(buffers.arguments());
  if (task.has_backward()) {
    kernel->backward_weights(buffers.arguments());
    kernel->backward(buffers.arguments());
  }
  std::vector<std::vector<float>> written;
  for (const auto* tensors : {&buffers.outputs, &buffers.input_gradients, &buffers.parameter_gradients})
    for (const Buffer<float>& tensor : *tensors) written.push_back(tensor.values());
  return written;
}

testing::AssertionResult same_on_a_team(Task task, const CheckOptions& data, const std::string& kernels,
                                        int threads) {
  task.canonical_parameters = true;
  const ComputeThreads of_both(threads);
  const auto expected = step(task, data, kernels);
  ThreadTeam team(threads);
  const ThreadTeam::Scope loops(&team);
  const auto actual = step(task, data, kernels);
  for (size_t t = 0; t < expected.size(); ++t)
    if (std::memcmp(actual[t].data(), expected[t].data(), expected[t].size() * sizeof(float)) != 0)
      return testing::AssertionFailure() << "tensor " << t << " differs, on " << threads << " threads";
  return testing::AssertionSuccess();
}

class TeamBits : public testing::TestWithParam<int> {};

TEST_P(TeamBits, AreThoseOfOpenMp) {
  std::mt19937_64 generator(static_cast<uint64_t>(GetParam()) + 277);
  for (int number = 0; number < 20 && !HasFailure(); ++number) {
    const CutCase cut = random_cut_case(GetParam(), generator);
    const Task task = whole_task(cut);
    for (const char* kernels :
         {"", "onednn", "implicit-gemm", "winograd", "winograd-4x4", "lowering-1", "reference"}) {
      try {
        select_kernel(task, kernels);
      } catch (const UserError&) {
        continue;  // they do not know the layer
      }
      EXPECT_TRUE(same_on_a_team(task, cut.data, kernels, 2 + number % 2))
          << cut.text() << "\nkernels '" << kernels << "', case " << number;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, TeamBits, testing::Range(0, cut_kinds()));

// oneDNN's passes run in parts of the samples.
TEST(TeamBitsOfOnednn, AreThoseOfAllSamples) {
  for (const int64_t samples : {2, 6, 7, 16})
    for (const Window& window : windows)
      for (const int64_t inputs : {3, 16, 64, 200})
        for (const int64_t outputs : {5, 32, 144}) {
          auto layer = std::make_shared<Convolution>(convolution(outputs, window));
          const Task task = chain_task({layer, relu()}, {samples, inputs, 14, 13});
          EXPECT_TRUE(same_on_a_team(task, {}, "onednn", 2)) << task.inputs[0].text() << ", " << outputs;
        }
}

// Within a part of a loop a kernel has one thread, on the caller's, too.
TEST(TeamBitsOfOnednn, AreTheSameWithinPartsOfALoop) {
  auto layer = std::make_shared<Convolution>(convolution(32, {}));
  Task task = chain_task({layer, relu()}, {8, 16, 9, 9});
  task.canonical_parameters = true;
  std::vector<std::vector<float>> expected;
  {
    const ComputeThreads one(1);
    expected = step(task, {}, "onednn");
  }
  const ComputeThreads threads(2);
  ThreadTeam team(2);
  const ThreadTeam::Scope loops(&team);
  std::atomic<int> same{0};
  parallel_for(8, [&](int64_t) { same += step(task, {}, "onednn") == expected; });
  EXPECT_EQ(same, 8);
}

TEST(TeamBitsOfOnednn, AreThoseOfAllSamplesOfRandomProducts) {
  for (int number = 0; number < 300 && !testing::Test::HasFailure(); ++number) {
    check::Draw draw(static_cast<unsigned>(number));
    const Task task = random_products(draw, number % 2 == 0);
    try {
      EXPECT_TRUE(same_on_a_team(task, {}, "onednn", 2)) << text_of_products(task, number);
    } catch (const UserError&) {
      continue;  // oneDNN does not take it
    }
  }
}

}  // namespace
}  // namespace cortado::check
