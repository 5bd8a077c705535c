#pragma once

#include <string>
#include <vector>

#include "cortado/net/net_file.h"

namespace cortado {

// Gives a Data, ImageData or HDF5Data layer of the net that `state` asks for another `source`: "LAYER=PATH",
// or "PATH" where one layer alone has a source. Throws UserError naming `what`: no such layer, or several
// to choose from.
void override_source(NetFile& file, const caffe::NetState& state, const std::string& assignment,
                     const std::string& what);

// Sets the batch size of every source layer.
void override_batch(caffe::NetParameter& net, int batch);

// What a user says of one net of a file in place of the file.
struct NetChanges {
  int batch = 0;                       // 0: as the file says
  std::vector<std::string> sources{};  // "PATH" or "LAYER=PATH"
  Precision precision = Precision::f32;
};
// `what`: what errors call a source.
void change_net(NetFile& file, const caffe::NetState& state, const NetChanges& changes,
                const std::string& what = "source");

}  // namespace cortado
