#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "cortado/layers/user_layer.h"
#include "cortado/net/network.h"
#include "cortado/proto/caffe.pb.h"

namespace cortado {

// A layer of Caffe's newest generation as a declaration with its concrete Layer. Throws UserError naming
// file, line and layer: unknown or unsupported type (with the nearest known one), wrong option. `user_layers`
// makes layers of type Python; null: there are none.
LayerDeclaration declare_layer(const caffe::LayerParameter& layer, const SourceLocation& where,
                               const MakeUserLayer& user_layers = {});

// The types of Caffe's layers that are read, in alphabetical order; and those that are left out, with why or
// what to use instead.
std::vector<std::string_view> supported_layer_types();
std::map<std::string_view, std::string_view> refused_layer_types();

// Asks for the gradient of every bottom that can have one and that the file does not decide.
void force_backward(LayerDeclaration& layer);

}  // namespace cortado
