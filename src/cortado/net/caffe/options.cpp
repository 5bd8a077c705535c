#include "cortado/net/caffe/options.h"

#include <array>
#include <fmt/format.h>
#include <limits>
#include <string>

#include "cortado/base/error.h"
#include "cortado/base/nearest_name.h"

namespace cortado::from_caffe {
namespace {

constexpr std::array<std::string_view, 7> filler_names = {
    "constant", "uniform", "gaussian", "positive_unitball", "xavier", "msra", "bilinear"};  // as Filler::Type

Filler::VarianceNorm variance_norm(caffe::FillerParameter::VarianceNorm norm) {
  switch (norm) {
    case caffe::FillerParameter::FAN_IN:
      return Filler::VarianceNorm::fan_in;
    case caffe::FillerParameter::FAN_OUT:
      return Filler::VarianceNorm::fan_out;
    case caffe::FillerParameter::AVERAGE:
      return Filler::VarianceNorm::average;
  }
  throw InternalError("unknown variance_norm");
}

// What Caffe refuses when it fills.
void check(const Filler& filler, const caffe::FillerParameter& parameter) {
  const auto refuse = [&](const std::string& complaint) {
    throw UserError(fmt::format("filler of type '{}': {}", parameter.type(), complaint));
  };
  const bool gaussian = filler.type == Filler::Type::gaussian;
  if (filler.type == Filler::Type::uniform && filler.min > filler.max)
    refuse(fmt::format("min {:g} is more than max {:g}", filler.min, filler.max));
  if (gaussian && filler.std <= 0) refuse(fmt::format("std is {:g}, must be positive", filler.std));
  if (filler.sparse < -1) refuse(fmt::format("sparse is {}, must be -1 or at least 0", filler.sparse));
  if (!gaussian && filler.sparse != -1) refuse("sparse is for type 'gaussian'; remove it");
}

}  // namespace

Filler filler(const caffe::FillerParameter& parameter) {
  auto name = std::find(filler_names.begin(), filler_names.end(), parameter.type());
  if (name == filler_names.end()) {
    throw UserError(fmt::format("filler type '{}' is unknown{}", parameter.type(),
                                did_you_mean(parameter.type(), filler_names)));
  }
  Filler result;
  result.type = static_cast<Filler::Type>(name - filler_names.begin());
  result.value = parameter.value();
  result.min = parameter.min();
  result.max = parameter.max();
  result.mean = parameter.mean();
  result.std = parameter.std();
  result.sparse = parameter.sparse();
  result.variance_norm = variance_norm(parameter.variance_norm());
  check(result, parameter);
  return result;
}

int to_int(std::string_view name, uint32_t value) {
  if (value > static_cast<uint32_t>(std::numeric_limits<int>::max())) {
    throw UserError(fmt::format("{} is {}, which is too large", name, value));
  }
  return static_cast<int>(value);
}

int to_positive(std::string_view name, uint32_t value) {
  if (value == 0) throw UserError(fmt::format("{} must be given and positive", name));
  return to_int(name, value);
}

int64_t window_value(std::string_view name, uint32_t value) {
  constexpr uint32_t largest = 1 << 16;
  if (value > largest) throw UserError(fmt::format("{} is {}, more than {}", name, value, largest));
  return value;
}

std::vector<int64_t> window_values(std::string_view name,
                                   const google::protobuf::RepeatedField<uint32_t>& values) {
  std::vector<int64_t> result;
  for (uint32_t value : values) result.push_back(window_value(name, value));
  return result;
}

int axis_or_older(bool has_axis, int axis, bool has_older, uint32_t older, std::string_view older_name) {
  if (!has_older) return axis;
  if (has_axis)
    throw UserError(fmt::format("axis and (older) {} are both given; remove {}", older_name, older_name));
  return to_int(older_name, older);
}

Shape shape(const caffe::BlobShape& message) {
  return Shape(std::span(message.dim().data(), static_cast<size_t>(message.dim_size())));
}

}  // namespace cortado::from_caffe
