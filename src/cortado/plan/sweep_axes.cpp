#include "cortado/plan/sweep_axes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <string_view>

#include "cortado/base/error.h"
#include "cortado/base/text.h"

namespace cortado::plan {
namespace {

constexpr std::string_view wanted_axes = "devices=4..64, batch=256,32/device or link=12,25";
constexpr double giga = 1e9;

template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !(number > 0)) return std::nullopt;
  if constexpr (std::is_floating_point_v<Number>)
    if (!std::isfinite(number)) return std::nullopt;
  return number;
}

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw UserError(fmt::format("sweep {}: {}", text, why));
}

template <typename Value>
void add(std::vector<Value>& values, const Value& value, const std::string& text, const std::string& part) {
  if (std::ranges::find(values, value) != values.end())
    refuse(text, fmt::format("'{}' is there twice; leave one out", part));
  values.push_back(value);
}

class Reader {
 public:
  Reader(const std::string& text, const DeviceGraph& machine) : text_(text), machine_(machine) {
    const size_t equals = text.find('=');
    axis_ = text.substr(0, equals);
    if (equals != std::string::npos) values_ = text.substr(equals + 1);
    if (split_list(values_).empty()) refuse(text, fmt::format("has no values; give axes as {}", wanted_axes));
  }

  const std::string& axis() const { return axis_; }

  std::vector<int> devices() const {
    std::vector<int> devices;
    for (const std::string& part : split_list(values_)) {
      const size_t dots = part.find("..");
      if (dots == std::string::npos) {
        add(devices, count(part), text_, part);
        continue;
      }
      const int first = count(part.substr(0, dots)), last = count(part.substr(dots + 2));
      if (last < first) refuse(text_, fmt::format("{} is below {}; give a range upwards", last, first));
      for (int64_t next = first; next <= last; next *= 2) add(devices, static_cast<int>(next), text_, part);
    }
    std::ranges::sort(devices);
    return devices;
  }

  std::vector<SweepBatch> batches() const {
    constexpr std::string_view each = "/device";
    constexpr int64_t most = 1'000'000'000;
    std::vector<SweepBatch> batches;
    for (const std::string& part : split_list(values_)) {
      const bool per_device = part.ends_with(each);
      const auto samples =
          number_of<int64_t>(std::string_view(part).substr(0, part.size() - (per_device ? each.size() : 0)));
      if (!samples || *samples > most)
        refuse(text_, fmt::format("'{}' is not a batch; give whole numbers from 1 to {}, with {} where each "
                                  "device gets so many",
                                  part, most, each));
      add(batches, {*samples, per_device}, text_, part);
    }
    return batches;
  }

  void links(SweepAxes& axes) const {
    const size_t colon = values_.find(':');
    axes.link = colon == std::string::npos
                    ? slowest_links(machine_).name
                    : find_links(machine_, values_.substr(0, colon), "sweep " + text_).name;
    for (const std::string& part :
         split_list(colon == std::string::npos ? values_ : values_.substr(colon + 1))) {
      const auto bandwidth = number_of<double>(part);
      if (!bandwidth || *bandwidth < 1e-6 || *bandwidth > 1e9)
        refuse(
            text_,
            fmt::format("'{}' is not a bandwidth; give numbers from 1e-6 to 1e9 in GB/s (1e9 bytes)", part));
      add(axes.bandwidths, Bandwidth{*bandwidth * giga}, text_, part);
    }
    std::ranges::sort(axes.bandwidths);
    if (axes.bandwidths.empty()) refuse(text_, "has no values; give bandwidths in GB/s (1e9 bytes)");
  }

 private:
  int count(const std::string& part) const {
    const auto number = number_of<int>(part);
    if (!number || *number > machine_.devices())
      refuse(text_, fmt::format("'{}' is not a number of devices of machine '{}'; give 1 to {}", part,
                                machine_.machine().name, machine_.devices()));
    return *number;
  }

  const std::string& text_;
  const DeviceGraph& machine_;
  std::string axis_, values_;
};

}  // namespace

std::string SweepBatch::text() const { return fmt::format("{}{}", samples, per_device ? "/device" : ""); }

SweepAxes sweep_axes(const std::vector<std::string>& texts, const DeviceGraph& machine, int64_t batch) {
  SweepAxes axes;
  for (const std::string& text : texts) {
    const Reader reader(text, machine);
    const bool again = (reader.axis() == "devices" && !axes.devices.empty()) ||
                       (reader.axis() == "batch" && !axes.batches.empty()) ||
                       (reader.axis() == "link" && !axes.bandwidths.empty());
    if (again) refuse(text, "is given twice; give each axis once, with all of its values");
    if (reader.axis() == "devices") {
      axes.devices = reader.devices();
    } else if (reader.axis() == "batch") {
      axes.batches = reader.batches();
    } else if (reader.axis() == "link") {
      reader.links(axes);
    } else {
      refuse(text, fmt::format("there is no axis '{}'; give {}", reader.axis(), wanted_axes));
    }
  }
  if (axes.devices.empty()) axes.devices = {machine.devices()};
  if (axes.batches.empty()) axes.batches = {{batch, false}};
  return axes;
}

}  // namespace cortado::plan
