#pragma once

#include <string>
#include <vector>

#include "cortado/proto/caffe.pb.h"

namespace cortado {

// Replaces the V0 description inside each `layers { layer { } }` by V1 fields and folds padding layers into
// the convolution or pooling that reads them. `lines` is kept in step with net.layers(). Throws UserError.
void upgrade_v0_layers(caffe::NetParameter& net, std::vector<int>& lines, const std::string& path);

}  // namespace cortado
