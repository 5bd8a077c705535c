#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <functional>
#include <new>
#include <optional>
#include <string>

#include "cortado/app/arguments.h"
#include "cortado/app/commands.h"
#include "cortado/app/launch.h"
#include "cortado/app/version.h"
#include "cortado/base/error.h"

namespace cortado {
namespace {

void run_command(int count, const char* const* words) {
  CLI::App app{"Cortado trains convolutional networks from Caffe's files.", "cortado"};
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", std::string(version()));
  app.allow_extras();  // handed down to the subcommands; refuse_unknown_arguments looks at the rest
  std::vector<Command> commands{add_train_command(app),    add_test_command(app), add_time_command(app),
                                add_verify_command(app),   add_plan_command(app), add_machine_command(app),
                                add_simulate_command(app), add_show_command(app), add_data_command(app)};

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
  throw UserError(
      "give a command: train, test, time, verify, show, machine or data ('cortado --help' tells more)");
}

// Runs `body`; what it throws becomes an exit code and a message for `report`.
int guarded(const std::function<int()>& body,
            const std::function<int(ExitCode, const std::string&)>& report) {
  try {
    return body();
  } catch (const UserError& error) {
    return report(ExitCode::user_error, error.what());
  } catch (const PeerError& error) {
    return report(ExitCode::peer_error, error.what());
  } catch (const std::bad_alloc&) {
    return report(ExitCode::user_error, "out of memory; give a smaller batch_size");
  } catch (const std::exception& error) {
    return report(ExitCode::internal_error, fmt::format("internal error: {}", error.what()));
  }
}

int print_error(ExitCode code, const std::string& message) {
  std::fflush(stdout);
  fmt::print(stderr, "cortado: error: {}\n", message);
  return static_cast<int>(code);
}

// Work of this process, alone or as a rank.
int run_member(int count, const char* const* words) {
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
  auto body = [&] {
    std::optional<int> started = start_job(count, words);
    return started ? *started : run_member(count, words);
  };
  return guarded(body, print_error);
}
