#pragma once

#include "cortado/net/net_file.h"

namespace cortado {

// Whether `state` meets a rule: phase equal, level within [min_level, max_level], all stages present, no
// not_stage present.
bool meets(const caffe::NetState& state, const caffe::NetStateRule& rule);

// The net without the layers that `state` excludes: with include rules a layer stays if it meets any of them,
// with exclude rules if it meets none. Throws UserError on a layer with both.
NetFile filter_net(const NetFile& file, const caffe::NetState& state);

}  // namespace cortado
