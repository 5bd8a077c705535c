// The law of reproducible kernels (kernels/blocked.h): the result of a part is the part of the whole's
// result, bit for bit, for any number of threads. Random layers; those of tests/kernels/cut_test.cpp.
#include <gtest/gtest.h>
#include <map>

#include "cortado/base/thread_team.h"
#include "cortado/kernels/select.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/sum_blocks.h"

#include "tests/kernels/cut_cases.h"

namespace cortado::check {
namespace {

// Kinds whose layers have no samples to cut, or none that lie in one piece.
bool never_cut(const std::string& kind) {
  return kind == "reducing layers" || kind == "shape layers" || kind == "recurrent";
}

class Law : public testing::TestWithParam<int> {};

// Halves of the samples: two nodes of the tree.
TEST_P(Law, APartOfTheSamplesIsAPartOfTheWhole) {
  std::mt19937_64 generator(static_cast<uint64_t>(GetParam()) + 77);
  int held = 0;
  for (int number = 0; number < 60; ++number) {
    CutCase cut = random_cut_case(GetParam(), generator);
    cut.tolerance = same_bits;
    const Task whole = whole_task(cut);
    if (sample_blocks(whole.layer(), whole.inputs, whole.outputs) < 2) continue;
    if (!select_kernel(cut_task(whole, whole.domain_box), reproducible_kernels).kernel)
      continue;  // a chain that falls apart
    cut.degrees = {.n = 2};
    for (int threads : {1, 2, 3})
      ASSERT_TRUE(part_is_part_of_whole(cut, reproducible_kernels, threads))
          << cut.text() << "\n"
          << threads << " threads, case " << number;
    ++held;
  }
  EXPECT_TRUE(held > 0 || never_cut(cut_kind_name(GetParam())));
}

// On a team a thread takes what parts the others have not begun: which, changes no bit.
TEST_P(Law, HoldsOnAThreadTeam) {
  ThreadTeam team(3);
  const ThreadTeam::Scope loops(&team);
  std::mt19937_64 generator(static_cast<uint64_t>(GetParam()) + 177);
  for (int number = 0; number < 20; ++number) {
    CutCase cut = random_cut_case(GetParam(), generator);
    cut.tolerance = same_bits;
    const Task whole = whole_task(cut);
    if (sample_blocks(whole.layer(), whole.inputs, whole.outputs) < 2) continue;
    if (!select_kernel(cut_task(whole, whole.domain_box), reproducible_kernels).kernel) continue;
    cut.degrees = {.n = 2};
    ASSERT_TRUE(part_is_part_of_whole(cut, reproducible_kernels, 3)) << cut.text() << "\ncase " << number;
  }
}

// Layers that may be cut by channel though they sum nothing over channels in blocks.
TEST(ChannelLaw, APartOfTheChannelsIsAPartOfTheWhole) {
  std::mt19937_64 generator(78);
  std::map<std::string, int> held;
  for (int kind = 0; kind < cut_kinds(); ++kind) {
    for (int number = 0; number < 60; ++number) {
      CutCase cut = random_cut_case(kind, generator);
      const std::string type(cut.layers[0]->type());
      const Task whole = whole_task(cut);
      if (cut.layers.size() > 1 || !channels_stand_alone(whole.layer())) continue;
      if (!whole.layer().cuts(whole.inputs).c || whole.domain_box[1].size() < 2) continue;
      cut.tolerance = same_bits;
      cut.degrees = {.c = 2};
      ASSERT_TRUE(part_is_part_of_whole(cut, reproducible_kernels, 2)) << cut.text();
      ++held[type];
    }
  }
  EXPECT_EQ(held.size(), 8U);
}

// Products whose sums depend on no box: cut by outputs into nodes of the tree, and by samples, too.
TEST(ChannelLaw, APartOfAProductsOutputsIsAPartOfTheWhole) {
  std::mt19937_64 generator(79);
  std::map<std::string, int> held;
  for (int kind = 0; kind < cut_kinds(); ++kind) {
    for (int number = 0; number < 60; ++number) {
      CutCase cut = random_cut_case(kind, generator);
      const Task whole = whole_task(cut);
      if (!has_fixed_products(whole.layer(), whole.inputs, whole.outputs)) continue;
      if (!select_kernel(cut_task(whole, whole.domain_box), reproducible_kernels).kernel) continue;
      if (channel_blocks(whole.layer(), whole.inputs, whole.outputs) < 2) continue;
      cut.tolerance = same_bits;
      cut.degrees = {.c = 2};
      for (int threads : {1, 2, 3})
        ASSERT_TRUE(part_is_part_of_whole(cut, reproducible_kernels, threads)) << cut.text();
      ++held[std::string(whole.layer().type())];
    }
  }
  EXPECT_EQ(held.size(), 3U);
}

// Half of its outputs are so few that the gradient of other weights would be summed where the rows lie.
TEST(ChannelLaw, APartOfAPointwiseConvolutionIsAPartOfTheWhole) {
  CutCase cut{.layers = {std::make_shared<Convolution>(ConvolutionOptions{.num_output = 128, .kernel = {1}})},
              .inputs = {{8, 128, 15, 15}}};
  cut.tolerance = same_bits;
  cut.degrees = {.c = 2};
  for (int threads : {1, 2}) EXPECT_TRUE(part_is_part_of_whole(cut, reproducible_kernels, threads));
}

// Halves of the outputs of inner products, and their blocks.
TEST(ChannelLaw, APartOfAnInnerProductIsAPartOfTheWhole) {
  for (const int64_t outputs : {2, 12, 16, 40}) {
    CutCase cut{.layers = {std::make_shared<InnerProduct>(InnerProductOptions{.num_output = outputs})},
                .inputs = {{8, 5, 3, 3}}};
    cut.tolerance = same_bits;
    for (const auto& [n, c] : std::vector<std::pair<int64_t, int64_t>>{{1, 2}, {2, 1}}) {
      cut.degrees = {.n = n, .c = c};
      for (int threads : {1, 2, 3})
        EXPECT_TRUE(part_is_part_of_whole(cut, reproducible_kernels, threads)) << outputs << " outputs";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Law, testing::Range(0, cut_kinds()));

}  // namespace
}  // namespace cortado::check
