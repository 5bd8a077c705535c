#include "cortado/cost/task_times.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cortado/base/error.h"
#include "cortado/base/json_object.h"

namespace cortado {
namespace {

constexpr const char* format_name = "cortado-task-times";
constexpr int format_version = 2;

constexpr std::pair<const char*, Seconds TaskTime::*> passes[] = {
    {"forward_seconds", &TaskTime::forward},
    {"backward_weights_seconds", &TaskTime::backward_weights},
    {"backward_seconds", &TaskTime::backward}};

constexpr std::string_view keys[] = {"format", "version", "build", "machine", "tasks", "durations"};
constexpr std::string_view task_keys[] = {"task", passes[0].first, passes[1].first, passes[2].first};
constexpr std::string_view duration_keys[] = {"of", "seconds"};

void check_text(const JsonObject& file, std::string_view key, const std::string& expected) {
  const std::string value = file.text(key, expected);
  if (value != expected) file.refuse(key, fmt::format("'{}' is not '{}'", value, expected));
}

TaskTime read_time(const JsonObject& entry) {
  TaskTime time;
  for (const auto& [key, member] : passes) time.*member = {entry.not_negative(key, {}, "seconds")};
  return time;
}

std::map<std::string, TaskTime> read_tasks(const JsonObject& file) {
  std::map<std::string, TaskTime> times;
  int number = 0;
  for (const Json& each : file.list("tasks", "the times")) {
    const JsonObject entry(each, file.file(), fmt::format("tasks[{}]", number++), task_keys);
    times[entry.text("task", "the task's text")] = read_time(entry);
  }
  return times;
}

std::map<std::string, Seconds> read_durations(const JsonObject& file) {
  std::map<std::string, Seconds> durations;
  int number = 0;
  for (const Json& each : file.list("durations", "the durations")) {
    const JsonObject entry(each, file.file(), fmt::format("durations[{}]", number++), duration_keys);
    durations[entry.text("of", "what takes that long")] = {entry.not_negative("seconds", {}, "seconds")};
  }
  return durations;
}

}  // namespace

const TaskTime* TaskTimes::find(const std::string& problem) const {
  const auto found = tasks_.find(problem);
  return found == tasks_.end() ? nullptr : &found->second;
}

std::optional<Seconds> TaskTimes::find_duration(const std::string& what) const {
  const auto found = durations_.find(what);
  return found == durations_.end() ? std::nullopt : std::optional(found->second);
}

std::string TaskTimes::text() const {
  using Json = nlohmann::ordered_json;
  Json tasks = Json::array(), durations = Json::array();
  for (const auto& [problem, time] : tasks_) {
    Json entry{{"task", problem}};
    for (const auto& [key, member] : passes) entry[key] = (time.*member).count;
    tasks.push_back(std::move(entry));
  }
  for (const auto& [what, seconds] : durations_)
    durations.push_back({{"of", what}, {"seconds", seconds.count}});
  const Json file{{"format", format_name}, {"version", format_version}, {"build", build_},
                  {"machine", machine_},   {"tasks", std::move(tasks)}, {"durations", std::move(durations)}};
  return file.dump(1) + "\n";
}

void TaskTimes::read(const std::string& json, const std::string& where) {
  try {
    const Json parsed = parse_json(json, where);
    check_format(parsed, where, "task times", format_name, format_version);
    const JsonObject file(parsed, where, "", keys);
    check_text(file, "build", build_);
    check_text(file, "machine", machine_);
    const std::map<std::string, TaskTime> tasks = read_tasks(file);
    const std::map<std::string, Seconds> durations = read_durations(file);
    tasks_.insert(tasks.begin(), tasks.end());
    durations_.insert(durations.begin(), durations.end());
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}; it is measured anew", error.what()));
  }
}

}  // namespace cortado
