#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <numeric>
#include <optional>
#include <unordered_set>

#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/base/json_object.h"
#include "cortado/base/nearest_name.h"
#include "cortado/base/text.h"
#include "cortado/parallel/strategy.h"

namespace cortado {
namespace {

using OrderedJson = nlohmann::ordered_json;  // finds a key only after all before it

constexpr int format_version = 1;
constexpr const char* format_name = "cortado-strategy";

constexpr std::pair<std::string_view, int Degrees::*> degree_keys[] = {
    {"n", &Degrees::n}, {"c", &Degrees::c}, {"d", &Degrees::d},
    {"h", &Degrees::h}, {"w", &Degrees::w}, {"r", &Degrees::r}};

constexpr int most_devices = 1 << 20;

// The number of devices that the degrees of `object` ask for, in double: it may be any.
double read_degrees(const JsonObject& object, Degrees& degrees) {
  double product = 1;
  for (const auto& [key, member] : degree_keys) {
    if (object.has(key)) degrees.*member = object.whole(key, 0, most_devices, "how many parts there are");
    product *= degrees.*member;
  }
  return product;
}

void read_devices(const JsonObject& object, ParallelConfig& config, double parts) {
  constexpr std::string_view meaning = "the numbers of the devices";
  if (object.has("devices")) {
    config.devices.clear();
    for (const Json& device : object.list("devices", meaning))
      config.devices.push_back(object.whole(device, "devices", 0, most_devices, meaning));
    return;
  }
  if (parts > most_devices) object.refuse("devices", fmt::format("{:.0f} are too many", parts));
  config.devices.resize(static_cast<size_t>(config.degrees.product()));
  std::iota(config.devices.begin(), config.devices.end(), 0);
}

LayerStrategy layer_of(const JsonObject& object) {
  LayerStrategy layer;
  ParallelConfig& config = layer.config;
  read_devices(object, config, read_degrees(object, config.degrees));
  if (object.has("weights")) {
    constexpr std::string_view meaning = "how much of the work each device takes";
    for (const Json& weight : object.list("weights", meaning))
      config.weights.push_back(object.number(weight, "weights", {}, meaning));
  }
  if (object.has("sync")) {
    const std::string sync = object.text("sync", gradient_sync_choices());
    const auto known = gradient_sync_of(sync);
    if (!known)
      object.refuse("sync", fmt::format("'{}' is not known; use {}", sync, gradient_sync_choices()));
    layer.sync = *known;
  }
  if (object.has("batch_norm")) {
    const std::string scope = object.text("batch_norm", "whole or local");
    if (scope != "local" && scope != "whole")
      object.refuse("batch_norm", fmt::format("'{}' is not known; use whole or local", scope));
    layer.local_batch_norm = scope == "local";
  }
  if (object.has("precision")) {
    const std::string precision = object.text("precision", "f32 or bf16");
    for (Precision known : {Precision::f32, Precision::bf16})
      if (precision == name_of(known)) layer.precision = known;
    if (!layer.precision)
      object.refuse("precision", fmt::format("'{}' is not known; use f32 or bf16", precision));
  }
  if (object.has("recompute"))
    layer.recompute = object.truth("recompute", "whether outputs are computed again");
  return layer;
}

Strategy::Rule rule_of(const std::string& name, const JsonObject& object) {
  Strategy::Rule rule{.pattern = name, .layer = layer_of(object)};
  if (object.has("planned_for")) rule.planned_for = object.text("planned_for", "the layer's task");
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
  if (layer.precision) object["precision"] = std::string(name_of(*layer.precision));
  if (layer.recompute) object["recompute"] = true;
  if (!rule.planned_for.empty()) object["planned_for"] = rule.planned_for;
  return object;
}

Schedule schedule_of(const JsonObject& object) {
  Schedule schedule;
  if (object.has("gradient_chunks")) {
    const std::string text = object.text("gradient_chunks", "where chunks end");
    schedule.chunks =
        parse_chunks(text, fmt::format("{}: {}", object.file(), object.path_of("gradient_chunks")));
  }
  for (const ScheduleSwitch& one : schedule_switches)
    if (object.has(one.key)) schedule.*one.member = object.truth(one.key, "one of them");
  return schedule;
}

OrderedJson json_of(const Schedule& schedule) {
  OrderedJson object;
  object["gradient_chunks"] = chunks_text(schedule.chunks);
  for (const ScheduleSwitch& one : schedule_switches)
    if (!one.word(schedule).empty()) object[std::string(one.key)] = schedule.*one.member;
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
  std::vector<std::string_view> known_of_schedule = {"gradient_chunks"};
  for (const ScheduleSwitch& one : schedule_switches) known_of_schedule.push_back(one.key);
  static constexpr std::string_view known_of_layer[] = {
      "n",       "c",    "d",          "h",         "w",         "r",          "devices",
      "weights", "sync", "batch_norm", "precision", "recompute", "planned_for"};
  const Json parsed = parse_json(json, where);
  check_format(parsed, where, "strategy", format_name, format_version);
  const JsonObject file(parsed, where, "", known);
  Strategy strategy;
  if (file.has("net")) strategy.net = file.text("net", "the net's name");
  if (file.has("ranks")) strategy.ranks = file.whole("ranks", 0, most_devices, "how many ranks there are");
  if (file.has("schedule"))
    strategy.schedule = schedule_of(file.object("schedule", known_of_schedule, "an object"));
  constexpr std::string_view meaning = "an object of layer names and configurations";
  const Json& layers = file.get("layers", meaning);
  if (!layers.is_object()) file.refuse("layers", fmt::format("{} is not {}", shown(layers), meaning));
  for (const std::string& name : layers_in_order(json))
    strategy.rules.push_back(
        rule_of(name, JsonObject(layers[name], where, file.path_of("layers") + "." + name, known_of_layer)));
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

// Returns the seed of "random:SEED"; nothing for other names.
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
  if (ranks < 1 || ranks > most_ranks)
    throw UserError(
        fmt::format("strategy '{}' for {} devices; give 1 to {}", name_or_path, ranks, most_ranks));
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
