#pragma once

#include <CLI/App.hpp>
#include <initializer_list>

namespace cortado {

// Lets these options of a command refuse an empty name (of --weights, also one within a,b): it would count as
// not given.
void refuse_empty_names(CLI::App& command, std::initializer_list<const char*> options);

}  // namespace cortado
