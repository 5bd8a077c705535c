#pragma once

#include <string>

#include "cortado/net/net_file.h"

namespace cortado {

// Gives a Data, ImageData or HDF5Data layer of the net that `state` asks for another `source`: "LAYER=PATH",
// or "PATH" where one layer alone has a source. Throws UserError naming `option`: no such layer, or several
// to choose from.
void override_source(NetFile& file, const caffe::NetState& state, const std::string& assignment,
                     const std::string& option);

// Sets the batch size of every source layer.
void override_batch(caffe::NetParameter& net, int batch);

}  // namespace cortado
