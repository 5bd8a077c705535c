#pragma once

#include <random>

#include "tests/kernels/cut_run.h"

namespace cortado::check {

// The number in an environment variable, or `fallback`.
uint64_t number_from(const char* variable, uint64_t fallback);

// Number of kinds of layers that random cases are made of, and a kind's name.
int cut_kinds();
const char* cut_kind_name(int kind);

// A random layer of that kind, of random shape, cut at random along the dimensions that it allows.
CutCase random_cut_case(int kind, std::mt19937_64& generator);

}  // namespace cortado::check
