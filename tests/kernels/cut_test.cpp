// Tasks on parts of tensors: the parts of a cut layer, each computed from its input box and its slice of the
// parameters, together give what the whole layer gives, forward and backward. Random layers, shapes and cuts;
// CORTADO_CUT_SEED and CORTADO_CUT_CASES choose others and more.
#include <cstdlib>
#include <iostream>

#include "cortado/layers/batch_norm.h"
#include "cortado/layers/convolution.h"

#include "tests/kernels/cut_cases.h"

namespace cortado::check {
namespace {

uint64_t number_from(const char* variable, uint64_t fallback) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : fallback;
}

// Case `number` of a kind under a seed, however many others there are.
void expect_cut_equals_whole(int kind, uint64_t seed, uint64_t number) {
  std::mt19937_64 generator(seed * 1000003 + number * 131 + kind);
  CutCase cut = random_cut_case(kind, generator);
  for (const char* only : {"", "reference"}) {
    EXPECT_TRUE(cut_equals_whole(cut, only))
        << cut.text() << "\nkernels '" << only << "'; paste as: expect_cut_equals_whole(" << kind << ", "
        << seed << ", " << number << ");  // " << cut_kind_name(kind);
  }
}

class CutLayer : public testing::TestWithParam<int> {};

TEST_P(CutLayer, EqualsWhole) {
  const uint64_t seed = number_from("CORTADO_CUT_SEED", 1), cases = number_from("CORTADO_CUT_CASES", 30);
  std::cout << cut_kind_name(GetParam()) << ": seed " << seed << ", " << cases << " cases\n";
  for (uint64_t number = 0; number < cases && !HasFailure(); ++number) {
    expect_cut_equals_whole(GetParam(), seed, number);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, CutLayer, testing::Range(0, cut_kinds()));

}  // namespace
}  // namespace cortado::check
