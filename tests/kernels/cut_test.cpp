// Tasks on parts of tensors: the parts of a cut layer, each computed from its input box and its slice of the
// parameters, together give what the whole layer gives, forward and backward. Random layers, shapes and cuts;
// CORTADO_CUT_SEED and CORTADO_CUT_CASES choose others and more.
#include <iostream>
#include <map>

#include "cortado/base/compute_threads.h"
#include "cortado/base/error.h"
#include "cortado/base/thread_team.h"
#include "cortado/kernels/select.h"
#include "cortado/layers/accuracy.h"
#include "cortado/layers/batch_norm.h"
#include "cortado/layers/concat.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/inner_product.h"

#include "tests/kernels/cut_cases.h"

namespace cortado::check {
namespace {

// The same on the kernels of that name; success too where it computes other layers or refuses this slice.
testing::AssertionResult cut_equals_whole_or_refuses(const CutCase& cut, const std::string& only) {
  try {
    if (select_kernel(whole_task(cut), only).implementation != only) return testing::AssertionSuccess();
    return cut_equals_whole(cut, only);
  } catch (const UserError&) {
    return testing::AssertionSuccess();
  }
}

// Whether the list may compute a part by F(4x4, 3x3) or F(2x2, 5x5), which round even sums of integers.
bool may_round(const CutCase& cut) {
  return select_kernel(whole_task(cut)).implementation.starts_with("winograd");
}

// A ReLU would tell sums near zero apart.
CutCase not_exact(CutCase cut) {
  if (cut.tolerance == 0) cut.data.data = DataKind::random;
  if (cut.layers[0]->type() == "Convolution") cut.layers.resize(1);
  cut.tolerance = 1e-4;
  return cut;
}

// Case `number` of a kind under a seed, however many others there are.
void expect_cut_equals_whole(int kind, uint64_t seed, uint64_t number) {
  std::mt19937_64 generator(seed * 1000003 + number * 131 + kind);
  CutCase cut = random_cut_case(kind, generator);
  for (const std::string only :
       {"", "reference", "winograd", "onednn", "lowering-1", "lowering-2", "lowering-3", "gpu"}) {
    const bool all_layers = only.empty() || only == "reference";
    EXPECT_TRUE(all_layers ? cut_equals_whole(only.empty() && may_round(cut) ? not_exact(cut) : cut, only)
                           : cut_equals_whole_or_refuses(cut, only))
        << cut.text() << "\nkernels '" << only << "'; paste as: expect_cut_equals_whole(" << kind << ", "
        << seed << ", " << number << ");  // " << cut_kind_name(kind);
  }
  for (const char* only : {"winograd-4x4", "winograd-5x5", "winograd-4x4-of-5x5"})
    EXPECT_TRUE(cut_equals_whole_or_refuses(not_exact(cut), only))
        << cut.text() << "\nkernels '" << only << "', case " << number << " of seed " << seed;
}

class CutLayer : public testing::TestWithParam<int> {};

TEST_P(CutLayer, EqualsWhole) {
  const uint64_t seed = number_from("CORTADO_CUT_SEED", 1), cases = number_from("CORTADO_CUT_CASES", 30);
  std::cout << cut_kind_name(GetParam()) << ": seed " << seed << ", " << cases << " cases\n";
  for (uint64_t number = 0; number < cases && !HasFailure(); ++number) {
    expect_cut_equals_whole(GetParam(), seed, number);
  }
}

// The loops of all kernels, beside others (base/thread_team.h).
TEST_P(CutLayer, EqualsWholeOnAThreadTeam) {
  const ComputeThreads threads(3);
  ThreadTeam team(3);
  const ThreadTeam::Scope loops(&team);
  for (uint64_t number = 0; number < 8 && !HasFailure(); ++number)
    expect_cut_equals_whole(GetParam(), 2, number);
}

INSTANTIATE_TEST_SUITE_P(Kinds, CutLayer, testing::Range(0, cut_kinds()));

Box box(std::initializer_list<Range> ranges) {
  std::vector<int64_t> extents(ranges.size(), 0);
  Box result = Box::whole(Shape(extents));
  int axis = 0;
  for (const Range& range : ranges) result[axis++] = range;
  return result;
}

TEST(CutTask, HoldsTheSliceOfTheWeightThatItsBoxesNeed) {
  const Shape image{2, 8, 5, 5}, features{2, 4, 3, 3};
  auto convolution = std::make_shared<Convolution>(ConvolutionOptions{.num_output = 6, .kernel = {3}});
  Task task = whole_task(convolution, Phase::train, {&image, 1}, 1);
  Task part = cut_task(task, box({{0, 2}, {3, 6}, {0, 3}, {1, 3}}), Range{2, 4});
  EXPECT_EQ(part.input_boxes[0], box({{0, 2}, {2, 4}, {0, 5}, {1, 5}}));
  EXPECT_EQ(part.parameter_box(0, 0), box({{3, 6}, {2, 4}, {0, 3}, {0, 3}}));
  EXPECT_EQ(part.parameter_box(0, 1), box({{3, 6}}));
  EXPECT_EQ(convolution->without_bias()->parameters({&image, 1}).size(), 1u);

  auto product = std::make_shared<InnerProduct>(InnerProductOptions{.num_output = 10, .transpose = true});
  task = whole_task(product, Phase::train, {&features, 1}, 1);
  part = cut_task(task, box({{0, 1}, {5, 10}}), Range{1, 3});
  EXPECT_EQ(part.parameter_box(0, 0), box({{9, 27}, {5, 10}})) << "channels 1 and 2 of nine positions each";
}

// With as many classes as samples the per-class output looks like the samples.
TEST(CutTask, TakesClassesForNoSamples) {
  auto layer = std::make_shared<Accuracy>(AccuracyOptions{});
  const Shape inputs[] = {{4, 4}, {4}};
  Task part = cut_task(whole_task(layer, Phase::test, inputs, 2), box({{0, 2}, {0, 4}}));
  EXPECT_EQ(part.output_boxes[1], box({{0, 4}}));
  EXPECT_EQ(part.input_boxes[1], box({{0, 2}}));
}

TEST(CutTask, LeavesAnInputOutThatItsBoxOfAConcatDoesNotTouch) {
  const Shape inputs[] = {{2, 3}, {2, 5}};
  auto layer = std::make_shared<Concat>(ConcatOptions{});
  Task part = cut_task(whole_task(layer, Phase::train, inputs, 1), box({{0, 2}, {4, 8}}));
  EXPECT_TRUE(part.input_boxes[0].empty());
  EXPECT_EQ(part.input_boxes[1], box({{0, 2}, {1, 5}}));
}

// Local statistics: each part is a layer of its own.
TEST(CutTask, NormalizesByItsOwnPartWhenAskedTo) {
  const Shape input{4, 3, 2, 2}, half{2, 3, 2, 2};
  auto layer = std::make_shared<BatchNorm>(BatchNormOptions{});
  Task part =
      cut_task(whole_task(layer, Phase::train, {&input, 1}, 1), box({{2, 4}, {0, 3}, {0, 2}, {0, 2}}));
  EXPECT_GT(select_kernel(part).kernel->forward_sums(), 0);
  part.local_sums = true;
  for (const char* only : {"", "reference"}) {
    Selection selection = select_kernel(part, only);
    EXPECT_EQ(selection.kernel->forward_sums() + selection.kernel->backward_sums(), 0);
    Task alone = whole_task(layer, Phase::train, {&half, 1}, 1);
    EXPECT_TRUE(matches_reference(alone, *selection.kernel, 1e-5));
  }
}

// Cut samples and image columns leave a layer to the fast kernels. (A softmax cut along its own axis does
// not.)
TEST(CutTask, StaysOnFastKernels) {
  std::mt19937_64 generator(5);
  std::map<std::string, int> slow;
  for (int kind = 0; kind < cut_kinds(); ++kind) {
    for (int number = 0; number < 20; ++number) {
      CutCase cut = random_cut_case(kind, generator);
      const Task whole = whole_task(cut);
      if (select_kernel(whole).implementation == "reference" || whole.layer().type() == "Softmax") continue;
      const Cuts cuts = whole.layer().cuts(whole.inputs);
      Box box = whole.domain_box;
      const int last = box.rank() - 1;
      if (cuts.n) box[0].end = std::max<int64_t>(1, box[0].end / 2);
      if (cuts.w && last > 1) box[last].end = std::max<int64_t>(1, box[last].end / 2);
      const Task part = cut_task(whole, box);
      if (select_kernel(part).implementation == "reference") ++slow[cut.text()];
    }
  }
  EXPECT_TRUE(slow.empty()) << slow.begin()->first;
}

}  // namespace
}  // namespace cortado::check
