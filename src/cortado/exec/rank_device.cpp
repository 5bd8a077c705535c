#include "cortado/exec/rank_device.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>

#include "cortado/base/error.h"
#include "cortado/base/text.h"
#include "cortado/comm/processors.h"
#include "cortado/comm/values_of_ranks.h"
#include "cortado/device/cuda.h"
#include "cortado/device/open_device.h"

namespace cortado {
namespace {

using device::DeviceName;
using Kind = DeviceName::Kind;

// The option that was given, as the user wrote it.
struct Given {
  std::string name, value;  // no name: none
  std::string text(Spelling spelled) const { return fmt::format("{} {}", spelled(name), value); }
};

Given given_of(const DeviceWords& words, Spelling spelled) {
  Given given;
  for (const auto& [name, value] :
       {Given{"device", words.device}, Given{"devices", words.devices}, Given{"gpu", words.gpu}}) {
    if (value.empty()) continue;
    if (!given.name.empty())
      throw UserError(
          fmt::format("{} and {}: give one; both name devices", spelled(given.name), spelled(name)));
    given = {name, value};
  }
  return given;
}

bool may_take_cpu(const DeviceWords& words) {
  const char* variable = std::getenv("CORTADO_CPU_INSTEAD");
  return words.cpu_instead || (variable != nullptr && std::string_view(variable) == "1");
}

// Also where there is none: then one is named that is refused.
std::vector<DeviceName> all_gpus() {
  std::vector<DeviceName> names;
  const auto count = std::max(1, static_cast<int>(device::gpus().size()));
  for (int number = 0; number < count; ++number) names.push_back({Kind::gpu, number});
  return names;
}

// Throws UserError for words that the option does not take.
[[noreturn]] void refuse(const Given& given, Spelling spelled) {
  throw UserError(fmt::format("{}: give {}", given.text(spelled),
                              given.name == "gpu"      ? "all, or numbers as in 0,1"
                              : given.name == "device" ? "cpu, gpu, or the number of one, as in gpu:1"
                                                       : "a device for each rank of a host, as in "
                                                         "gpu:0,gpu:1,cpu"));
}

std::vector<DeviceName> named(const Given& given, Spelling spelled) {
  const std::vector<std::string> parts = split_list(given.value);
  const bool whole = fmt::format("{}", fmt::join(parts, ",")) == given.value;  // no part is empty
  if (!whole || (given.name == "device" && parts.size() > 1)) refuse(given, spelled);
  if (given.value == "all" && given.name == "gpu") return all_gpus();
  std::vector<DeviceName> names;
  int gpus = 0;
  for (const std::string& word : parts) {
    const auto name = device::device_named(given.name == "gpu" ? "gpu:" + word : word);
    if (!name) refuse(given, spelled);
    names.push_back(*name);
    if (given.name == "devices" && name->kind == Kind::gpu && name->number < 0) names.back().number = gpus++;
  }
  return names;
}

bool asks_for_gpu(const std::vector<DeviceName>& names) {
  return std::ranges::any_of(names, [](const DeviceName& name) { return name.kind == Kind::gpu; });
}

// Throws UserError for a GPU that is not there.
void require_there(const std::vector<DeviceName>& names, const std::string& given) {
  const int there = static_cast<int>(device::gpus().size());
  for (const DeviceName& name : names) {
    if (name.kind != Kind::gpu || name.number < there) continue;
    throw UserError(fmt::format("{}: there is no {}; this host has {} GPU{}, counted from 0", given,
                                name.text(), there, there == 1 ? "" : "s"));
  }
}

// Whether the CPU computes in place of GPUs.
bool instead(const DeviceWords& words, Spelling spelled) {
  return !words.gpu.empty() && may_take_cpu(words) && !device::no_gpus_because().empty() &&
         !named(given_of(words, spelled), spelled).empty();
}

}  // namespace

std::vector<DeviceName> devices_of(const DeviceWords& words, Spelling spelled) {
  if (words.graph != "" && words.graph != "on" && words.graph != "off")
    throw UserError(fmt::format("{} {}: give on or off", spelled("graph"), words.graph));
  const Given given = given_of(words, spelled);
  if (given.name.empty() || instead(words, spelled)) return {DeviceName{}};
  std::vector<DeviceName> names = named(given, spelled);
  const std::string obstacle = asks_for_gpu(names) ? device::no_gpus_because() : "";
  if (!obstacle.empty()) {
    throw UserError(fmt::format("{}: {}; or {}", given.text(spelled), obstacle,
                                given.name == "gpu"
                                    ? fmt::format("give {} or set CORTADO_CPU_INSTEAD=1 in the environment "
                                                  "to compute on the CPU",
                                                  spelled("cpu-instead"))
                                    : "compute on the cpu"));
  }
  require_there(names, given.text(spelled));
  return names;
}

std::string cpu_instead_notice(const DeviceWords& words, Spelling spelled) {
  if (!instead(words, spelled)) return "";
  return fmt::format("{}: {}; the CPU computes instead", given_of(words, spelled).text(spelled),
                     device::no_gpus_because());
}

bool RankDevice::all_cpu() const {
  return std::ranges::all_of(of_ranks, [](const DeviceName& name) { return name.kind == Kind::cpu; });
}

bool RankDevice::mixed() const {
  return std::ranges::any_of(of_ranks,
                             [&](const DeviceName& name) { return name.kind != of_ranks.front().kind; });
}

std::string RankDevice::text() const {
  std::vector<std::string> names;
  for (const DeviceName& name : of_ranks) names.push_back(name.text());
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string RankDevice::use() const { return all_cpu() ? "Use CPU." : fmt::format("Use {}.", text()); }

RankDevice open_rank_device(const DeviceWords& words, Communicator& job, Spelling spelled) {
  const std::vector<DeviceName> names = devices_of(words, spelled);
  const PlaceOnHost place = place_on_host(job);
  if (names.size() > 1 && static_cast<int>(names.size()) != place.ranks)
    throw UserError(fmt::format("{}: these are {} devices, but {} rank{} of the job run{} on this host",
                                given_of(words, spelled).text(spelled), names.size(), place.ranks,
                                place.ranks == 1 ? "" : "s", place.ranks == 1 ? "s" : ""));
  DeviceName mine = names.size() == 1 ? names.front() : names[static_cast<size_t>(place.index)];
  if (mine.kind == Kind::gpu && mine.number < 0) {
    mine.number = place.index;
    require_there({mine}, given_of(words, spelled).text(spelled));
  }
  return {device::open_device(mine, {.graphs = words.graph != "off"}), values_of_ranks(job, mine)};
}

}  // namespace cortado
