#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cortado/base/command_files.h"
#include "cortado/train/parameter_cut.h"

namespace cortado {

// What the ranks of a job do together around files. All of them call these, in the same order.

// The whole parameter `p` in canonical order, at rank 0; empty elsewhere. Each slice is sent once. `memory`:
// of an array that is done with, to be used again.
std::vector<float> gather_parameter(const ParameterCut& cut, const ParameterStore& parameters,
                                    ParameterIndex p, std::vector<float> memory = {});

// The same of an array that lies as the elements that each rank updates (solver history), in memory of the
// parameters' device; `own` may be null where that is none.
std::vector<float> gather_history(const ParameterCut& cut, const ParameterStore& parameters, ParameterIndex p,
                                  const float* own, std::vector<float> memory = {});
// Its inverse, without communication: takes this rank's elements out of the whole.
void take_history(const ParameterCut& cut, const ParameterStore& parameters, ParameterIndex p,
                  std::span<const float> whole, float* own);

// Runs `action` at rank 0 and returns its text at every rank; what it throws there is thrown everywhere.
std::string at_first_rank(Communicator* communicator, const std::function<std::string()>& action);

// The largest of all ranks' values, element by element. (A rank that reads nothing of a data set keeps an old
// position in it, so the largest position is the true one.)
std::vector<int64_t> largest_of_ranks(Communicator* communicator, std::vector<int64_t> values);

// How many different pairs the ranks have together.
int64_t count_over_ranks(Communicator* communicator, std::span<const std::pair<int64_t, int64_t>> own);

// Rank 0 checks what a command reads and writes, since it alone writes; all ranks learn what is wrong.
void check_command_files(const CommandFiles& files, Communicator& job);

}  // namespace cortado
