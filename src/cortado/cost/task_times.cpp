#include "cortado/cost/task_times.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cortado/base/error.h"
#include "cortado/base/json_object.h"

namespace cortado {
namespace {

constexpr const char* format_name = "cortado-task-times";
constexpr int format_version = 1;

constexpr std::pair<const char*, Seconds TaskTime::*> passes[] = {
    {"forward_seconds", &TaskTime::forward},
    {"backward_weights_seconds", &TaskTime::backward_weights},
    {"backward_seconds", &TaskTime::backward}};

constexpr std::string_view keys[] = {"format", "version", "build", "machine", "tasks"};
constexpr std::string_view task_keys[] = {"task", passes[0].first, passes[1].first, passes[2].first};

void check_text(const JsonObject& file, std::string_view key, const std::string& expected) {
  const std::string value = file.text(key, expected);
  if (value != expected) file.refuse(key, fmt::format("'{}' is not '{}'", value, expected));
}

TaskTime read_time(const JsonObject& entry) {
  TaskTime time;
  for (const auto& [key, member] : passes) time.*member = {entry.not_negative(key, {}, "seconds")};
  return time;
}

std::map<std::string, TaskTime> read_times(const std::string& json, const std::string& where,
                                           const std::string& build, const std::string& machine) {
  const Json parsed = parse_json(json, where);
  check_format(parsed, where, "task times", format_name, format_version);
  const JsonObject file(parsed, where, "", keys);
  check_text(file, "build", build);
  check_text(file, "machine", machine);
  std::map<std::string, TaskTime> times;
  int number = 0;
  for (const Json& each : file.list("tasks", "the times")) {
    const JsonObject entry(each, where, fmt::format("tasks[{}]", number++), task_keys);
    times[entry.text("task", "the task's text")] = read_time(entry);
  }
  return times;
}

}  // namespace

const TaskTime* TaskTimes::find(const std::string& problem) const {
  const auto found = times_.find(problem);
  return found == times_.end() ? nullptr : &found->second;
}

std::string TaskTimes::text() const {
  using Json = nlohmann::ordered_json;
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
  try {
    const std::map<std::string, TaskTime> times = read_times(json, where, build_, machine_);
    times_.insert(times.begin(), times.end());
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}; it is measured anew", error.what()));
  }
}

}  // namespace cortado
