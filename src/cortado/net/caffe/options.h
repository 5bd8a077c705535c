#pragma once

#include <google/protobuf/repeated_field.h>
#include <string_view>
#include <vector>

#include "cortado/layers/layer.h"
#include "cortado/proto/caffe.pb.h"

namespace cortado::from_caffe {

// Throws UserError on an unknown type, with the nearest known one.
Filler filler(const caffe::FillerParameter& parameter);

// The value as int. Throws UserError "NAME is VALUE, which is too large".
int to_int(std::string_view name, uint32_t value);

// A required, positive value. Throws UserError "NAME must be given and positive".
int to_positive(std::string_view name, uint32_t value);

// Extents, strides, pads and dilations of windows, bounded so that index arithmetic cannot overflow.
std::vector<int64_t> window_values(std::string_view name,
                                   const google::protobuf::RepeatedField<uint32_t>& values);
int64_t window_value(std::string_view name, uint32_t value);

// `axis`, unless the file gives its older spelling. Throws UserError when it gives both.
int axis_or_older(bool has_axis, int axis, bool has_older, uint32_t older, std::string_view older_name);

Shape shape(const caffe::BlobShape& message);

}  // namespace cortado::from_caffe
