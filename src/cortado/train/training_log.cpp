#include "cortado/train/training_log.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cortado/base/error.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;

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
  for (const OutputValue& o : r.outputs) outputs.push_back({{"name", o.name}, {"value", o.value}});
  Json line{
      {"iteration", r.iteration}, {"test_net", r.net}, {"outputs", outputs}, {"seconds", r.duration.count}};
  if (r.loss) line["loss"] = *r.loss;
  write(line.dump());
}

void TrainingLog::snapshot(int64_t iteration, const std::string& path) {
  write(Json{{"iteration", iteration}, {"snapshot", path}}.dump());
}

}  // namespace cortado
