#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <new>

#include "cortado/app/arguments.h"
#include "cortado/app/commands.h"
#include "cortado/base/error.h"

namespace cortado {
namespace {

void run_command(int count, const char* const* words) {
  CLI::App app{"Cortado trains convolutional networks from Caffe's files.", "cortado"};
  app.require_subcommand(0, 1);
  app.allow_extras();  // handed down to the subcommands; refuse_unknown_arguments looks at the rest
  std::vector<Command> commands{add_train_command(app), add_test_command(app), add_time_command(app),
                                add_show_command(app), add_data_command(app)};

  std::vector<std::string> arguments = normalized_arguments(count, words);
  std::reverse(arguments.begin(), arguments.end());  // the order that CLI11 takes
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return;
  } catch (const CLI::ParseError& error) {
    refuse_unknown_arguments(app);
    throw UserError(error.what());
  }
  refuse_unknown_arguments(app);
  for (const Command& command : commands) {
    if (command.options->parsed()) return command.run();
  }
  throw UserError("give a command: train, test, time, show or data ('cortado --help' tells more)");
}

int report_error(const char* message, ExitCode code) {
  std::fflush(stdout);
  fmt::print(stderr, "cortado: error: {}\n", message);
  return static_cast<int>(code);
}

}  // namespace
}  // namespace cortado

int main(int count, char** words) {
  using namespace cortado;
  try {
    run_command(count, words);
    return static_cast<int>(ExitCode::done);
  } catch (const UserError& error) {
    return report_error(error.what(), ExitCode::user_error);
  } catch (const std::bad_alloc&) {
    return report_error("out of memory; give a smaller batch_size", ExitCode::user_error);
  } catch (const std::exception& error) {
    return report_error(fmt::format("internal error: {}", error.what()).c_str(), ExitCode::internal_error);
  }
}
