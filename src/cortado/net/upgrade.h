#pragma once

#include <string>
#include <vector>

#include "cortado/proto/caffe.pb.h"

namespace cortado {

// Brings a net of any generation to the newest: V0 and V1 layers with transformations in their data
// parameters, input fields (to Input layers), parameter multipliers of BatchNorm. `lines` holds the line of
// each `layers` or `layer` entry and is kept in step. Throws UserError naming `path` and line.
void upgrade_net(caffe::NetParameter& net, std::vector<int>& lines, const std::string& path);

// A new layer "input" of type Input in front, without tops and shapes.
caffe::LayerParameter& add_input_layer(caffe::NetParameter& net, std::vector<int>& lines);

// solver_type to type. Throws UserError when both are given.
void upgrade_solver(caffe::SolverParameter& solver, const std::string& path);

}  // namespace cortado
