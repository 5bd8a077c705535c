#include <CLI/Validators.hpp>
#include <fmt/format.h>
#include <memory>

#include "cortado/app/commands.h"
#include "cortado/base/version.h"
#include "cortado/cli/choice_option.h"
#include "cortado/cli/completion.h"
#include "cortado/cli/help_lines.h"
#include "cortado/cli/manual.h"

namespace cortado {
namespace {

using Completion = std::string (*)(const CLI::App&);

struct HelpArguments {
  std::string command;
  bool manual = false;
  Completion completion = nullptr;
};

}  // namespace

Command add_help_command(CLI::App& app) {
  auto a = std::make_shared<HelpArguments>();
  CLI::App* command = app.add_subcommand("help", "Print help, manual pages and completions for shells");
  command->add_option("command", a->command, "A command; without one, of the whole program");
  CLI::Option* manual = command->add_flag("--man", a->manual, "Print the manual page, for man -l");
  add_choice<Completion>(*command, "--completion", a->completion,
                         {{"bash", bash_completion}, {"fish", fish_completion}, {"zsh", zsh_completion}},
                         "Print what lets this shell complete command lines: bash, zsh or fish")
      ->excludes(manual);
  command->footer(help_footer({"cortado help train", "cortado help --man train > cortado-train.1",
                               "source <(cortado help --completion bash)"}));
  return {command, [a, &app] {
            const CLI::App& of = command_named(app, a->command);
            if (a->completion != nullptr)
              fmt::print("{}", a->completion(app));
            else
              fmt::print("{}", a->manual ? manual_page(of, version()) : help_text(of));
          }};
}

}  // namespace cortado
