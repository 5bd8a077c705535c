#include "cortado/api/convert.h"

#include <CLI/Validators.hpp>
#include <climits>
#include <filesystem>
#include <fmt/format.h>
#include <memory>

#include "cortado/app/commands.h"
#include "cortado/base/command_files.h"
#include "cortado/base/error.h"
#include "cortado/base/text.h"
#include "cortado/cli/choice_option.h"
#include "cortado/cli/file_option.h"
#include "cortado/cli/help_lines.h"
#include "cortado/cli/limits.h"
#include "cortado/cli/number_option.h"

namespace cortado {
namespace {

struct ConvertArguments {
  std::string input, weights, output, input_shape, stages;
  int level = 0;
  int batch = 0;
  bool loss = false;
  api::TensorNames names = api::TensorNames::layers;
};

bool ends_in(const std::string& name, const char* ending) { return name.ends_with(ending); }

// "DIR/" and a folder that is there: what the model is called, in it; else the name without an ending.
std::string prefix_of(const ConvertArguments& a) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path output(a.output);
  if (a.output.ends_with('/') || fs::is_directory(output, error))
    return (output / fs::path(a.input).stem()).string();
  return ends_in(a.output, ".prototxt") ? fs::path(output).replace_extension().string() : a.output;
}

api::Converted convert_from_onnx(const ConvertArguments& a) {
  if (!a.weights.empty()) throw UserError("--weights: an ONNX model has its weights; leave it out");
  const std::string prefix = prefix_of(a);
  CommandFiles files;
  files.reads(a.input);
  files.writes("--output", prefix + ".prototxt");
  files.writes("--output", prefix + ".caffemodel");
  if (a.loss) files.writes("--output", prefix + "_train_val.prototxt");
  files.check();
  return api::from_onnx(a.input, prefix, {.batch = a.batch, .input_shape = a.input_shape, .loss = a.loss});
}

api::Converted convert_net(const ConvertArguments& a) {
  if (a.loss) throw UserError("--loss is for an ONNX model that becomes a net to train; leave it out");
  CommandFiles files;
  files.reads(a.input);
  files.reads(a.weights);
  files.writes("--output", a.output);
  files.check();
  const api::ToOnnxOptions options{
      .level = a.level, .stages = split_list(a.stages), .batch = a.batch, .input_shape = a.input_shape};
  return ends_in(a.output, ".onnx") ? api::to_onnx(a.input, a.weights, a.output, options)
                                    : api::convert_weights(a.input, a.weights, a.output, options, a.names);
}

void run_convert(const ConvertArguments& a) {
  if (a.names != api::TensorNames::layers && (ends_in(a.input, ".onnx") || ends_in(a.output, ".onnx")))
    throw UserError("--layout is for weights of a net as .caffemodel, .h5 or .safetensors; leave it out");
  const api::Converted converted = ends_in(a.input, ".onnx") ? convert_from_onnx(a) : convert_net(a);
  for (const std::string& notice : converted.notices) fmt::print("Note: {}\n", printable(notice));
  for (const std::string& file : converted.files) fmt::print("Wrote {}\n", file);
}

}  // namespace

Command add_convert_command(CLI::App& app) {
  auto a = std::make_shared<ConvertArguments>();
  CLI::App* command = app.add_subcommand(
      "convert", "Convert an ONNX model to a net of Caffe's layers with weights, or such a net to ONNX");
  command->add_option("model", a->input, "An ONNX model (.onnx), or a net (.prototxt)")->required();
  command->add_option("--weights", a->weights, "Weights of the net: .caffemodel, .h5, .safetensors");
  command
      ->add_option(
          "--output", a->output,
          "Of an ONNX model: a folder, or PREFIX for PREFIX.prototxt and PREFIX.caffemodel; of a net: "
          "a file, whose ending says what: .onnx, or its weights as .caffemodel, .h5, .safetensors")
      ->required();
  add_number(*command, "--batch", a->batch, 1, most_samples_of_batch,
             "Samples of a batch; default: the file's, or 1 where that leaves them open");
  command->add_option("--input-shape", a->input_shape,
                      "Shape of a sample, 3x224x224, where the file leaves it open or has another");
  command->add_flag("--loss", a->loss,
                    "Of an ONNX model: write PREFIX_train_val.prototxt, too, with data layers and a loss");
  add_choice(*command, "--layout", a->names, {{"torchvision", api::TensorNames::torchvision}},
             "Whose names a .safetensors file has that is read or else written; default: our own");
  add_number(*command, "--level", a->level, INT_MIN, INT_MAX, "Of a net: level of its state");
  command->add_option("--stage", a->stages, "Of a net: stages of its state: a,b");
  command->footer(
      help_footer({"cortado convert resnet18.onnx --output resnet18 --loss",
                   "cortado convert deploy.prototxt --weights net.caffemodel --output net.onnx",
                   "cortado convert deploy.prototxt --weights net.caffemodel --output net.safetensors"}));
  refuse_empty_names(*command, {"model", "--weights", "--output"});
  return {command, [a] { run_convert(*a); }};
}

}  // namespace cortado
