#pragma once

#include "cortado/net/network.h"
#include "cortado/proto/caffe.pb.h"

namespace cortado {

// A layer of Caffe's newest generation as a declaration with its concrete Layer. Throws UserError naming
// file, line and layer: unknown or unsupported type (with the nearest known one), wrong option.
LayerDeclaration declare_layer(const caffe::LayerParameter& layer, const SourceLocation& where);

// Asks for the gradient of every bottom that can have one and that the file does not decide.
void force_backward(LayerDeclaration& layer);

}  // namespace cortado
