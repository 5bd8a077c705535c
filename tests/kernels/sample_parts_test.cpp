// oneDNN's passes over parts of the samples, on a ThreadTeam: the bits of the passes over all of them.
#include "cortado/base/compute_threads.h"
#include "cortado/base/thread_team.h"
#include "cortado/kernels/onednn/onednn.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/pointwise.h"

#include "tests/kernels/buffers.h"
#include "tests/kernels/native_task.h"
#include "tests/kernels/random_products.h"
#include "tests/kernels/windows.h"

namespace cortado::check {
namespace {

// What a kernel writes in a training step, tensor by tensor.
std::vector<std::vector<float>> step(const Task& task, Kernel& kernel) {
  TaskBuffers<float> buffers(task, kernel, TaskData<float>(task, {}));
  kernel.forward(buffers.arguments());
  kernel.backward_weights(buffers.arguments());
  kernel.backward(buffers.arguments());
  std::vector<std::vector<float>> written;
  for (const auto* tensors : {&buffers.outputs, &buffers.input_gradients, &buffers.parameter_gradients})
    for (const Buffer<float>& tensor : *tensors) written.push_back(tensor.values());
  return written;
}

testing::AssertionResult same_on_a_team(const Task& task, Kernel& kernel) {
  const ComputeThreads threads(2);
  const auto expected = step(task, kernel);
  ThreadTeam team(2);
  const ThreadTeam::Scope loops(&team);
  const auto actual = step(task, kernel);
  for (size_t t = 0; t < expected.size(); ++t)
    if (std::memcmp(actual[t].data(), expected[t].data(), expected[t].size() * sizeof(float)) != 0)
      return testing::AssertionFailure()
             << kernel.name() << " of " << task.inputs[0].text() << ", tensor " << t;
  return testing::AssertionSuccess();
}

TEST(SampleParts, SumAsTheWhole) {
  for (const int64_t samples : {2, 4, 6, 7, 16})
    for (const Window& window : windows)
      for (const int64_t inputs : {3, 16, 64, 200})
        for (const int64_t outputs : {5, 32, 144}) {
          auto layer = std::make_shared<Convolution>(convolution(outputs, window));
          Task task = chain_task({layer, relu()}, {samples, inputs, 14, 13});
          task.canonical_parameters = true;
          const KernelOffer offer = make_onednn_convolution(task);
          ASSERT_TRUE(offer.kernel) << offer.refusal;
          EXPECT_TRUE(same_on_a_team(task, *offer.kernel)) << outputs << " outputs";
        }
}

TEST(SampleParts, SumAsTheWholeOfRandomProducts) {
  for (int number = 0; number < 300 && !testing::Test::HasFailure(); ++number) {
    check::Draw draw(static_cast<unsigned>(number));
    Task task = random_products(draw, number % 2 == 0);
    task.canonical_parameters = true;
    const bool images = task.layer().type() == "Convolution";
    const KernelOffer offer = images ? make_onednn_convolution(task) : make_onednn_deconvolution(task);
    if (!offer.kernel) continue;
    EXPECT_TRUE(same_on_a_team(task, *offer.kernel)) << text_of_products(task, number);
  }
}

}  // namespace
}  // namespace cortado::check
