#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <unistd.h>

#include "cortado/app/arguments.h"
#include "cortado/app/commands.h"
#include "cortado/app/crash_handlers.h"
#include "cortado/app/help.h"
#include "cortado/app/launch.h"
#include "cortado/base/error.h"
#include "cortado/base/resident_memory.h"
#include "cortado/base/text.h"
#include "cortado/base/version.h"

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
      add_train_command(app),      add_test_command(app),       add_classify_command(app),
      add_extract_command(app),    add_time_command(app, line), add_verify_command(app),
      add_plan_command(app, line), add_machine_command(app),    add_simulate_command(app, line),
      add_show_command(app),       add_data_command(app),       add_device_query_command(app)};

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

// A descriptor below 3 that is closed would be given to the next file that is opened, and what is printed
// would go there.
void open_standard_streams() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor)
    if (fcntl(descriptor, F_GETFD) < 0) (void)!open("/dev/null", O_RDWR);
}

// Nobody knows here what the memory was for.
std::string out_of_memory() {
  return fmt::format(
      "out of memory: the system gives this process no more than the {:.1f} MiB that it has; a net needs "
      "less with a "
      "smaller batch_size",
      static_cast<double>(peak_resident_memory().count) / (1 << 20));
}

// Runs `body`; what it throws becomes an exit code and a message, one line, for `tell`.
int guarded(const std::function<int()>& body, const std::function<int(ExitCode, const std::string&)>& tell) {
  auto report = [&](ExitCode code, std::string_view message) { return tell(code, message_line(message)); };
  try {
    return body();
  } catch (const UserError& error) {
    return report(ExitCode::user_error, error.what());
  } catch (const PeerError& error) {
    return report(ExitCode::peer_error, error.what());
  } catch (const std::bad_alloc&) {
    return report(ExitCode::user_error, out_of_memory());
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again)
      return report(ExitCode::internal_error, fmt::format("internal error: {}", error.what()));
    return report(ExitCode::user_error,
                  "the system gives this process no more threads; give fewer --threads or --reader-threads, "
                  "or raise `ulimit -u`");
  } catch (const std::exception& error) {
    return report(ExitCode::internal_error, fmt::format("internal error: {}", error.what()));
  }
}

int print_error(ExitCode code, const std::string& message) {
  std::fflush(stdout);
  std::fputs(fmt::format("cortado: error: {}\n", message).c_str(),
             stderr);  // fmt::print would throw where it cannot
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
  open_standard_streams();
  end_process_on_guarded_crash();
  std::signal(SIGXFSZ,
              SIG_IGN);  // a file beyond `ulimit -f` is then an error of writing it, as a full disk is
  auto body = [&] {
    std::optional<int> started = start_job(count, words);
    return started ? *started : run_member(count, words);
  };
  return guarded(body, print_error);
}
