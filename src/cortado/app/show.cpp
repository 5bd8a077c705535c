#include <fmt/format.h>
#include <memory>

#include "cortado/app/commands.h"
#include "cortado/app/job_options.h"
#include "cortado/app/model_options.h"
#include "cortado/base/command_files.h"
#include "cortado/base/file.h"
#include "cortado/cli/file_option.h"
#include "cortado/cli/help_lines.h"
#include "cortado/net/read_net.h"
#include "cortado/report/net_report.h"

namespace cortado {
namespace {

struct ShowArguments {
  ModelOptions model;
  std::string json, dot, prototxt;
};

void run_show(const ShowArguments& a) {
  CommandFiles files;
  add_inputs(files, a.model);
  files.writes("--json", a.json);
  files.writes("--dot", a.dot);
  files.writes("--prototxt", a.prototxt);
  files.check();
  LoadedNetwork loaded = load_without_data(a.model, Phase::test);
  const Network& network = loaded.network;
  fmt::print("{}", net_text(network));
  if (a.model.precision == Precision::bf16) fmt::print("{}", precision_text(network));
  if (!a.json.empty()) write_file_atomically(a.json, net_json(network));
  if (!a.dot.empty()) write_file_atomically(a.dot, net_dot(network));
  if (!a.prototxt.empty()) write_net(a.prototxt, read_net(a.model.model).net);
}

}  // namespace

Command add_show_command(CLI::App& app) {
  auto a = std::make_shared<ShowArguments>();
  CLI::App* command = app.add_subcommand("show", "Show a model's layers, shapes, parameters and FLOPs");
  add_model_options(*command, a->model);
  add_shape_option(*command, a->model);
  command->add_option("--json", a->json, "Write the table as JSON");
  command->add_option("--dot", a->dot, "Write the graph for Graphviz");
  command->add_option("--prototxt", a->prototxt, "Write the model file, old generations as the current one");
  command->footer(help_footer({"cortado show --model models/vgg-16/deploy.prototxt",
                               "cortado show --model old.prototxt --prototxt new.prototxt"}));
  refuse_empty_names(*command, {"--model", "--json", "--dot", "--prototxt"});
  return {command, [a] { run_show(*a); }};
}

}  // namespace cortado
