// The mathematics of GPU kernels, computed by the processor: every element of every kernel against the
// reference, random bits and dropout masks bit for bit, updates against those of the processor.
#include "cortado/kernels/gpu/gpu.h"

#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <set>

#include "cortado/device/open_device.h"
#include "cortado/kernels/arrays.h"
#include "cortado/kernels/cublaslt/product_of.h"
#include "cortado/kernels/gpu/divisor.h"
#include "cortado/kernels/gpu/layouts.h"
#include "cortado/kernels/gpu/passes.h"
#include "cortado/kernels/gpu/random_bits.h"
#include "cortado/kernels/gpu_libraries.h"
#include "cortado/kernels/native/native.h"
#include "cortado/kernels/select.h"
#include "cortado/layers/accuracy.h"
#include "cortado/layers/batch_norm.h"
#include "cortado/layers/batch_reindex.h"
#include "cortado/layers/concat.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/dropout.h"
#include "cortado/layers/eltwise.h"
#include "cortado/layers/embed.h"
#include "cortado/layers/filter.h"
#include "cortado/layers/hinge_loss.h"
#include "cortado/layers/infogain_loss.h"
#include "cortado/layers/lrn.h"
#include "cortado/layers/parameter.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/scale.h"
#include "cortado/layers/silence.h"
#include "cortado/layers/softmax_loss.h"

#include "tests/kernels/bf16_run.h"
#include "tests/kernels/check.h"
#include "tests/kernels/cut_cases.h"
#include "tests/kernels/native_task.h"
#include "tests/kernels/on_device.h"

namespace cortado::check {
namespace {

TEST(GpuRandomBits, AreThoseOfTheStream) {
  for (const RandomStream& stream :
       {RandomStream{1, 2, 3}, RandomStream{uint64_t{7} << 33 | 5, uint64_t{9} << 34 | 1, 0xFFFFFFFF}}) {
    for (uint64_t index : {uint64_t{0}, uint64_t{1}, uint64_t{77}, uint64_t{5} << 32 | 3, ~uint64_t{0}})
      EXPECT_EQ(gpu::random_bits(stream, index), stream.bits(index)) << index;
    for (uint64_t index = 0; index < 1000; ++index)
      ASSERT_EQ(gpu::random_bits(stream, index), stream.bits(index)) << index;
  }
}

TEST(GpuDivisor, DividesAsTheProcessor) {
  std::mt19937_64 generator(3);
  constexpr int64_t most = (int64_t{1} << 31) - 1;
  const auto check = [](int64_t dividend, int64_t value) {
    int64_t number = dividend;
    EXPECT_EQ(gpu::Divisor(value).split(number), dividend % value) << dividend << " / " << value;
    EXPECT_EQ(number, dividend / value) << dividend << " / " << value;
  };
  for (const int64_t value :
       {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{7}, int64_t{64}, most - 1, most, most + 1})
    for (const int64_t multiple : {int64_t{0}, int64_t{1}, int64_t{5}, most / value})
      for (const int64_t more : {int64_t{-1}, int64_t{0}, int64_t{1}})
        check(std::max<int64_t>(0, multiple * value + more), value);
  for (int i = 0; i < 100000; ++i) {
    const auto bits = static_cast<int>(generator() % 31);
    check(static_cast<int64_t>(generator() % (most + 1)),
          1 + static_cast<int64_t>(generator() >> (63 - bits)));
  }
  check(int64_t{1} << 40, 12345);
}

// The device that CORTADO_TEST_DEVICE names, as gpu:0; else an emulated one.
std::shared_ptr<device::DeviceRuntime> test_device() {
  const char* given = std::getenv("CORTADO_TEST_DEVICE");
  const auto name = device::device_named(given ? given : "emulated");
  if (!name) throw UserError("CORTADO_TEST_DEVICE names no device");
  return device::open_device(*name);
}

// Types of layers of which a GPU has kernels.
std::vector<std::string_view> types_on_gpus() {
  std::vector<std::string_view> types;
  const auto add = [&types](std::vector<std::string_view> more) {
    types.insert(types.end(), more.begin(), more.end());
  };
#define GPU(name, ...) add({__VA_ARGS__});
#include "cortado/kernels/layer_kernels.def"
  return types;
}

template <size_t... number>
std::vector<Task> tasks_of_functions(std::index_sequence<number...>) {
  return {chain_task({std::make_shared<Pointwise>(PointwiseFunction(std::in_place_index<number>))},
                     {2, 3, 4, 5})...};
}

// What the cases of the cut test leave out: every function of one element, and a parameter as a tensor.
std::vector<Task> other_tasks() {
  std::vector<Task> tasks =
      tasks_of_functions(std::make_index_sequence<std::variant_size_v<PointwiseFunction>>());
  tasks.push_back(
      whole_task(std::make_shared<Parameter>(ParameterOptions{.shape = {3, 4, 5}}), Phase::train, {}, 1));
  return tasks;
}
const CheckOptions positive{.inputs = {{.low = 0.1, .high = 1}}};

// Cases of the cut test, uncut, `number` of each kind: those that GPUs' kernels among `kernels` take, against
// the reference. Returns how many there were, by type and name.
std::map<std::string, int> check_cases(const char* kernels, double tolerance, int count,
                                       device::DeviceRuntime& device) {
  std::map<std::string, int> checked;
  std::set<int> failed;  // kinds: one case of each is told
  for (int kind = 0; kind < cut_kinds(); ++kind) {
    std::mt19937_64 generator(1700 + static_cast<uint64_t>(kind));
    for (int number = 0; number < count; ++number) {
      CutCase cut = random_cut_case(kind, generator);
      const Task chain = whole_task(cut);
      cut.layers.resize(1);
      for (const Task& task : {whole_task(cut), chain}) {
        Selection selection;
        try {
          selection = select_kernel(task, kernels);
        } catch (const UserError&) {
          continue;  // refused by name
        }
        if (!selection.for_gpu) continue;
        OnDevice there(std::move(selection.kernel), task, device);
        const auto matches = matches_reference(task, there, std::max(cut.tolerance, tolerance), cut.data);
        if (!matches && failed.insert(kind).second)
          ADD_FAILURE() << selection.implementation << ": " << cut.text() << "\n" << matches.message();
        ++checked[std::string(task.layer().type()) + (task.layers.size() > 1 ? " and more" : "")];
        ++checked[selection.implementation];
      }
    }
  }
  return checked;
}

TEST(GpuKernels, EqualReference) {
  const auto device = test_device();
  std::map<std::string, int> checked = check_cases("gpu", 1e-5, 40, *device);
  for (const Task& task : other_tasks()) {
    OnDevice there(select_kernel(task, "gpu").kernel, task, *device);
    EXPECT_TRUE(matches_reference(task, there, 1e-5, positive)) << task.layer().type();
    ++checked[std::string(task.layer().type())];
  }
  for (const std::string_view type : types_on_gpus()) {
    if (type == "Silence") continue;
    EXPECT_GT(checked[std::string(type)], 0) << type;
  }
  for (const char* chain : {"BatchNorm and more", "Eltwise and more"}) EXPECT_GT(checked[chain], 0) << chain;
}

// Large enough for the launches in which a thread takes several elements; extents that divide nothing.
TEST(GpuKernels, LargeTensorsEqualReference) {
  const auto device = test_device();
  const Shape image{17, 70, 31, 33};
  const auto batch_norm = std::make_shared<BatchNorm>(BatchNormOptions{});
  const auto scale = std::make_shared<Scale>(ScaleOptions{.bias_term = true});
  const auto relu = std::make_shared<Pointwise>(ReluOptions{});
  const auto swish = std::make_shared<Pointwise>(SwishOptions{});
  const auto sum = std::make_shared<Eltwise>(EltwiseOptions{});
  const Shape two[] = {image, image}, parts[] = {{17, 33, 31, 33}, {17, 300, 31, 33}};
  std::vector<Task> tasks{chain_task({relu}, image),
                          chain_task({scale}, image),
                          chain_task({batch_norm, scale, relu}, image),
                          chain_task({batch_norm, scale, swish}, image),
                          whole_task(sum, Phase::train, two, 1),
                          whole_task(std::make_shared<Concat>(ConcatOptions{}), Phase::train, parts, 1)};
  for (const auto method : {PoolingOptions::Method::max, PoolingOptions::Method::average}) {
    PoolingOptions options{.method = method, .kernel = {3}, .stride = {2}, .pad = {1}};
    tasks.push_back(chain_task({std::make_shared<Pooling>(options)}, {17, 70, 61, 63}));
  }
  for (const Task& task : tasks) {
    OnDevice there(select_kernel(task, "gpu").kernel, task, *device);
    EXPECT_TRUE(matches_reference(task, there, 1e-5)) << task.layer().type();
  }
}

// Libraries run on GPUs alone.
TEST(GpuLibraries, EqualReference) {
  const auto device = test_device();
  if (device->runs_host_functions()) GTEST_SKIP() << "no GPU";
  std::map<std::string, int> exact = check_cases("gpu-list", 1e-4, 20, *device);
  std::map<std::string, int> fast = check_cases("gpu-fast-math", 1e-2, 10, *device);
  const auto both = [&](const std::string& name) { return std::min(exact[name], fast[name + "-tf32"]); };
  EXPECT_EQ(both("cudnn") > 0, !cudnn_version().starts_with("none"));
  EXPECT_EQ(both("cublaslt") > 0, !cublaslt_version().starts_with("none"));
}

// What runs the parts of a case in bf16 on a GPU; nothing where one of them is refused by name, or is a chain
// whose layers have kernels one by one.
std::vector<Selection> gpu_selections_in_bf16(const CutCase& cut, const char* kernels) try {
  std::vector<Selection> found;
  for (const Task& task : device_tasks(cut, whole_task(cut))) {
    found.push_back(select_kernel(in_bf16(task, cut.data), kernels));
    if (!found.back().for_gpu) return {};
  }
  return found;
} catch (const UserError&) {
  return {};
}

// The gradient of a convolution's weights is rounded to bf16 once.
TEST(GpuLibraries, EqualReferenceInBf16) {
  const auto device = test_device();
  if (device->runs_host_functions()) GTEST_SKIP() << "no GPU";
  std::map<std::string, int> checked;
  for (int kind = 0; kind < cut_kinds(); ++kind) {
    std::mt19937_64 generator(4100 + static_cast<uint64_t>(kind));
    for (int number = 0; number < 12; ++number) {
      CutCase cut = random_cut_case(kind, generator);
      const std::string type(cut.layers[0]->type());
      if (type != "Convolution" && type != "Deconvolution" && type != "InnerProduct") break;
      if (number % 2 == 0) cut.layers.resize(1);
      cut.tolerance = std::max(cut.tolerance, 1.0 / 64);
      const std::vector<Selection> parts = gpu_selections_in_bf16(cut, "gpu-list");
      if (parts.empty()) continue;
      for (const Selection& part : parts) ++checked[part.implementation];
      EXPECT_TRUE(equals_reference_in_bf16(cut, "gpu-list", device.get())) << cut.text();
    }
  }
  EXPECT_EQ(checked["cudnn"] > 0, !cudnn_version().starts_with("none"));
  EXPECT_EQ(checked["cublaslt"] > 0, !cublaslt_version().starts_with("none"));
}

TEST(GpuKernels, SmallIntegersAreExact) {
  for (const int64_t group : {1, 2}) {
    auto layer = std::make_shared<Convolution>(
        ConvolutionOptions{.num_output = 6, .group = group, .kernel = {3}, .stride = {2}, .pad = {1}});
    const Task task = chain_task({layer}, {2, 4, 7, 9});
    EXPECT_TRUE(matches_reference(task, *make_gpu_convolution(task).kernel, 0, DataKind::small_integers));
  }
  PoolingOptions pooling{.method = PoolingOptions::Method::max, .kernel = {3}, .stride = {2}, .pad = {1}};
  const Task task = chain_task({std::make_shared<Pooling>(pooling)}, {2, 5, 8, 11});
  EXPECT_TRUE(matches_reference(task, *make_gpu_pooling(task).kernel, 0, DataKind::small_integers));
}

// A mask is that of the CPU's kernel, to the bit, also of a part of the tensor.
TEST(GpuDropout, DropsWhatTheProcessorDrops) {
  const auto layer = std::make_shared<Dropout>(DropoutOptions{.ratio = 0.3});
  for (const bool part : {false, true}) {
    Task task = chain_task({layer}, {4, 6, 5, 7});
    if (part) {
      task.output_boxes[0][0] = {1, 3};
      task.output_boxes[0][1] = {2, 6};
      task.output_boxes[0][3] = {0, 4};
      task.input_boxes = task.output_boxes;
    }
    const auto size = static_cast<size_t>(task.local_output(0).size());
    std::vector<float> x(size), there(size), here(size);
    for (size_t i = 0; i < size; ++i) x[i] = static_cast<float>(i) + 1;
    const auto run = [&](const KernelOffer& offer, std::vector<float>& y) {
      ASSERT_TRUE(offer.kernel) << offer.refusal;
      Arguments arguments;
      arguments.inputs = {x.data()};
      arguments.outputs = {y.data()};
      arguments.random = {11, uint64_t{3} << 32 | 4, 99};
      offer.kernel->forward(arguments);
    };
    run(make_gpu_dropout(task), there);
    run(make_native_dropout(task), here);
    EXPECT_EQ(std::memcmp(there.data(), here.data(), size * sizeof(float)), 0);
    EXPECT_NE(here, x);
  }
}

// The host would refuse such a label; on a device the loss says it.
TEST(GpuSoftmaxLoss, ALabelThatNamesNoClassMakesTheLossNotANumber) {
  const Shape inputs[] = {{3, 4}, {3}};
  for (const bool loss : {true, false}) {
    const Task task =
        loss ? whole_task(std::make_shared<SoftmaxLoss>(SoftmaxLossOptions{}), Phase::train, inputs, 1)
             : whole_task(std::make_shared<Accuracy>(AccuracyOptions{}), Phase::test, inputs, 1);
    const KernelOffer offer = loss ? make_gpu_softmax_loss(task) : make_gpu_accuracy(task);
    ASSERT_TRUE(offer.kernel) << offer.refusal;
    std::vector<float> scores(12, 0.5F);
    std::vector<std::byte> scratch(static_cast<size_t>(offer.kernel->scratch_bytes().count)),
        saved(static_cast<size_t>(offer.kernel->saved_bytes().count));
    for (const float label : {3.0F, 4.0F, -1.0F, NAN, INFINITY}) {
      const std::vector<float> labels{0, label, 1};
      float result = 0;
      Arguments arguments;
      arguments.inputs = {scores.data(), labels.data()};
      arguments.outputs = {&result};
      arguments.scratch = scratch.data();
      arguments.saved = saved.data();
      offer.kernel->forward(arguments);
      EXPECT_EQ(std::isfinite(result), label == 3) << label;
    }
  }
}

TEST(GpuSilence, HasAKernelThatReadsNothing) {
  const Shape inputs[] = {{2, 3}, {4}};
  const Task task = whole_task(std::make_shared<Silence>(NoOptions{}), Phase::train, inputs, 0);
  const KernelOffer offer = make_gpu_unread(task);
  ASSERT_TRUE(offer.kernel) << offer.refusal;
  Arguments arguments;
  arguments.inputs = {nullptr, nullptr};
  arguments.input_gradients = {nullptr, nullptr};
  offer.kernel->forward(arguments);
  offer.kernel->backward(arguments);
}

// The first output of a kernel over these inputs, which may name what is not there.
float first_output(const KernelOffer& offer, const Task& task, std::vector<std::vector<float>> inputs) {
  EXPECT_TRUE(offer.kernel) << offer.refusal;
  std::vector<float> parameters(100, 0.5F);
  std::vector<std::vector<float>> outputs;
  Arguments arguments;
  for (std::vector<float>& input : inputs) arguments.inputs.push_back(input.data());
  for (const Box& box : task.output_boxes) outputs.emplace_back(static_cast<size_t>(box.shape().size()));
  for (std::vector<float>& output : outputs) arguments.outputs.push_back(output.data());
  arguments.parameters = {parameters.data(), parameters.data()};
  std::vector<std::byte> scratch(static_cast<size_t>(offer.kernel->scratch_bytes().count)),
      saved(static_cast<size_t>(offer.kernel->saved_bytes().count));
  arguments.scratch = scratch.data();
  arguments.saved = saved.data();
  offer.kernel->forward(arguments);
  return outputs[0][0];
}

// The host would refuse such an index or label; on a device it is seen in what follows.
TEST(GpuKernels, WhatNamesNothingMakesNoNumber) {
  const Shape rows[] = {{2, 3}, {2}};
  const std::vector<float> table{1, 2, 3, 4, 5, 6};
  const Task reindex = whole_task(std::make_shared<BatchReindex>(NoOptions{}), Phase::train, rows, 1);
  EXPECT_EQ(first_output(make_gpu_moved(reindex), reindex, {table, {1, 0}}), 4);
  EXPECT_TRUE(std::isnan(first_output(make_gpu_moved(reindex), reindex, {table, {2, 0}})));
  const Task filter =
      whole_task(std::make_shared<Filter>(FilterOptions{.samples = 1}), Phase::train, rows, 1);
  EXPECT_EQ(first_output(make_gpu_moved(filter), filter, {table, {0, 1}}), 4);
  EXPECT_TRUE(std::isnan(first_output(make_gpu_moved(filter), filter, {table, {1, 1}})));
  const Shape words[] = {{2}};
  const Task embed = whole_task(std::make_shared<Embed>(EmbedOptions{.num_output = 2, .input_dim = 3}),
                                Phase::train, words, 1);
  EXPECT_EQ(first_output(make_gpu_embed(embed), embed, {{2, 0}}), 1);
  EXPECT_TRUE(std::isnan(first_output(make_gpu_embed(embed), embed, {{3, 0}})));
  const Task hinge = whole_task(std::make_shared<HingeLoss>(HingeLossOptions{}), Phase::train, rows, 1);
  EXPECT_TRUE(std::isfinite(first_output(make_gpu_loss(hinge), hinge, {table, {2, 0}})));
  EXPECT_TRUE(std::isnan(first_output(make_gpu_loss(hinge), hinge, {table, {-1, 0}})));
}

TEST(GpuKernels, SayWhatTheyRefuse) {
  const Shape image{2, 4, 6, 6};
  const Shape labelled[] = {{2, 3}, {2}};
  const Task from_file =
      whole_task(std::make_shared<InfogainLoss>(InfogainLossOptions{.source = "h"}, std::vector<float>(9)),
                 Phase::train, labelled, 1);
  EXPECT_EQ(make_gpu_infogain_loss(from_file).refusal, "a matrix that is no input");
  const auto whole_sample = std::make_shared<Scale>(ScaleOptions{.broadcast = {.axis = 1, .num_axes = -1}});
  EXPECT_EQ(make_gpu_scale(chain_task({whole_sample}, image)).refusal,
            "a scale or bias along other axes than the channels");
  Task narrow = chain_task({std::make_shared<Dropout>(DropoutOptions{})}, image);
  narrow.input_types = narrow.output_types = {ElementType::bf16};
  EXPECT_EQ(make_gpu_lrn(narrow).refusal, "not an LRN");
  narrow.layers = {std::make_shared<Lrn>(LrnOptions{})};
  EXPECT_EQ(make_gpu_lrn(narrow).refusal, "tensors of other types than f32");
  narrow.layers = {std::make_shared<Dropout>(DropoutOptions{})};
  EXPECT_EQ(make_gpu_dropout(narrow).refusal, "");
  narrow.output_types = {ElementType::f32};
  EXPECT_EQ(make_gpu_dropout(narrow).refusal, "tensors of two types");
  EXPECT_EQ(make_gpu_dropout(chain_task({whole_sample, whole_sample}, image)).refusal, "not a Dropout");
}

std::vector<float> drawn(size_t size, uint64_t seed, double low = -1) {
  std::vector<float> values(size);
  RandomStream stream{.seed = seed};
  for (size_t i = 0; i < size; ++i) values[i] = static_cast<float>(stream.uniform(i, 0, low, 1));
  return values;
}

TEST(GpuUpdate, IsThatOfTheProcessor) {
  using Solver = UpdateOptions::Solver;
  constexpr size_t size = 1000;
  std::vector<std::byte> scratch(static_cast<size_t>(gpu::update_scratch().count));
  for (const Solver solver : {Solver::sgd, Solver::nesterov, Solver::adagrad, Solver::rmsprop,
                              Solver::adadelta, Solver::adam, Solver::lars}) {
    for (const auto regularization : {UpdateOptions::Regularization::l1, UpdateOptions::Regularization::l2}) {
      UpdateOptions options{.solver = solver, .regularization = regularization, .momentum = 0.9};
      std::vector<float> memory[2][3];
      for (auto& device : memory) {
        device[0] = drawn(size, 1);
        device[1] = drawn(size, 2, 0);
        device[2] = drawn(size, 3, 0);
      }
      std::vector<float> gradient = drawn(size, 4);
      float not_finite = 0;
      for (int t = 0; t < 3; ++t) {
        const UpdateStep step{.rate = 0.1, .decay = 0.01, .gradient_scale = 0.5, .iteration = t};
        const auto arguments = [&](auto& m) {
          return UpdateArguments{m[0].data(), gradient.data(), {m[1].data(), m[2].data()}, size};
        };
        EXPECT_TRUE(update_parameter(options, arguments(memory[0]), step));
        gpu::update_parameter(nullptr, options, arguments(memory[1]), step, &not_finite, scratch.data());
      }
      EXPECT_EQ(not_finite, 0);
      for (int m = 0; m < 3; ++m)
        for (size_t i = 0; i < size; ++i)
          ASSERT_NEAR(memory[1][m][i], memory[0][m][i], 1e-5 * (1 + std::abs(memory[0][m][i])));
      gradient[size / 2] = NAN;
      gpu::update_parameter(
          nullptr, options,
          {memory[1][0].data(), gradient.data(), {memory[1][1].data(), memory[1][2].data()}, size},
          {.rate = 0.1}, &not_finite, scratch.data());
      EXPECT_EQ(not_finite, 1);
    }
  }
}

TEST(GpuPasses, SumSquaresInDouble) {
  std::vector<std::byte> scratch(static_cast<size_t>(gpu::sum_of_squares_scratch().count));
  for (const size_t size : {1, 127, 128, 129, 100000}) {
    const std::vector<float> x = drawn(size, size);
    double total = -1;
    gpu::sum_of_squares(nullptr, x.data(), static_cast<int64_t>(size), scratch.data(), &total);
    const double expected = arrays::sum_of_squares(x.data(), static_cast<int64_t>(size));
    EXPECT_NEAR(total, expected, 1e-12 * expected) << size;
  }
}

TEST(GpuPasses, AddInOrderAndMayWriteOverATerm) {
  const std::vector<float> a = drawn(100, 1), b = drawn(100, 2);
  std::vector<float> c = drawn(100, 3), expected(100);
  const float* terms[] = {a.data(), b.data(), c.data()};
  arrays::sum(expected.data(), terms, 100);
  gpu::sum(nullptr, c.data(), terms, 100);
  EXPECT_EQ(c, expected);
  std::vector<float> copied(100);
  gpu::copy(nullptr, copied.data(), a.data(), 100);
  EXPECT_EQ(copied, a);
  const std::vector<bf16> narrow{to_bf16(1.5F), to_bf16(-2)}, other{to_bf16(0x1p-9F), to_bf16(3)};
  std::vector<bf16> sum(2);
  const bf16* narrow_terms[] = {narrow.data(), other.data(), other.data()};
  gpu::sum(nullptr, sum.data(), narrow_terms, 2);
  EXPECT_EQ(sum, (std::vector{to_bf16(1.5F + 0x1p-8F), to_bf16(4)}));  // rounded once, at the end
  const std::vector<const float*> many(65, a.data());
  EXPECT_THROW(gpu::sum(nullptr, copied.data(), many, 100), UserError);
}

TEST(GpuLayouts, TransposeAndRound) {
  const std::vector<float> rows{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1 + 0x1p-9F};  // two matrices, 2 x 3
  std::vector<float> columns(12), back(12);
  const gpu::Matrices matrices{2, 2, 3};
  gpu::transpose(nullptr, rows.data(), columns.data(), matrices);
  EXPECT_EQ(columns, (std::vector<float>{1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 1 + 0x1p-9F}));
  gpu::transpose(nullptr, columns.data(), back.data(), matrices.transposed());
  EXPECT_EQ(back, rows);
  std::vector<bf16> narrow(12);
  gpu::transpose(nullptr, rows.data(), narrow.data(), matrices);
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(narrow[i], to_bf16(columns[i])) << i;
  gpu::transpose(nullptr, narrow.data(), back.data(), {12, 1, 1});
  EXPECT_EQ(back[11], 1);
}

// What is not finite stays so, also where a ReLU comes after it.
TEST(GpuLayouts, AddABiasAndAReluAndMaskItsGradient) {
  const std::vector<float> bias{1, -2};
  std::vector<float> y{0, 1, -3, 5, -INFINITY, NAN};
  gpu::add_bias(nullptr, y.data(), bias.data(), 3, 2, true);
  EXPECT_EQ(std::vector<float>(y.begin(), y.begin() + 4), (std::vector<float>{1, 0, 0, 3}));
  EXPECT_TRUE(std::isnan(y[4]) && std::isnan(y[5]));
  std::vector<float> plain{-1, 2};
  gpu::add_bias(nullptr, plain.data(), static_cast<const float*>(nullptr), 1, 2, false);
  EXPECT_EQ(plain, (std::vector<float>{-1, 2}));
  std::vector<float> dy{7, 8, INFINITY, 9};
  gpu::mask_gradient(nullptr, dy.data(), y.data(), 4);
  EXPECT_EQ(dy[0], 7);
  EXPECT_EQ(dy[1], 0);
  EXPECT_TRUE(std::isnan(dy[2]));
  EXPECT_EQ(dy[3], 9);
}

TEST(GpuLayouts, SumColumnsOfBothTypes) {
  constexpr int64_t rows = 700, columns = 3;
  std::vector<float> x(rows * columns);
  std::vector<bf16> narrow(x.size());
  std::vector<float> expected(columns);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(static_cast<int>(i * 7 % 31) - 15);
    narrow[i] = to_bf16(x[i]);
    expected[i % columns] += x[i];
  }
  std::vector<std::byte> scratch(static_cast<size_t>(gpu::column_scratch(rows, columns).count));
  std::vector<float> totals(columns);
  gpu::sum_columns(nullptr, x.data(), rows, columns, scratch.data(), totals.data());
  EXPECT_EQ(totals, expected);
  gpu::sum_columns(nullptr, narrow.data(), rows, columns, scratch.data(), totals.data());
  EXPECT_EQ(totals, expected);
}

// A product as cuBLASLt is asked for it, by its definition.
std::vector<float> product(const cublaslt::ProductOf& of, const std::vector<float>& a,
                           const std::vector<float>& b) {
  std::vector<float> result(static_cast<size_t>(of.m * of.n));
  for (int64_t i = 0; i < of.m; ++i)
    for (int64_t j = 0; j < of.n; ++j)
      for (int64_t l = 0; l < of.k; ++l)
        result[static_cast<size_t>(i + j * of.m)] +=
            a[static_cast<size_t>(of.transpose_a ? l + i * of.k : i + l * of.m)] *
            b[static_cast<size_t>(of.transpose_b ? j + l * of.n : l + j * of.k)];
  return result;
}

TEST(CublasltShapes, AreInnerProducts) {
  const auto integers = [](int64_t count, int start) {
    std::vector<float> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((start + i * 5) % 13) - 6;
    return values;
  };
  for (const bool transposed : {false, true}) {
    constexpr int64_t rows = 3, outputs = 4, summed = 5;
    const cublaslt::InnerProductShape shape{rows, outputs, summed, 1, transposed, ElementType::f32, false};
    const std::vector<float> x = integers(rows * summed, 1), w = integers(outputs * summed, 2),
                             dy = integers(rows * outputs, 3);
    const auto weight = [&](int64_t o, int64_t k) {
      return static_cast<size_t>(transposed ? k * outputs + o : o * summed + k);
    };
    std::vector<float> y(rows * outputs), dx(rows * summed), dw(outputs * summed);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t o = 0; o < outputs; ++o)
        for (int64_t k = 0; k < summed; ++k) {
          y[r * outputs + o] += x[r * summed + k] * w[weight(o, k)];
          dx[r * summed + k] += dy[r * outputs + o] * w[weight(o, k)];
          dw[weight(o, k)] += dy[r * outputs + o] * x[r * summed + k];
        }
    EXPECT_EQ(product(forward_of(shape, false), w, x), y);
    EXPECT_EQ(product(data_of(shape), w, dy), dx);
    EXPECT_EQ(product(weights_of(shape), transposed ? dy : x, transposed ? x : dy), dw);
  }
}

// Parts of layers in bf16. Those that memory bounds have kernels of their own, the others run between
// conversions.
TEST(GpuKernels, EqualReferenceInBf16) {
  const auto device = test_device();
  std::map<std::string, int> own, converted, chains;
  for (int kind = 0; kind < cut_kinds(); ++kind) {
    std::mt19937_64 generator(2900 + static_cast<uint64_t>(kind));
    for (int number = 0; number < 16; ++number) {
      CutCase cut = random_cut_case(kind, generator);
      if (number % 2 == 0) cut.layers.resize(1);
      const std::vector<Selection> parts = gpu_selections_in_bf16(cut, "gpu");
      if (parts.empty()) continue;
      for (const Selection& part : parts) {
        const bool between = part.kernel->name().ends_with(", converted");
        auto& counted = cut.layers.size() > 1 ? chains : between ? converted : own;
        ++counted[std::string(cut.layers[0]->type())];
      }
      EXPECT_TRUE(equals_reference_in_bf16(cut, "gpu", device.get())) << cut.text();
      if (HasFailure()) return;
    }
  }
  for (const char* type : {"ReLU", "Scale", "BatchNorm", "Eltwise", "Concat", "Slice", "Split", "Reshape",
                           "Dropout", "Pooling"}) {
    EXPECT_GT(own[type], 0) << type;
    if (type != std::string_view("Scale") && type != std::string_view("Pooling")) {  // some are
      EXPECT_EQ(converted[type], 0) << type;
    }
  }
  for (const char* type : {"Convolution", "InnerProduct", "LRN"}) EXPECT_GT(converted[type], 0) << type;
  for (const char* type : {"BatchNorm", "Eltwise"}) EXPECT_GT(chains[type], 0) << type;
}

TEST(GpuKernels, ListsBeginWithLibrariesAndTheProcessorsHaveNone) {
  const auto layer = std::make_shared<Convolution>(ConvolutionOptions{.num_output = 6, .kernel = {3}});
  const Task task = chain_task({layer}, {2, 4, 7, 9});
  const Selection exact = select_kernel(task, "gpu-list"), fast = select_kernel(task, "gpu-fast-math");
  if (exact.implementation == "gpu") {
    ASSERT_EQ(exact.refusals.size(), 1u);
    ASSERT_EQ(fast.refusals.size(), 2u);
    EXPECT_TRUE(fast.refusals[0].starts_with("cudnn-tf32: "));
    EXPECT_TRUE(fast.refusals[1].starts_with("cudnn: "));
  }
  for (const char* kernels : {"", "fast-math", "gpu"})
    for (const std::string& refusal : select_kernel(task, kernels).refusals)
      EXPECT_FALSE(refusal.starts_with("cudnn")) << refusal;
  const Task chain = chain_task({layer, std::make_shared<Pointwise>(ReluOptions{})}, {2, 4, 7, 9});
  const Selection chained = select_kernel(chain, "gpu-list");
  EXPECT_TRUE(chained.implementation == "reference" || chained.implementation == "cudnn");
}

}  // namespace
}  // namespace cortado::check
