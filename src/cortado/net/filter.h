#pragma once

#include "cortado/net/net_file.h"

namespace cortado {

// Whether `state` meets a rule: phase equal, level within [min_level, max_level], all stages present, no
// not_stage present.
bool meets(const caffe::NetState& state, const caffe::NetStateRule& rule);

// Whether a layer of the file belongs to the net that `state` asks for: with include rules it stays if it
// meets any of them, with exclude rules if it meets none. Throws UserError on a layer with both.
bool stays(const NetFile& file, int layer, const caffe::NetState& state);

// The net without the layers that do not stay.
NetFile filter_net(const NetFile& file, const caffe::NetState& state);

}  // namespace cortado
