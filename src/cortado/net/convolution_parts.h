#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cortado/net/network.h"

namespace cortado {

// Caffe's Convolution and Deconvolution filter several bottoms, each into its top, and have the channels on
// any axis; the layers of those types have one input, with the channels on axis 1. What computes `layer` of
// such inputs: for each bottom the layer, the first under its own name, the others as its parts; around it,
// where the channels are elsewhere, a Reshape that makes one axis of all before them, and one that takes it
// apart. Without spatial axes it is an InnerProduct. Any other layer: itself. `unused` makes a name of layer
// and blob that no other has, from a proposal. Throws UserError on what Caffe refuses, too.
std::vector<LayerDeclaration> convolution_parts(const LayerDeclaration& layer, std::span<const Shape> inputs,
                                                const std::function<std::string(std::string)>& unused);

}  // namespace cortado
