#pragma once

#include <filesystem>
#include <fstream>
#include <stdlib.h>
#include <string>

#include "cortado/base/error.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"

#include "tests/base/scratch_folder.h"

namespace cortado {

// A net of two outputs: 'side' is read from the convolution before its ReLU, 'prob' after it.
inline NetFile branched_net() {
  return parse_net(R"(name: "branched"
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 3 dim: 3 dim: 4 dim: 5 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } bias_filler { value: 1 } } }

layer { name: "side" type: "Pooling" bottom: "conv" top: "side" pooling_param { pool: AVE kernel_size: 2 } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "score" type: "InnerProduct" bottom: "conv" top: "score"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "score" top: "prob" }
)",
                   "branched.prototxt");
}

}  // namespace cortado
