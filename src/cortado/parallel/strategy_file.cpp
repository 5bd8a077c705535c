#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <unordered_set>

#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/base/nearest_name.h"
#include "cortado/base/text.h"
#include "cortado/parallel/strategy.h"

namespace cortado {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // finds a key only after all before it

constexpr int format_version = 1;
constexpr const char* format_name = "cortado-strategy";

constexpr std::pair<std::string_view, int Degrees::*> degree_keys[] = {
    {"n", &Degrees::n}, {"c", &Degrees::c}, {"d", &Degrees::d},
    {"h", &Degrees::h}, {"w", &Degrees::w}, {"r", &Degrees::r}};

[[noreturn]] void refuse(const std::string& where, std::string_view key, const std::string& what) {
  throw UserError(fmt::format("{}: \"{}\": {}", where, key, what));
}

// A value in a message: lists and objects, which may nest deeply, are only named.
std::string shown(const Json& value) {
  if (value.is_object()) return "an object";
  return value.is_array() ? "a list" : value.dump();
}

int whole_number(const Json& value, const std::string& where, std::string_view key) {
  if (!value.is_number_integer() || value.get<int64_t>() < 0 || value.get<int64_t>() > 1 << 20)
    refuse(where, key, fmt::format("{} is not a whole number from 0 to 1048576", shown(value)));
  return value.get<int>();
}

std::string text_of(const Json& value, const std::string& where, std::string_view key) {
  if (!value.is_string()) refuse(where, key, fmt::format("{} is not a text", shown(value)));
  return value.get<std::string>();
}

void check_keys(const Json& object, std::span<const std::string_view> known, const std::string& where) {
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    throw UserError(fmt::format("{}: there is no key \"{}\"{} (known: {})", where, key,
                                did_you_mean(key, known), joined(known)));
  }
}

void read_list(const Json& value, const std::string& where, std::string_view key,
               const std::function<void(const Json&)>& add) {
  if (!value.is_array()) refuse(where, key, fmt::format("{} is not a list", shown(value)));
  for (const Json& each : value) add(each);
}

LayerStrategy layer_of(const Json& object, const std::string& where) {
  static constexpr std::string_view known[] = {"n",       "c",       "d",    "h",          "w",          "r",
                                               "devices", "weights", "sync", "batch_norm", "planned_for"};
  if (!object.is_object())
    throw UserError(fmt::format("{}: {} is not an object such as {{\"n\": 2}}", where, shown(object)));
  check_keys(object, known, where);
  LayerStrategy layer;
  ParallelConfig& config = layer.config;
  for (const auto& [key, member] : degree_keys)
    if (object.contains(key)) config.degrees.*member = whole_number(object[std::string(key)], where, key);
  if (object.contains("devices")) {
    config.devices.clear();
    read_list(object["devices"], where, "devices",
              [&](const Json& each) { config.devices.push_back(whole_number(each, where, "devices")); });
  } else {
    const Degrees& degrees = config.degrees;
    double product = 1;
    for (const auto& [key, member] : degree_keys) product *= degrees.*member;
    if (product > 1 << 20) throw UserError(fmt::format("{}: {:.0f} devices are too many", where, product));
    config.devices.resize(static_cast<size_t>(degrees.product()));
    std::iota(config.devices.begin(), config.devices.end(), 0);
  }
  if (object.contains("weights")) {
    read_list(object["weights"], where, "weights", [&](const Json& each) {
      if (!each.is_number()) refuse(where, "weights", fmt::format("{} is not a number", shown(each)));
      config.weights.push_back(each.get<double>());
    });
  }
  if (object.contains("sync")) {
    const std::string sync = text_of(object["sync"], where, "sync");
    const auto known_sync = gradient_sync_of(sync);
    if (!known_sync)
      refuse(where, "sync", fmt::format("'{}' is not known; use allreduce, owner or replicate", sync));
    layer.sync = *known_sync;
  }
  if (object.contains("batch_norm")) {
    const std::string scope = text_of(object["batch_norm"], where, "batch_norm");
    if (scope != "local" && scope != "whole")
      refuse(where, "batch_norm", fmt::format("'{}' is not known; use whole or local", scope));
    layer.local_batch_norm = scope == "local";
  }
  return layer;
}

Strategy::Rule rule_of(const std::string& name, const Json& object, const std::string& where) {
  Strategy::Rule rule{.pattern = name, .layer = layer_of(object, where)};
  if (object.contains("planned_for")) rule.planned_for = text_of(object["planned_for"], where, "planned_for");
  return rule;
}

OrderedJson json_of(const Strategy::Rule& rule) {
  const LayerStrategy& layer = rule.layer;
  OrderedJson object = OrderedJson::object();
  for (const auto& [key, member] : degree_keys)
    if (layer.config.degrees.*member != 1) object[std::string(key)] = layer.config.degrees.*member;
  double product = 1;
  for (const auto& [key, member] : degree_keys) product *= layer.config.degrees.*member;
  std::vector<int> usual(layer.config.devices.size());
  std::iota(usual.begin(), usual.end(), 0);
  if (layer.config.devices != usual || static_cast<double>(usual.size()) != product)
    object["devices"] = layer.config.devices;
  if (!layer.config.weights.empty()) object["weights"] = layer.config.weights;
  if (layer.sync != GradientSync::allreduce) object["sync"] = std::string(name_of(layer.sync));
  if (layer.local_batch_norm) object["batch_norm"] = "local";
  if (!rule.planned_for.empty()) object["planned_for"] = rule.planned_for;
  return object;
}

Schedule schedule_of(const Json& object, const std::string& where) {
  static constexpr std::string_view known[] = {"gradient_chunks", "late_updates", "halves"};
  if (!object.is_object()) refuse(where, "schedule", fmt::format("{} is not an object", shown(object)));
  check_keys(object, known, where + ": \"schedule\"");
  Schedule schedule;
  if (object.contains("gradient_chunks")) {
    const std::string text = text_of(object["gradient_chunks"], where, "gradient_chunks");
    schedule.chunks = parse_chunks(text, where + ": \"gradient_chunks\"");
  }
  for (const auto& [key, value] :
       {std::pair{"late_updates", &schedule.late_updates}, {"halves", &schedule.halves}}) {
    if (!object.contains(key)) continue;
    const Json& given = object[key];
    if (!given.is_boolean()) refuse(where, key, fmt::format("{} is not true or false", shown(given)));
    *value = given.get<bool>();
  }
  return schedule;
}

OrderedJson json_of(const Schedule& schedule) {
  OrderedJson object = {{"gradient_chunks", chunks_text(schedule.chunks)},
                        {"late_updates", schedule.late_updates}};
  if (schedule.halves) object["halves"] = true;
  return object;
}

// Collects the keys of a file's "layers" as they stand there, each once.
class LayerKeys : public nlohmann::json_sax<Json> {
 public:
  std::vector<std::string> take() { return std::move(keys_); }

  bool key(std::string& name) override {
    if (depth_ == 1) in_layers_ = name == "layers";
    if (depth_ == 2 && in_layers_ && known_.insert(name).second) keys_.push_back(name);
    return true;
  }
  bool start_object(size_t) override { return ++depth_ > 0; }
  bool end_object() override { return depth_-- > 0; }
  bool start_array(size_t) override { return ++depth_ > 0; }
  bool end_array() override { return depth_-- > 0; }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  int64_t depth_ = 0;
  bool in_layers_ = false;
  std::unordered_set<std::string> known_;
  std::vector<std::string> keys_;
};

// An object of a file has lost the order of its keys, and an earlier pattern goes before a later one. An
// OrderedJson keeps it, but would take hours for a long file.
std::vector<std::string> layers_in_order(const std::string& json) {
  LayerKeys keys;
  Json::sax_parse(json, &keys);
  return keys.take();
}

}  // namespace

Strategy parse_strategy(const std::string& json, const std::string& where) {
  static constexpr std::string_view known[] = {"format", "version", "net", "ranks", "schedule", "layers"};
  Json file;
  try {
    file = Json::parse(json);
  } catch (const Json::exception& error) {
    throw UserError(fmt::format("{}: is not JSON: {}", where, error.what()));
  }
  const Json none;
  auto value_of = [&](const char* key) -> const Json& { return file.contains(key) ? file[key] : none; };
  if (!file.is_object() || value_of("format") != format_name)
    throw UserError(fmt::format("{}: is not a strategy file: \"format\" must be \"{}\"", where, format_name));
  check_keys(file, known, where);
  if (value_of("version") != format_version) {
    refuse(where, "version",
           fmt::format("{} is not supported, this program reads {}", shown(value_of("version")),
                       format_version));
  }
  Strategy strategy;
  if (file.contains("net")) strategy.net = text_of(file["net"], where, "net");
  if (file.contains("ranks")) strategy.ranks = whole_number(file["ranks"], where, "ranks");
  if (file.contains("schedule")) strategy.schedule = schedule_of(file["schedule"], where);
  if (!file.contains("layers") || !file["layers"].is_object())
    refuse(where, "layers", "must be an object of layer names and configurations");
  for (const std::string& name : layers_in_order(json))
    strategy.rules.push_back(rule_of(name, file["layers"][name], fmt::format("{}: layer '{}'", where, name)));
  return strategy;
}

std::string strategy_text(const Strategy& strategy) {
  std::string text =
      fmt::format("{{\n  \"format\": \"{}\",\n  \"version\": {},\n", format_name, format_version);
  if (!strategy.net.empty()) text += fmt::format("  \"net\": {},\n", Json(strategy.net).dump());
  text += fmt::format("  \"ranks\": {},\n", strategy.ranks);
  if (strategy.schedule != Schedule{})
    text += fmt::format("  \"schedule\": {},\n", json_of(strategy.schedule).dump());
  text += "  \"layers\": {";
  for (size_t i = 0; i < strategy.rules.size(); ++i) {
    const auto& rule = strategy.rules[i];
    text += fmt::format("{}\n    {}: {}", i == 0 ? "" : ",", Json(rule.pattern).dump(), json_of(rule).dump());
  }
  return text + "\n  }\n}\n";
}

namespace {

// Of "random:SEED"; nothing for other names.
std::optional<uint64_t> random_seed(const std::string& name) {
  constexpr std::string_view prefix = "random:";
  if (!name.starts_with(prefix)) return std::nullopt;
  const char* begin = name.data() + prefix.size();
  const char* end = name.data() + name.size();
  uint64_t seed = 0;
  auto [stop, error] = std::from_chars(begin, end, seed);
  if (error != std::errc() || stop != end || begin == end) {
    throw UserError(
        fmt::format("strategy '{}': the seed must be a whole number of 0 or more, as in random:1", name));
  }
  return seed;
}

}  // namespace

Strategy load_strategy(const std::string& name_or_path, const Network& network, int ranks) {
  const auto known = built_in_strategies();
  if (std::ranges::find(known, name_or_path) != known.end())
    return built_in_strategy(name_or_path, network, ranks);
  if (const auto seed = random_seed(name_or_path)) return random_strategy(*seed, network, ranks);
  if (!name_or_path.ends_with(".json")) {
    throw UserError(fmt::format(
        "there is no strategy '{}'{} (known: auto, {}, random:SEED, or a file that ends in .json)",
        name_or_path, did_you_mean(name_or_path, known), joined(known)));
  }
  return parse_strategy(read_file(name_or_path), name_or_path);
}

}  // namespace cortado
