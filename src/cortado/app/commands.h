#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <string>

namespace cortado {

// A subcommand of `cortado`: its options, and what it does once they are parsed. `run` throws UserError for
// wrong input; main() turns exceptions into the exit codes of base/error.h.
struct Command {
  CLI::App* options = nullptr;
  std::function<void()> run;
};

// Each adds one subcommand. Option names are written with dashes ("--sighup-effect"); main() also takes them
// as Caffe writes them ("-sighup_effect"). `command_line`: as it was typed, for what is written of it.
Command add_train_command(CLI::App& app, const std::string& command_line);
Command add_test_command(CLI::App& app);
Command add_classify_command(CLI::App& app);
Command add_extract_command(CLI::App& app);
Command add_convert_command(CLI::App& app);
Command add_time_command(CLI::App& app, const std::string& command_line);
Command add_verify_command(CLI::App& app);
Command add_plan_command(CLI::App& app, const std::string& command_line);
Command add_simulate_command(CLI::App& app, const std::string& command_line);
Command add_show_command(CLI::App& app);
Command add_machine_command(CLI::App& app);
Command add_data_command(CLI::App& app);
Command add_device_query_command(CLI::App& app);
Command add_help_command(CLI::App& app);

}  // namespace cortado
