#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "cortado/auto/job_cut.h"
#include "cortado/exec/executor.h"
#include "cortado/train/trainer.h"

namespace cortado {

// Adds --log-format, the name for set_log_format() (terminal/log_lines.h).
void add_log_format_option(CLI::App& command, std::string& name);

// Prints what a user should know though the work goes on, on stderr.
void print_notice(const std::string& line);
// Prints what the user should know of a file, on stderr of the first rank.
void print_warnings(const std::vector<std::string>& lines);
// Prints what `--strategy auto` chose and why.
void print_choice(const AutoChoice& choice);
// Returns what prints notices and choices.
JobCutMessages printed_messages();

// Prints the layers that loading the weights of `file` passed over.
void print_passed_over(const std::string& file, const PassedOver& layers);
// Prints which kernel each task got, on stderr.
void print_kernels(const Executor& executor, const std::string& title);

}  // namespace cortado
