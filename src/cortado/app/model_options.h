#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "cortado/base/command_files.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/source_override.h"

namespace cortado {

// Options that say which network of a model file is meant.
struct ModelOptions : NetChanges {
  std::string model;
  std::string phase;
  int level = 0;
  std::string stages;       // "a,b"
  std::string input_shape;  // "3x227x227", where the data are not at hand
};
void add_model_options(CLI::App& command, ModelOptions& options);
void add_precision_option(CLI::App& command, Precision& precision);
// Adds --source, or an option of another `name`. `net`: whose data it gives, as in "the net".
void add_source_option(CLI::App& command, const std::string& name, std::vector<std::string>& sources,
                       const std::string& net);
// Adds --input-shape, for the commands that need no data.
void add_shape_option(CLI::App& command, ModelOptions& options);

// Returns the state that chooses the layers of the model `file`. `otherwise`: the phase without --phase.
caffe::NetState net_state_of(const ModelOptions& options, const NetFile& file, Phase otherwise);
// Builds the net that net_state_of() chooses. Opens its data only where their shapes cannot be known
// otherwise.
LoadedNetwork load_without_data(const ModelOptions& options, Phase otherwise);
// Adds the files that these options have a command read.
void add_inputs(CommandFiles& files, const ModelOptions& options);

}  // namespace cortado
