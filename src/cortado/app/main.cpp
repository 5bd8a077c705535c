#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <string>

#include "cortado/app/commands.h"
#include "cortado/app/launch.h"
#include "cortado/base/error.h"
#include "cortado/base/version.h"
#include "cortado/cli/arguments.h"
#include "cortado/cli/guarded.h"
#include "cortado/cli/help_lines.h"
#include "cortado/comm/launched_rank.h"
#include "cortado/job/crash_handlers.h"
#include "cortado/job/membership.h"
#include "cortado/terminal/terminal.h"

namespace cortado {
namespace {

void run_command(int count, const char* const* words) {
  CLI::App app{"Cortado trains convolutional networks from Caffe's files.", "cortado"};
  app.formatter(help_formatter());
  app.footer(help_footer());
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", std::string(version()));
  app.allow_extras();  // handed down to the subcommands; refuse_unknown_arguments looks at the rest
  const std::string line = command_line(count, words);
  std::vector<Command> commands{
      add_train_command(app, line),  add_test_command(app),       add_classify_command(app),
      add_extract_command(app),      add_time_command(app, line), add_verify_command(app),
      add_plan_command(app, line),   add_machine_command(app),    add_simulate_command(app, line),
      add_show_command(app),         add_data_command(app),       add_convert_command(app),
      add_device_query_command(app), add_help_command(app)};

  std::vector<std::string> arguments = normalized_arguments(count, words);
  std::reverse(arguments.begin(), arguments.end());  // the order that CLI11 takes
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return;
  } catch (const CLI::CallForVersion& call) {
    fmt::print("{}\n", call.what());
    return;
  } catch (const CLI::ParseError& error) {
    refuse_unknown_arguments(app);
    throw UserError(error.what());
  }
  refuse_unknown_arguments(app);
  for (const Command& command : commands) {
    if (command.options->parsed()) return command.run();
  }
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.options->get_name());
  throw UserError(fmt::format("give a command: {} ('cortado --help' tells more)", fmt::join(names, ", ")));
}

int print_error(ExitCode code, const std::string& message) {
  print_error_line(message);
  return static_cast<int>(code);
}

// Does the work of this process, alone or as a rank.
int run_member(int count, const char* const* words) {
  if (launched_rank()) follow_terminal_of_job();
  JobMembership membership;
  auto body = [&] {
    run_command(count, words);
    return membership.leave(static_cast<int>(ExitCode::done));
  };
  return guarded(body, [&](ExitCode code, const std::string& message) {
    return membership.leave(static_cast<int>(code), message);
  });
}

}  // namespace
}  // namespace cortado

int main(int count, char** words) {
  using namespace cortado;
  open_standard_streams();
  end_process_on_guarded_crash();
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond `ulimit -f` becomes an error of writing it, as a full disk
  auto body = [&] {
    std::optional<int> started = start_job(count, words);
    return started ? *started : run_member(count, words);
  };
  return guarded(body, print_error);
}
