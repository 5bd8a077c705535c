#include "cortado/train/training_log.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "cortado/base/error.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;

// What a log says of an iteration, and of the tests before it.
struct Logged {
  std::optional<IterationReport> iteration;
  std::map<int, TestReport> tests;  // by net
};

IterationReport iteration_of(const Json& line) {
  const Seconds duration{line.at("seconds")};
  const double images = line.at("images_per_second").get<double>() * duration.count;
  return {.iteration = line.at("iteration"),
          .loss = line.at("loss"),
          .learning_rate = line.at("lr"),
          .images = std::llround(images),
          .duration = duration,
          .data_wait = {line.at("data_wait_seconds")},
          .exposed_communication = {line.at("exposed_communication_seconds")},
          .communication = {line.at("communication_seconds")}};
}

TestReport test_of(const Json& line) {
  TestReport report{.iteration = line.at("iteration"),
                    .net = line.at("test_net"),
                    .duration = {line.at("seconds").get<double>()}};
  for (const Json& output : line.at("outputs")) {
    const Json& value = output.at("value");  // null: not finite
    report.outputs.push_back(
        {output.at("name"), value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>(),
         output.value("loss_weight", 0.0)});
  }
  if (line.contains("loss")) report.loss = line["loss"].get<double>();
  return report;
}

void add_line(const Json& line, int64_t end, std::map<int64_t, Logged>& logged) {
  const int64_t iteration = line.at("iteration");
  if (iteration >= end) return;
  if (line.contains("lr")) logged[iteration].iteration = iteration_of(line);
  if (!line.contains("test_net")) return;
  TestReport report = test_of(line);
  logged[iteration].tests[report.net] = std::move(report);
}

// True when the last line of the file is incomplete: a training was killed while it wrote.
bool ends_within_a_line(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(-1, std::ios::end);
  const int last = file.get();
  return file && last != '\n';
}

}  // namespace

TrainingLog::TrainingLog(const std::string& path, bool append)
    : path_(path), file_(std::fopen(path.c_str(), append ? "a" : "w"), std::fclose) {
  if (!file_) throw UserError(fmt::format("--log {}: cannot write: {}", path, std::strerror(errno)));
  if (append && ends_within_a_line(path)) write("");
}

void TrainingLog::write(const std::string& line) {
  bool written = std::fputs((line + '\n').c_str(), file_.get()) >= 0 && std::fflush(file_.get()) == 0;
  if (!written) throw UserError(fmt::format("--log {}: cannot write: {}", path_, std::strerror(errno)));
}

void TrainingLog::iteration(const IterationReport& r) {
  if (!r.updated) return;
  write(Json{{"iteration", r.iteration},
             {"loss", r.loss},
             {"lr", r.learning_rate},
             {"seconds", r.duration.count},
             {"images_per_second", static_cast<double>(r.images) / std::max(1e-9, r.duration.count)},
             {"communication_seconds", r.communication.count},
             {"exposed_communication_seconds", r.exposed_communication.count},
             {"data_wait_seconds", r.data_wait.count}}
            .dump());
}

void TrainingLog::test(const TestReport& r) {
  Json outputs = Json::array();
  for (const OutputValue& o : r.outputs)
    outputs.push_back({{"name", o.name}, {"value", o.value}, {"loss_weight", o.loss_weight}});
  Json line{
      {"iteration", r.iteration}, {"test_net", r.net}, {"outputs", outputs}, {"seconds", r.duration.count}};
  if (r.loss) line["loss"] = *r.loss;
  write(line.dump());
}

void TrainingLog::snapshot(int64_t iteration, const std::string& path) {
  write(Json{{"iteration", iteration}, {"snapshot", path}}.dump());
}

void replay_log(const std::string& path, int64_t end, TrainingObserver& observer) {
  std::ifstream file(path);
  std::map<int64_t, Logged> logged;
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_discarded()) continue;  // within it a training was killed
    try {
      add_line(json, end, logged);
    } catch (const Json::exception& error) {
      throw UserError(fmt::format("{}:{}: is no line of a training's log: {}", path, number, error.what()));
    }
  }
  for (const auto& [iteration, entry] : logged) {
    for (const auto& [net, report] : entry.tests) observer.test(report);
    if (entry.iteration) observer.iteration(*entry.iteration);
  }
}

}  // namespace cortado
