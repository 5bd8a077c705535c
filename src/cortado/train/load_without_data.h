#pragma once

#include <string>
#include <vector>

#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"

namespace cortado {

// Shapes of `tops` blobs of a source: "3x32x32", or "1x64x64,64x64" where the second top has extents, too,
// each after the batch size. The others are a number a sample. Throws UserError.
std::vector<Shape> parse_input_shapes(const std::string& text, int batch, size_t tops);

// The network of `file` that `state` asks for, its data replaced: shapes of source layers come from the
// layer's own options, else from `input_shape`, else from its database or list, else (no such file) from its
// crop size.
//   input_shape  "3x32x32", or "1x64x64,64x64" where the second top has extents, too; empty: none
//   batch        samples of inputs without a shape in the file
// Throws UserError when none of them has the shapes.
LoadedNetwork load_without_data(NetFile file, const caffe::NetState& state, const std::string& input_shape,
                                int batch);

}  // namespace cortado
