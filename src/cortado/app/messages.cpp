#include "cortado/app/messages.h"

#include <CLI/Validators.hpp>
#include <fmt/format.h>

#include "cortado/comm/launched_rank.h"
#include "cortado/terminal/log_lines.h"

namespace cortado {

void print_notice(const std::string& line) { fmt::print(stderr, "cortado: {}\n", line); }

void print_choice(const AutoChoice& choice) {
  for (const std::string& line : choice.lines()) log_line(our_line, line);
}

JobCutMessages printed_messages() { return {print_notice, print_choice}; }

void print_warnings(const std::vector<std::string>& lines) {
  if (launched_rank().value_or(LaunchedRank{}).rank > 0) return;
  for (const std::string& line : lines) fmt::print(stderr, "warning: {}\n", line);
}

void add_log_format_option(CLI::App& command, std::string& name) {
  command
      .add_option("--log-format", name,
                  "Print Caffe's lines: caffe (as its logger writes them, for scripts that read its logs) or "
                  "plain (the text alone); default: caffe in files and pipes, progress on a terminal")
      ->check(CLI::IsMember({"caffe", "plain"}));
}

void print_passed_over(const std::string& file, const PassedOver& layers) {
  for (const std::string& layer : layers.of_network)
    log_line(our_line, fmt::format("  layer '{}' is not in {}: it keeps the values it had", layer, file));
  for (const std::string& layer : layers.of_file)
    log_line(our_line, fmt::format("  layer '{}' of {} is not in the net", layer, file));
}

void print_kernels(const Executor& executor, const std::string& title) {
  fmt::print(stderr, "Kernels of {}:\n", title);
  for (const std::string& line : executor.kernel_report()) fmt::print(stderr, "  {}\n", line);
  for (const std::string& line : executor.device_report()) fmt::print(stderr, "  {}\n", line);
}

}  // namespace cortado
