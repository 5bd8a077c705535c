#pragma once

#include <string>

#include "cortado/proto/onnx.pb.h"

namespace cortado::onnx {

// The bytes of a tensor that lie in a file beside the model. `folder`: the model's; empty: the model is no
// file. Throws UserError without the tensor's name: a path that is absolute or leads out of the folder, no
// regular file, a range that the file does not have.
std::string read_external_data(const TensorProto& tensor, const std::string& folder);

}  // namespace cortado::onnx
