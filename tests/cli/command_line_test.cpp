#include <CLI/Config.hpp>
#include <gtest/gtest.h>
#include <new>
#include <system_error>

#include "cortado/base/error.h"
#include "cortado/cli/arguments.h"
#include "cortado/cli/completion.h"
#include "cortado/cli/file_option.h"
#include "cortado/cli/guarded.h"
#include "cortado/cli/help_lines.h"
#include "cortado/cli/manual.h"
#include "cortado/cli/number_option.h"

namespace cortado {
namespace {

TEST(CommandLine, TakesOneFormWhateverTheDashes) {
  const char* words[] = {"cortado", "train", "-solver=a_b", "--sighup_effect", "none", "-h",
                         "-3",      "--",    "-x_y"};
  EXPECT_EQ(normalized_arguments(9, words),
            (std::vector<std::string>{"train", "--solver=a_b", "--sighup-effect", "none", "-h", "-3", "--",
                                      "-x_y"}));
}

TEST(CommandLine, TheLastValueOfAnOptionCounts) {
  const std::vector<std::string> words{"train", "--ranks", "2", "--ranks=4", "--launch", "srun -n 2"};
  EXPECT_EQ(option_value(words, "--ranks"), "4");
  EXPECT_EQ(option_value(words, "--launch"), "srun -n 2");
  EXPECT_EQ(option_value(words, "--rank"), std::nullopt);
}

TEST(CommandLine, NumbersAreWholeTexts) {
  EXPECT_EQ(number_of<int>("+3"), 3);
  EXPECT_EQ(number_of<int>("3x"), std::nullopt);
  EXPECT_EQ(number_of<int>("99999999999"), std::nullopt);
  EXPECT_EQ(numbers_of<double>("104,117.5", "--mean-value", "one"), (std::vector<double>{104, 117.5}));
  EXPECT_TRUE(numbers_of<int>("", "--resize", "two").empty());
  EXPECT_THROW(numbers_of<double>("1,nan", "--mean-value", "one"), UserError);
  EXPECT_THROW(numbers_of<double>("+104,117", "--mean-value", "one"), UserError);
  EXPECT_THROW(numbers_of<int>("256,+256", "--resize", "two"), UserError);
}

TEST(CommandLine, OptionsRefuseWhatTheirRangeHasNot) {
  CLI::App app;
  int batch = 0;
  double scale = 1;
  std::string file;
  add_number(app, "--batch", batch, 1, 8, "Batch");
  add_number(app, "--scale", scale, -2, 2, "Scale")->check(other_than_zero());
  app.add_option("--weights", file, "Weights");
  refuse_empty_names(app, {"--weights"});
  app.parse("--batch 8 --scale -0.5 --weights a,b");
  EXPECT_EQ(batch, 8);
  EXPECT_EQ(scale, -0.5);
  for (const char* line : {"--batch 9", "--batch 0", "--batch x", "--scale 0", "--scale 3", "--weights a,,b"})
    EXPECT_THROW(app.parse(line), CLI::ParseError) << line;
}

TEST(CommandLine, UnknownOptionsAreNamedWithTheNearest) {
  CLI::App app;
  app.allow_extras();
  int batch = 0;
  add_number(app, "--batch", batch, 1, 8, "Batch");
  app.parse("--bach 3");
  try {
    refuse_unknown_arguments(app);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("--batch"), std::string::npos) << error.what();
  }
}

TEST(CommandLine, HelpBreaksLongDescriptions) {
  CLI::App app;
  app.formatter(help_formatter());
  std::string value;
  std::string text;
  for (int i = 0; i < 60; ++i) text += "word ";
  app.add_option("--file", value, text);
  std::string line, help = app.help();
  for (char letter : help) {
    line = letter == '\n' ? "" : line + letter;
    EXPECT_LE(line.size(), 120u);
  }
}

int code_of(const std::function<int()>& body, std::string* message = nullptr) {
  return guarded(body, [&](ExitCode code, const std::string& text) {
    if (message != nullptr) *message = text;
    return static_cast<int>(code);
  });
}

TEST(Guarded, GivesEachErrorItsExitCodeAndOneLine) {
  std::string message;
  EXPECT_EQ(code_of([] { return 7; }), 7);
  EXPECT_EQ(code_of([]() -> int { throw UserError("net:\nwrong"); }, &message), 2);
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_EQ(code_of([]() -> int { throw PeerError("gone"); }), 3);
  EXPECT_EQ(code_of([]() -> int { throw std::bad_alloc(); }), 2);
  EXPECT_EQ(code_of([]() -> int { throw std::system_error(EAGAIN, std::generic_category()); }), 2);
  EXPECT_EQ(code_of([]() -> int { throw std::system_error(EIO, std::generic_category()); }), 70);
  EXPECT_EQ(code_of([]() -> int { throw InternalError("a law"); }), 70);
}

// A program of two commands, one of which has a command of its own.
struct Program {
  Program() {
    app.formatter(help_formatter());
    first->add_option("--kind", kind, "What's .it?")->check(CLI::IsMember({"a", "b"}))->required();
    first->add_option("files", files, "Files \\ names");
    first->footer(help_footer({"cortado first --kind a"}));
  }
  CLI::App app{"It [does]: things", "cortado"};
  std::string kind, files;
  CLI::App* first = app.add_subcommand("first", ".Begins with a dot");
  CLI::App* inner = app.add_subcommand("second", "Another")->add_subcommand("inner", "Within");
};

TEST(Help, HasItsParts) {
  Program program;
  const CLI::Option& kind = *program.first->get_option("--kind");
  EXPECT_EQ(choices_of(kind), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(choices_of(*program.first->get_option("files")).empty());
  EXPECT_EQ(examples_of(*program.first), std::vector<std::string>{"cortado first --kind a"});
  EXPECT_TRUE(examples_of(program.app).empty());
  EXPECT_EQ(words_of(*program.inner), "cortado second inner");
  EXPECT_EQ(&command_named(program.app, "first"), program.first);
  EXPECT_EQ(&command_named(program.app, ""), &program.app);
  EXPECT_THROW(command_named(program.app, "inner"), UserError);
  EXPECT_EQ(help_text(*program.first).find(".Begins with a dot"), 0u) << help_text(*program.first);
}

TEST(Manual, EscapesWhatRoffWouldObey) {
  Program program;
  const std::string page = manual_page(*program.first, "1.0-\\");
  EXPECT_EQ(page.find(".TH \"CORTADO\\-FIRST\" 1 \"\" \"cortado 1.0\\-\\e\""), 0u) << page;
  for (const char* part : {"cortado\\-first \\- .Begins with a dot\n",
                           "\\fBcortado first\\fP [\\fIOPTIONS\\fP] [\\fIfiles\\fP]\n",
                           "\\fB\\-\\-kind\\fP TEXT:{a,b} REQUIRED\nWhat's .it?\n", "\nFiles \\e names\n",
                           "\ncortado first \\-\\-kind a\n"})
    EXPECT_NE(page.find(part), std::string::npos) << part << "\n" << page;
  EXPECT_NE(manual_page(program.app, "1").find("\n\\&.Begins with a dot\n"), std::string::npos);
  EXPECT_EQ(manual_name(*program.inner), "cortado-second-inner");
}

// Descriptions are quoted for each shell; the shells themselves run what comes out in
// tests/app/help_pages.py.
TEST(Completion, QuotesDescriptions) {
  Program program;
  EXPECT_NE(zsh_completion(program.app).find("'*--kind=[What'\\''s .it?]:value:(a b)'"), std::string::npos)
      << zsh_completion(program.app);
  EXPECT_NE(fish_completion(program.app).find("-l kind -x -a 'a b' -d 'What'\\''s .it?'"), std::string::npos)
      << fish_completion(program.app);
  const std::string bash = bash_completion(program.app);
  for (const char* part :
       {"\"first --kind\") choices=\"a b\" ;;", "\"second inner\") place=\"second inner\" ;;",
        "\"second\") commands=\"inner\" options=\"-h --help\" ;;"})
    EXPECT_NE(bash.find(part), std::string::npos) << part << "\n" << bash;
}

}  // namespace
}  // namespace cortado
