#pragma once

// UserLayer: derive from it to compute layers of type Python in the program. MakeUserLayer makes those that a
// model file names; NetworkOptions and TrainerOptions take it.
#include "cortado/layers/user_layer.h"

namespace cortado::api {

using cortado::MakeUserLayer;
using cortado::UserLayer;
using cortado::UserLayerText;
using cortado::UserTensor;
using cortado::UserTensors;

}  // namespace cortado::api
