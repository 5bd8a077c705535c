#include "cortado/app/page.h"

#include <ctime>
#include <filesystem>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <numeric>

#include "cortado/app/job_trace.h"
#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/base/version.h"

namespace cortado {
namespace {

LayerParts parts_of(const double (&seconds)[std::size(step_parts)]) {
  LayerParts parts;
  for (StepPart part : step_parts) {
    Seconds& sum = part == StepPart::sync       ? parts.sync
                   : part == StepPart::transfer ? parts.transfer
                                                : parts.compute;
    sum += {seconds[static_cast<size_t>(part)]};
  }
  return parts;
}

}  // namespace

void write_page(const std::string& folder, const std::string& page) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && !std::filesystem::is_directory(folder))
    error = std::make_error_code(std::errc::not_a_directory);
  if (error)
    throw UserError(fmt::format("--report {}: the folder cannot be made: {}", folder, error.message()));
  write_file_atomically(folder + "/index.html", page);
}

PageOrigin page_origin(const std::string& command_line) {
  return {.version = std::string(version()),
          .date = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr))),
          .command = command_line};
}

RunReport run_report_of(const TimeReport& times, const Network& network, std::string about,
                        std::vector<TraceSlice> slices) {
  RunReport report;
  report.net = network.name();
  report.about = std::move(about);
  report.ranks = times.ranks;
  report.images = times.images;
  report.bytes = times.bytes;
  report.step = {times.step};
  report.totals = {.end = {times.step},
                   .compute = {times.compute()},
                   .communication = {times.messages},
                   .exposed = {times.exposed},
                   .data_wait = {times.data_wait}};
  report.slices = std::move(slices);
  return report;
}

RunPrediction run_prediction_of(const SimulatedJob& simulated, const std::vector<PredictedLayer>& layers,
                                const Network& network) {
  RunPrediction prediction;
  prediction.step = simulated.simulation.iteration;
  prediction.slices = slices_of_job(simulated, network);
  for (const PredictedLayer& layer : layers) {
    const LayerParts predicted = parts_of(layer.predicted), measured = parts_of(layer.measured);
    prediction.one_by_one += predicted.total();
    if (measured.total().count > 0) prediction.layers.push_back({layer.name, predicted, measured});
  }
  return prediction;
}

}  // namespace cortado
