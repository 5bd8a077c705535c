// Convolution, Deconvolution and InnerProduct as matrix products, against the naive reference: random shapes
// on small integers (bitwise) and on reals.
#include <atomic>
#include <cblas.h>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <thread>

#include "cortado/base/compute_threads.h"
#include "cortado/kernels/lowering/implicit_gemm.h"
#include "cortado/kernels/lowering/make_lowering.h"
#include "cortado/kernels/lowering/partitions.h"
#include "cortado/kernels/native/simd.h"
#include "cortado/layers/deconvolution.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/pointwise.h"

#include "tests/kernels/check.h"
#include "tests/kernels/draw.h"
#include "tests/kernels/windows.h"

namespace cortado {
namespace {

using check::DataKind;
using check::matches_reference;
using lowering::Blas;
using lowering::LoweringOptions;
using lowering::LoweringType;

// A random task and how to print it when it fails.
struct Case {
  Task task;
  std::string text;
};

using check::Draw;

std::string list(const std::vector<int64_t>& values) { return fmt::format("[{}]", fmt::join(values, ",")); }

std::string text_of(const ConvolutionOptions& o, const Shape& input, const Task& task) {
  return fmt::format("{} {} to {} kernel {} stride {} pad {} dilation {} group {} bias {} chain {} box {}",
                     task.layer().type(), input.text(), o.num_output, list(o.kernel), list(o.stride),
                     list(o.pad), list(o.dilation), o.group, o.bias_term, task.layers.size(),
                     task.output_boxes[0].text());
}

void maybe_rectify(Draw& draw, Task& task) {
  if (!draw.chance(40)) return;
  task.layers.push_back(std::make_shared<Pointwise>(ReluOptions{draw.chance(50) ? 0.0 : 0.5}));
}

// Sometimes only some gradients are wanted: a first layer, or frozen parameters.
void maybe_freeze(Draw& draw, Task& task) {
  if (draw.chance(15)) task.input_gradients[0] = false;
  if (draw.chance(15)) task.parameter_gradients.assign(task.parameter_gradients.size(), false);
  if (draw.chance(10) && !task.parameter_gradients.empty()) task.parameter_gradients[0] = false;
}

ConvolutionOptions random_options(Draw& draw, int axes) {
  ConvolutionOptions options;
  options.group = draw.chance(25) ? draw(2, 4) : 1;
  options.num_output = options.group * (draw.chance(30) ? draw(15, 40) : draw(1, 20));
  options.bias_term = draw.chance(70);
  for (int i = 0; i < axes; ++i) {
    options.kernel.push_back(draw(1, axes == 3 ? 3 : 5));
    options.stride.push_back(draw.chance(50) ? 1 : draw(2, 4));
    options.dilation.push_back(draw.chance(75) ? 1 : draw(2, 3));
    options.pad.push_back(draw(0, 2));
  }
  return options;
}

// Cuts the output along samples and space and gives the input box that part needs.
void maybe_cut(Draw& draw, Task& task) {
  if (!draw.chance(40)) return;
  Box& box = task.output_boxes[0];
  for (int axis = 0; axis < box.rank(); ++axis) {
    if (axis == 1) continue;
    const int64_t extent = task.outputs[0][axis], begin = draw(0, extent - 1);
    box[axis] = {begin, draw(begin + 1, extent)};
  }
  task.input_boxes[0] = task.layer().input_box(task.inputs, 0, 0, box);
}

template <typename L>
Case random_case(unsigned seed) {
  Draw draw(seed);
  const int axes = draw.chance(60) ? 2 : draw.chance(50) ? 1 : 3;
  const ConvolutionOptions options = random_options(draw, axes);
  const int64_t channels = options.group * (draw.chance(40) ? draw(1, 4) : draw(5, 40));
  Shape input{draw(1, 3), channels};
  for (int i = 0; i < axes; ++i) {
    const int64_t extent = options.dilation[i] * (options.kernel[i] - 1) + 1;
    input.append(std::max(extent - 2 * options.pad[i], 2 * options.pad[i]) + draw(1, axes == 3 ? 5 : 12));
  }
  Case made{whole_task(std::make_shared<L>(options), Phase::train, {&input, 1}, 1), ""};
  maybe_rectify(draw, made.task);
  maybe_freeze(draw, made.task);
  maybe_cut(draw, made.task);
  made.task.canonical_parameters = draw.chance(15);
  made.text = text_of(options, input, made.task);
  return made;
}

Case random_inner_product(unsigned seed) {
  Draw draw(seed);
  InnerProductOptions options{
      .num_output = draw(1, 70), .bias_term = draw.chance(70), .transpose = draw.chance(40)};
  Shape input{draw(1, 40), draw(1, 40)};
  for (int64_t axes = draw(0, 3); axes > 0; --axes) input.append(draw(1, 4));
  Case made{whole_task(std::make_shared<InnerProduct>(options), Phase::train, {&input, 1}, 1), ""};
  maybe_rectify(draw, made.task);
  maybe_freeze(draw, made.task);
  made.task.canonical_parameters = draw.chance(15);
  made.text = fmt::format("InnerProduct {} to {} transpose {} chain {}", input.text(), options.num_output,
                          options.transpose, made.task.layers.size());
  return made;
}

template <typename MakeCase, typename MakeKernel>
void expect_matches(unsigned cases, MakeCase&& make_case, MakeKernel&& make_kernel) {
  for (unsigned seed = 0; seed < cases; ++seed) {
    const Case made = make_case(seed);
    const KernelOffer offer = make_kernel(made.task);
    ASSERT_TRUE(offer.kernel) << made.text << ": " << offer.refusal;
    const bool exact = seed % 2 == 0;
    ASSERT_TRUE(exact ? matches_reference(made.task, *offer.kernel, 0, DataKind::small_integers)
                      : matches_reference(made.task, *offer.kernel, 1e-5, DataKind::random))
        << "case " << seed << ": " << made.text;
  }
}

TEST(ImplicitGemm, ConvolutionMatchesReference) {
  expect_matches(400, random_case<Convolution>, make_implicit_gemm);
}

Task pointwise_task(int64_t outputs, const Shape& input, bool rectified, int64_t group = 1) {
  const ConvolutionOptions options = check::convolution(outputs, check::windows[1], group);
  Task task = whole_task(std::make_shared<Convolution>(options), Phase::train, {&input, 1}, 1);
  if (rectified) task.layers.push_back(std::make_shared<Pointwise>(ReluOptions{0.5}));
  return task;
}

// Output and gradient of the input are so large that they are written past the caches, or, with 24 channels,
// whose rows are no whole cache lines, would be. Without a ReLU each thread sums the gradient of the weights
// where its rows lie.
TEST(ImplicitGemm, LargePointwiseConvolutionsMatchReference) {
  for (const int64_t channels : {16, 24})
    for (const bool rectified : {true, false}) {
      const Shape input{1, channels, 640, 640};
      ASSERT_GE(bytes_of(input.size(), ElementType::f32).count, native::streaming_bytes);
      const Task task = pointwise_task(channels, input, rectified);
      const KernelOffer offer = make_implicit_gemm(task);
      EXPECT_TRUE(matches_reference(task, *offer.kernel, 0, DataKind::small_integers))
          << channels << (rectified ? " with ReLU" : "");
    }
}

// On one thread the gradient of the weights is summed where the rows lie, whatever their number.
TEST(ImplicitGemm, NarrowPointwiseConvolutionsMatchReference) {
  const ComputeThreads alone(1);
  for (unsigned seed = 0; seed < 200; ++seed) {
    Draw draw(seed);
    const int64_t group = draw.chance(25) ? 2 : 1;
    const int64_t outputs = group * (draw.chance(70) ? 8 * draw(1, 8) : draw(1, 60));
    const Shape input{draw(1, 3), group * draw(1, 60), draw(1, 14), draw(1, 14)};
    Task task = pointwise_task(outputs, input, draw.chance(20), group);
    maybe_freeze(draw, task);
    maybe_cut(draw, task);
    const KernelOffer offer = make_implicit_gemm(task);
    const bool exact = seed % 2 == 0;
    ASSERT_TRUE(exact ? matches_reference(task, *offer.kernel, 0, DataKind::small_integers)
                      : matches_reference(task, *offer.kernel, 1e-5, DataKind::random))
        << "case " << seed << ": " << input.text() << " to " << outputs << " group " << group << " box "
        << task.output_boxes[0].text();
  }
}

TEST(ImplicitGemm, DeconvolutionMatchesReference) {
  expect_matches(200, random_case<Deconvolution>, make_implicit_gemm);
}

TEST(ImplicitGemm, InnerProductMatchesReference) {
  expect_matches(200, random_inner_product, make_implicit_gemm);
}

// Each case on another number of threads, partitions and samples at a time.
class Lowering : public ::testing::TestWithParam<LoweringType> {
 protected:
  void TearDown() override { set_compute_threads(threads_); }

  static KernelOffer make(const Task& task) {
    static unsigned seed = 0;
    Draw draw(seed++);
    set_compute_threads(draw.chance(15) ? 4 : static_cast<int>(draw(1, 2)));  // 4: two in a partition
    LoweringOptions options{.partitions = static_cast<int>(draw(0, 4)), .samples = draw(0, 3)};
    options.serial = draw.chance(20);
    options.blas = static_cast<Blas>(draw(0, 2));
    if (!lowering::refusal_of(options.blas).empty()) options.blas = Blas::openblas;
    return make_lowering(task, GetParam(), options);
  }

 private:
  int threads_ = compute_threads();
};

TEST_P(Lowering, ConvolutionMatchesReference) { expect_matches(50, random_case<Convolution>, make); }
TEST_P(Lowering, DeconvolutionMatchesReference) { expect_matches(25, random_case<Deconvolution>, make); }

TEST_P(Lowering, WorksThroughABatchInBoundedMemory) {
  const Shape input{9, 64, 30, 30};
  const ConvolutionOptions convolution{.num_output = 4, .kernel = {3}, .pad = {1}};
  const Task task = whole_task(std::make_shared<Convolution>(convolution), Phase::train, {&input, 1}, 1);
  set_compute_threads(3);
  int64_t one = 0;
  for (int64_t samples : {1, 2, 3}) {
    LoweringOptions options{.partitions = 1, .samples = samples};
    KernelOffer offer = make_lowering(task, GetParam(), options);
    const Bytes scratch = offer.kernel->scratch_bytes();
    if (samples == 1) one = scratch.count;
    EXPECT_NEAR(static_cast<double>(scratch.count), static_cast<double>(samples * one), 256);
    options = {.partitions = 3, .memory = scratch};
    offer = make_lowering(task, GetParam(), options);
    ASSERT_TRUE(offer.kernel) << offer.refusal;
    EXPECT_LE(offer.kernel->scratch_bytes(), scratch);
    EXPECT_TRUE(matches_reference(task, *offer.kernel, 0, DataKind::small_integers));
  }
  const KernelOffer offer = make_lowering(task, GetParam(), {.memory = {one - 1}});
  EXPECT_FALSE(offer.kernel);
  EXPECT_TRUE(offer.refusal.starts_with("a lowered sample takes ")) << offer.refusal;
}

// What memory a lowered sample takes tells the types apart: k^2 d m^2 + 0, k d m n + k o m n, 0 + k^2 o n^2.
TEST_P(Lowering, ExpandsWhatItsTypeSays) {
  const Shape input{1, 32, 20, 20};  // n = 20, m = 16, d = 32
  const Task task =
      whole_task(std::make_shared<Convolution>(ConvolutionOptions{.num_output = 48, .kernel = {5}}),
                 Phase::train, {&input, 1}, 1);
  const int64_t elements = make_lowering(task, GetParam()).kernel->scratch_bytes().count / 4;
  const std::map<LoweringType, int64_t> expected = {{LoweringType::one, 25 * 32 * 16 * 16},
                                                    {LoweringType::two, 5 * 32 * 16 * 20 + 5 * 48 * 16 * 20},
                                                    {LoweringType::three, 25 * 48 * 20 * 20}};
  EXPECT_EQ(elements, expected.at(GetParam()));
}

// All parts of a cut tensor have the weight in one order, whatever their padding.
TEST_P(Lowering, WeightLiesTheSameWayForAllPartsOfATensor) {
  const Shape input{1, 4, 23, 23};
  const Task whole = whole_task(
      std::make_shared<Convolution>(ConvolutionOptions{.num_output = 3, .kernel = {5}, .stride = {3}}),
      Phase::train, {&input, 1}, 1);
  std::vector<float> canonical(3 * 4 * 25), first;
  std::iota(canonical.begin(), canonical.end(), 0.0f);
  for (int64_t begin = 0; begin < 6; ++begin) {
    Task part = whole;
    part.output_boxes[0][2] = {begin, 7};
    part.input_boxes[0] = whole.layer().input_box(whole.inputs, 0, 0, part.output_boxes[0]);
    part.input_boxes[0][2].begin -= begin % 3;  // more than it needs
    const ParameterFormat format = make_lowering(part, GetParam()).kernel->parameter_format(0);
    std::vector<float> own(canonical.size());
    format.from_canonical(canonical.data(), own.data());
    if (first.empty()) first = own;
    EXPECT_EQ(own, first);
    EXPECT_TRUE(
        matches_reference(part, *make_lowering(part, GetParam()).kernel, 0, DataKind::small_integers));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Lowering,
                         ::testing::Values(LoweringType::one, LoweringType::two, LoweringType::three));

TEST(Lowering, OfferNamesTheLibraryOrSaysWhyThereIsNone) {
  const Shape input{1, 4, 9, 9};
  const Task task =
      whole_task(std::make_shared<Convolution>(ConvolutionOptions{.num_output = 3, .kernel = {3}}),
                 Phase::train, {&input, 1}, 1);
  for (const auto& [blas, name] : {std::pair(Blas::openblas, "lowering-2"),
                                   {Blas::onednn, "lowering-2-onednn"},
                                   {Blas::blis, "lowering-2-blis"}}) {
    const KernelOffer offer = make_lowering(task, LoweringType::two, {.blas = blas});
    EXPECT_EQ(offer.refusal, lowering::refusal_of(blas));
    EXPECT_EQ(offer.kernel ? offer.kernel->name() : name, name);
  }
}

// How the OpenBLAS that is loaded makes its threads.
int openblas_parallelism() {
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD);
  void* function = library != nullptr ? dlsym(library, "openblas_get_parallel") : nullptr;
  return function != nullptr ? reinterpret_cast<int (*)()>(function)() : -1;
}

// BLAS inside partitions runs on their threads, not on threads of its own.
class BlasInPartitions : public ::testing::TestWithParam<Blas> {};
TEST_P(BlasInPartitions, StartsNoThreadsBesideTheComputeThreads) {
  if (const std::string refusal = lowering::refusal_of(GetParam()); !refusal.empty()) GTEST_SKIP() << refusal;
  ASSERT_TRUE(GetParam() != Blas::openblas || openblas_parallelism() == OPENBLAS_OPENMP);
  const int before = compute_threads();
  set_compute_threads(4);
  constexpr int64_t extent = 300;
  const std::vector<float> a(extent * extent, 1.0f);
  std::atomic<int64_t> most = 0, done = 0;
  auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return static_cast<int64_t>(std::distance(tasks, {}));
  };
  // Those that earlier tests have left, and the four of this one.
  lowering::for_each_partition(4, [](int) {});
  const int64_t there = threads();
  std::thread watch([&] {
    while (done == 0) most = std::max(most.load(), threads());
  });
  std::vector<std::vector<float>> products(4, std::vector<float>(extent * extent));
  for (int run = 0; run < 20; ++run)
    lowering::for_each_partition(4, [&](int i) {
      lowering::multiply(GetParam(), extent, extent, extent, {a.data(), extent}, {a.data(), extent, true}, 0,
                         products[static_cast<size_t>(i)].data(), extent);
    });
  done = 1;
  watch.join();
  set_compute_threads(before);
  EXPECT_LE(most, there + 1);
  for (const auto& product : products)
    EXPECT_TRUE(std::ranges::all_of(product, [](float value) { return value == extent; }));
}

INSTANTIATE_TEST_SUITE_P(Libraries, BlasInPartitions,
                         ::testing::Values(Blas::openblas, Blas::blis, Blas::onednn));

TEST(Partitions, ShareTheThreads) {
  const int before = compute_threads();
  set_compute_threads(6);
  std::vector<int> threads(3);
  lowering::for_each_partition(3, [&](int i) { threads[static_cast<size_t>(i)] = compute_threads(); });
  EXPECT_EQ(threads, std::vector<int>(3, 2));
  EXPECT_EQ(compute_threads(), 6);
  set_compute_threads(before);
}

// Sizes past every block: several depth blocks, row blocks, packed blocks and chunks.
TEST(ImplicitGemm, LargeConvolutionsMatchReference) {
  const std::vector<std::pair<Shape, ConvolutionOptions>> cases = {
      {{1, 1300, 5, 5}, {.num_output = 20, .kernel = {3}, .pad = {1}}},
      {{2, 70, 40, 40}, {.num_output = 34, .kernel = {3}, .pad = {1}}},
      {{3, 3, 60, 60}, {.num_output = 24, .kernel = {11}, .stride = {4}, .pad = {2}}},
      {{2, 96, 30, 30}, {.num_output = 48, .kernel = {1}}},
      {{2, 24, 33, 33}, {.num_output = 40, .kernel = {3}, .stride = {2}, .pad = {1}}},
      {{40, 16, 7, 7}, {.num_output = 16, .kernel = {3}, .pad = {1}}},
      // Taps outside the image are left out; 9 samples are no multiple of a tile's rows.
      {{9, 16, 5, 5}, {.num_output = 40, .kernel = {3}, .pad = {1}}},
      {{16, 24, 4, 6}, {.num_output = 20, .kernel = {5}, .pad = {2}}},
      {{11, 12, 9, 9}, {.num_output = 10, .kernel = {3}, .stride = {2}, .pad = {2}, .dilation = {2}}},
      {{12, 3, 6, 6}, {.num_output = 10, .kernel = {7}, .pad = {3}}},
      {{8, 6, 3, 4, 5}, {.num_output = 9, .kernel = {3}, .pad = {1}}},
  };
  for (const auto& [input, options] : cases) {
    const Task task = whole_task(std::make_shared<Convolution>(options), Phase::train, {&input, 1}, 1);
    const KernelOffer offer = make_implicit_gemm(task);
    ASSERT_TRUE(offer.kernel) << offer.refusal;
    EXPECT_TRUE(matches_reference(task, *offer.kernel, 0, DataKind::small_integers))
        << text_of(options, input, task);
  }
}

// Many rows for each of the threads and few weights: each thread has sums of its own.
TEST(ImplicitGemm, ThreadsSumOnTheirOwnWhereRowsAreMany) {
  const std::vector<std::pair<Shape, ConvolutionOptions>> cases = {
      {{4, 3, 120, 120}, {.num_output = 8, .kernel = {3}, .pad = {1}}},
      {{6, 5, 200, 200}, {.num_output = 33, .kernel = {3}, .stride = {2}, .pad = {1}}},
      {{5, 8, 100, 100}, {.num_output = 6, .group = 2, .kernel = {1}}},
  };
  const int before = compute_threads();
  set_compute_threads(3);
  for (const auto& [input, options] : cases)
    for (const bool frozen : {false, true}) {
      Task task = whole_task(std::make_shared<Convolution>(options), Phase::train, {&input, 1}, 1);
      if (frozen) task.parameter_gradients[0] = false;
      const KernelOffer offer = make_implicit_gemm(task);
      ASSERT_TRUE(offer.kernel) << offer.refusal;
      EXPECT_TRUE(matches_reference(task, *offer.kernel, 0, DataKind::small_integers))
          << text_of(options, input, task) << (frozen ? ", weight frozen" : "");
    }
  set_compute_threads(before);
}

TEST(ImplicitGemm, RefusesWithAReason) {
  const Shape input{2, 8, 6, 6};
  ConvolutionOptions options{.num_output = 8, .group = 2, .kernel = {3}};
  Task grouped = whole_task(std::make_shared<Convolution>(options), Phase::train, {&input, 1}, 1);
  grouped.output_boxes[0][1] = {0, 4};
  EXPECT_EQ(make_implicit_gemm(grouped).refusal,
            "channels of a convolution with 2 groups are cut across them");

  Task chained = whole_task(std::make_shared<Convolution>(options), Phase::train, {&input, 1}, 1);
  chained.layers.push_back(std::make_shared<Pointwise>(SigmoidOptions{}));
  EXPECT_EQ(make_implicit_gemm(chained).refusal, "a chain with Sigmoid");

  const Task other = whole_task(std::make_shared<Pointwise>(ReluOptions{}), Phase::train, {&input, 1}, 1);
  EXPECT_EQ(make_implicit_gemm(other).refusal, "ReLU is not a matrix product");
}

}  // namespace
}  // namespace cortado
