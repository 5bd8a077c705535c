#pragma once

#include <CLI/App.hpp>
#include <initializer_list>
#include <string>

#include "cortado/app/common.h"
#include "cortado/base/command_files.h"

namespace cortado {

// Lets these options of a command refuse an empty name (of --weights, also one within a,b): it would count as
// not given.
void refuse_empty_names(CLI::App& command, std::initializer_list<const char*> options);

// What these options have a command read.
void add_inputs(CommandFiles& files, const ModelOptions& model);
void add_inputs(CommandFiles& files, const MachineOptions& machine);
// What running a net reads and writes.
void add_files(CommandFiles& files, const NetFile& net);

// Rank 0 checks, since it alone writes; all ranks call it and learn what is wrong.
void check(const CommandFiles& files, Communicator& job);

}  // namespace cortado
