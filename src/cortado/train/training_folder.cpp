#include "cortado/train/training_folder.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cortado/base/command_files.h"
#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/base/version.h"
#include "cortado/net/text_format.h"
#include "cortado/proto/caffe.pb.h"
#include "cortado/train/snapshot_names.h"
#include "cortado/train/training_log.h"

namespace cortado {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char *runs = "runs.json", *solver_file = "solver.prototxt", *strategy_file = "strategy.json",
                     *log_file = "log.jsonl", *summary_file = "summary.csv", *curve_file = "curve.svg";
constexpr const char* format = "cortado-training";
constexpr int format_version = 1;

// What `runs.json` of a folder says; null where that is none of a training.
Json read_runs(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_regular_file(folder / runs, error)) return {};
  const Json json = Json::parse(read_file((folder / runs).string()), nullptr, false);
  const auto is = [&](const char* key, const Json& value) {
    return json.contains(key) && json[key] == value;
  };
  const bool ours = json.is_object() && is("format", format) && is("version", format_version) &&
                    json.contains("runs") && json["runs"].is_array();
  return ours ? json : Json();
}

[[noreturn]] void refuse(const std::string& folder, const std::string& reason) {
  throw UserError(fmt::format("--output {}: {}", folder, reason));
}

bool lies_in(const std::string& file, const std::string& folder) {
  std::error_code error;
  const fs::path parent = fs::path(file).parent_path();
  return !file.empty() && fs::equivalent(parent.empty() ? "." : parent, folder, error);
}

bool has_snapshots(const std::string& folder) {
  return std::ranges::any_of(fs::directory_iterator(folder), [](const fs::directory_entry& entry) {
    return !entry.path().string().ends_with(".tmp") && parse_snapshot_name(entry.path().string()).has_value();
  });
}

void check_taken(const std::string& folder, const std::string& snapshot, bool again) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) refuse(folder, "is there and is no folder; give another name");
  if (access(folder.c_str(), W_OK | X_OK) != 0) refuse(folder, "cannot be written; give another name");
  if (fs::is_empty(folder, error)) return;
  if (read_runs(folder).is_null())
    refuse(folder, "is a folder that `cortado train` did not make; give another name");
  if (!again && has_snapshots(folder) && !lies_in(snapshot, folder))
    refuse(folder,
           "has another training; go on from one of its snapshots with --snapshot, or give another name");
}

}  // namespace

std::string log_in(const std::string& folder) { return (fs::path(folder) / log_file).string(); }

std::string prefix_in(const std::string& folder, const std::string& snapshot_prefix) {
  return (fs::path(folder) / fs::path(snapshot_prefix).filename()).string();
}

TrainingFolder::TrainingFolder(const std::string& folder, const std::string& snapshot, bool again)
    : folder_(folder) {
  std::error_code error;
  const fs::path path(folder);
  check_folder_of("--output", (path.has_filename() ? path : path.parent_path()).string());
  made_ = fs::create_directory(folder, error);
  if (!made_ && !fs::exists(folder)) refuse(folder, "the folder cannot be made: " + error.message());
  if (!made_) check_taken(folder, snapshot, again);
}

TrainingFolder::~TrainingFolder() {
  if (made_ && !began_) rmdir(folder_.c_str());  // if empty
}

std::string TrainingFolder::file(const char* name) const { return (fs::path(folder_) / name).string(); }

void TrainingFolder::describe(const TrainingRun& run) const {
  Json json = read_runs(folder_);
  if (json.is_null())
    json = {{"format", format}, {"version", format_version}, {"net", run.net}, {"runs", Json::array()}};
  Json entry{{"command", run.command},
             {"working_folder", fs::current_path().string()},
             {"cortado", version()},
             {"started", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
             {"ranks", run.ranks},
             {"first_iteration", run.first_iteration}};
  if (!run.snapshot.empty()) entry["snapshot"] = run.snapshot;
  json["runs"].push_back(entry);
  write_file_atomically(file(runs), json.dump(2) + "\n");
}

void TrainingFolder::begin(const TrainingRun& run, const caffe::SolverParameter& solver,
                           const Strategy& strategy) {
  began_ = true;
  title_ = "Training " + run.net;
  describe(run);
  const auto is_input = [&](const std::string& path) {
    std::error_code error;
    return std::ranges::any_of(run.inputs,
                               [&](const std::string& input) { return fs::equivalent(input, path, error); });
  };
  if (!is_input(file(solver_file))) write_text(file(solver_file), solver);
  if (!is_input(file(strategy_file))) write_file_atomically(file(strategy_file), strategy_text(strategy));
  if (!fs::exists(log_in(folder_))) return;
  replay_log(log_in(folder_), run.first_iteration, summary_);
  replay_log(log_in(folder_), run.first_iteration, curves_);
}

void TrainingFolder::iteration(const IterationReport& report) {
  summary_.iteration(report);
  curves_.iteration(report);
}

void TrainingFolder::test(const TestReport& report) {
  summary_.test(report);
  curves_.test(report);
  constexpr int rarity = 100;  // writing takes at most so small a part of the time
  if (Clock::now() - written_ > rarity * writing_) write_course();
}

void TrainingFolder::write_course() {
  const Clock::time_point start = Clock::now();
  write_file_atomically(file(summary_file), summary_.csv());
  write_file_atomically(file(curve_file), curves_.svg(title_));
  written_ = Clock::now();
  writing_ = written_ - start;
}

}  // namespace cortado
