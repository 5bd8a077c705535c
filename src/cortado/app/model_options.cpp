#include "cortado/app/model_options.h"

#include <CLI/Validators.hpp>
#include <climits>
#include <fmt/format.h>

#include "cortado/app/messages.h"
#include "cortado/base/text.h"
#include "cortado/cli/choice_option.h"
#include "cortado/cli/limits.h"
#include "cortado/cli/number_option.h"
#include "cortado/net/read_net.h"
#include "cortado/train/load_without_data.h"

namespace cortado {

void add_model_options(CLI::App& command, ModelOptions& o) {
  command.add_option("--model", o.model, "Model file (prototxt)")->required();
  command.add_option("--phase", o.phase, "TRAIN or TEST; default: TEST for test and show, else TRAIN")
      ->check(CLI::IsMember({"TRAIN", "TEST"}, CLI::ignore_case));
  add_number(command, "--level", o.level, INT_MIN, INT_MAX,
             "Level of the net state, in place of the model file's");
  command.add_option("--stage", o.stages, "Stages of the net state, besides the model file's: a,b");
  add_number(command, "--batch", o.batch, 1, most_samples_of_batch,
             "Batch size of all source layers; default: the model file's");
  add_precision_option(command, o.precision);
  add_source_option(command, "--source", o.sources, "the net");
}

void add_precision_option(CLI::App& command, Precision& precision) {
  add_choice<Precision>(command, "--precision", precision,
                        {{"f32", Precision::f32}, {"bf16", Precision::bf16}},
                        "f32, or bf16: activations, their gradients and the weights that kernels read are "
                        "bfloat16, all else stays f32; default: f32");
}

void add_source_option(CLI::App& command, const std::string& name, std::vector<std::string>& sources,
                       const std::string& net) {
  command
      .add_option(
          name, sources,
          fmt::format("Data of {} (LMDB, image list or list of HDF5 files) in place of what its file names: "
                      "PATH, or LAYER=PATH where several layers have a source (repeatable)",
                      net))
      ->type_name("PATH")
      ->allow_extra_args(false);
}

void add_shape_option(CLI::App& command, ModelOptions& o) {
  command.add_option(
      "--input-shape", o.input_shape,
      "Shape of a sample, 3x227x227, where the data are not at hand; of a sample and its labels, "
      "1x64x64,64x64, where each position has one");
}

caffe::NetState net_state_of(const ModelOptions& o, const NetFile& file, Phase otherwise) {
  Phase phase = o.phase.empty() ? otherwise : (std::toupper(o.phase[1]) == 'R' ? Phase::train : Phase::test);
  return net_state(file, phase, o.level, split_list(o.stages));
}

LoadedNetwork load_without_data(const ModelOptions& o, Phase otherwise) {
  NetFile file = read_net(o.model);
  print_warnings(file.warnings);
  const caffe::NetState state = net_state_of(o, file, otherwise);
  change_net(file, state, o);
  return load_without_data(std::move(file), state, o.input_shape, o.batch);
}

void add_inputs(CommandFiles& files, const ModelOptions& model) { files.reads(model.model); }

}  // namespace cortado
