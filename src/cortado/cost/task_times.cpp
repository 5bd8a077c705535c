#include "cortado/cost/task_times.h"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cortado/base/error.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* format_name = "cortado-task-times";
constexpr int format_version = 1;

constexpr std::pair<const char*, Seconds TaskTime::*> passes[] = {
    {"forward_seconds", &TaskTime::forward},
    {"backward_weights_seconds", &TaskTime::backward_weights},
    {"backward_seconds", &TaskTime::backward}};

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw UserError(fmt::format("{}: {}; it is measured anew", where, what));
}

void check_text(const Json& file, const char* key, const std::string& expected, const std::string& where) {
  const auto found = file.find(key);
  if (found == file.end() || !found->is_string())
    refuse(where, fmt::format("'{}' is missing or no text", key));
  const std::string& value = found->get_ref<const std::string&>();
  if (value != expected) refuse(where, fmt::format("'{}' is '{}', not '{}'", key, value, expected));
}

TaskTime read_time(const Json& entry, const std::string& where) {
  TaskTime time;
  for (const auto& [key, member] : passes) {
    const auto found = entry.find(key);
    if (found == entry.end() || !found->is_number())
      refuse(where, fmt::format("a task has no number '{}'", key));
    const double seconds = found->get<double>();
    if (!std::isfinite(seconds) || seconds < 0)
      refuse(where, fmt::format("'{}' is {}, no time", key, seconds));
    time.*member = {seconds};
  }
  return time;
}

}  // namespace

const TaskTime* TaskTimes::find(const std::string& problem) const {
  const auto found = times_.find(problem);
  return found == times_.end() ? nullptr : &found->second;
}

std::string TaskTimes::text() const {
  Json list = Json::array();
  for (const auto& [problem, time] : times_) {
    Json entry{{"task", problem}};
    for (const auto& [key, member] : passes) entry[key] = (time.*member).count;
    list.push_back(std::move(entry));
  }
  const Json file{{"format", format_name},
                  {"version", format_version},
                  {"build", build_},
                  {"machine", machine_},
                  {"tasks", std::move(list)}};
  return file.dump(1) + "\n";
}

void TaskTimes::read(const std::string& json, const std::string& where) {
  const Json file = Json::parse(json, nullptr, false);
  if (!file.is_object()) refuse(where, "this is not JSON, or cut off");
  check_text(file, "format", format_name, where);
  if (!file.contains("version") || file["version"] != format_version) refuse(where, "of another 'version'");
  check_text(file, "build", build_, where);
  check_text(file, "machine", machine_, where);
  if (!file.contains("tasks") || !file["tasks"].is_array()) refuse(where, "there is no list 'tasks'");
  std::map<std::string, TaskTime> read;
  for (const Json& entry : file["tasks"]) {
    if (!entry.is_object() || !entry.contains("task") || !entry["task"].is_string())
      refuse(where, "an entry of 'tasks' names no task");
    read[entry["task"].get<std::string>()] = read_time(entry, where);
  }
  times_.insert(read.begin(), read.end());
}

}  // namespace cortado
