// Tasks on parts of tensors: the parts of a cut layer, each computed from its input box and its slice of the
// parameters, together give what the whole layer gives, forward and backward. Random layers, shapes and cuts;
// CORTADO_CUT_SEED and CORTADO_CUT_CASES choose others and more.
#include <cstdlib>
#include <iostream>

#include "cortado/base/error.h"

#include "tests/kernels/cut_cases.h"

namespace cortado::check {
namespace {

uint64_t number_from(const char* variable, uint64_t fallback) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : fallback;
}

// The same on the kernels of that name; success too where it computes other layers or refuses this slice.
testing::AssertionResult cut_equals_whole_or_refuses(const CutCase& cut, const std::string& only) {
  try {
    if (select_kernel(whole_task(cut), only).implementation != only) return testing::AssertionSuccess();
    return cut_equals_whole(cut, only);
  } catch (const UserError&) {
    return testing::AssertionSuccess();
  }
}

// Case `number` of a kind under a seed, however many others there are.
void expect_cut_equals_whole(int kind, uint64_t seed, uint64_t number) {
  std::mt19937_64 generator(seed * 1000003 + number * 131 + kind);
  CutCase cut = random_cut_case(kind, generator);
  for (const std::string only : {"", "reference", "onednn", "im2col-gemm"}) {
    const bool all_layers = only.empty() || only == "reference";
    EXPECT_TRUE(all_layers ? cut_equals_whole(cut, only) : cut_equals_whole_or_refuses(cut, only))
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
