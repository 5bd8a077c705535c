#include "cortado/report/time_report.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "cortado/program/exposure.h"
#include "cortado/report/run_report.h"
#include "cortado/report/table.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of this rank's share.
double forward_flops(const Network& network, const Program& program, const Work& work) {
  double flops = 0;
  for (int operation : work.operations) {
    const auto& part = program.placement->operations[static_cast<size_t>(operation)];
    // Behind partial sums stands a bias of the same node.
    if (part.layer->type() != network.nodes()[static_cast<size_t>(part.node)].layer->type()) continue;
    int64_t all = 0;
    for (const auto& box : part.domain) all += box ? box->shape().size() : 0;
    const double share = static_cast<double>(work.task.domain_box.shape().size()) / static_cast<double>(all);
    flops += share * network.forward_flops(part.node).count;
  }
  return flops;
}

// A gradient of the inputs costs what the forward pass does, and so does one of the parameters.
double backward_flops(const Network& network, const Program& program, const Work& work) {
  auto any = [](const std::vector<bool>& wanted) {
    return std::find(wanted.begin(), wanted.end(), true) != wanted.end();
  };
  int passes = any(work.task.input_gradients) ? 1 : 0;
  if (work.task.layer().splits_backward() && any(work.task.parameter_gradients)) ++passes;
  return passes * forward_flops(network, program, work);
}

double flops_of(const Network& network, const Program& program, const Work& work) {
  return (work.backward_only ? 0 : forward_flops(network, program, work)) +
         backward_flops(network, program, work);
}

}  // namespace

double TimeReport::communication() const {
  double seconds = 0;
  for (const LayerTimes& layer : layers) seconds += layer.communication;
  return seconds;
}

std::optional<double> TimeReport::overlap() const {
  return overlap_ratio(Seconds{messages}, Seconds{exposed});
}

double TimeReport::compute() const {
  double seconds = update;
  for (const LayerTimes& layer : layers) seconds += layer.forward + layer.backward;
  return seconds;
}

IterationTimes times_of(const Program& program, std::span<const TimelineEntry> timeline, double step_seconds,
                        double exposed, double data_wait) {
  IterationTimes times{.step = step_seconds, .exposed = exposed, .data_wait = data_wait};
  for (auto* list : {&times.forward, &times.backward, &times.communication})
    list->resize(program.works.size());
  for (const TimelineEntry& entry : timeline) {
    const Step& step = program.steps[static_cast<size_t>(entry.step)];
    const double seconds = entry.end.count - entry.begin.count;
    times.steps.push_back(seconds);
    if (step.is<steps::Update>()) times.update += seconds;
    if (step.lane == Lane::communication) {
      if (step.is<steps::Load>()) continue;
      times.messages += seconds;
      const int work = work_served(program, step);
      if (work >= 0) times.communication[static_cast<size_t>(work)] += seconds;
    } else if (step.work() >= 0) {
      const bool forward = step.runs(Pass::forward) || step.runs(Pass::forward_partial);
      (forward ? times.forward : times.backward)[static_cast<size_t>(program.whole_of(step.work()))] +=
          seconds;
    }
  }
  return times;
}

TimeReport report_of(const Network& network, const Program& program,
                     const std::vector<IterationTimes>& times) {
  auto median_of = [&](auto&& pick) {
    std::vector<double> values;
    for (const IterationTimes& iteration : times) values.push_back(pick(iteration));
    return median(std::move(values));
  };
  TimeReport report;
  report.step = median_of([](const IterationTimes& t) { return t.step; });
  report.update = median_of([](const IterationTimes& t) { return t.update; });
  report.exposed = median_of([](const IterationTimes& t) { return t.exposed; });
  report.data_wait = median_of([](const IterationTimes& t) { return t.data_wait; });
  report.messages = median_of([](const IterationTimes& t) { return t.messages; });
  for (size_t w = 0; w < program.works.size(); ++w) {
    const Work& work = program.works[w];
    if (work.kind == Work::Kind::source && report.images == 0) {
      const Network::Node& node = network.nodes()[static_cast<size_t>(work.nodes.front())];
      const Shape& batch = network.tensors()[static_cast<size_t>(node.outputs.front())].shape;
      report.images = static_cast<double>(batch[0]);
    }
    if (!work.is_layer()) continue;
    LayerTimes layer{.name = name_of(work, network)};
    layer.forward = median_of([&](const IterationTimes& t) { return t.forward[w]; });
    layer.backward = median_of([&](const IterationTimes& t) { return t.backward[w]; });
    layer.communication = median_of([&](const IterationTimes& t) { return t.communication[w]; });
    const double flops = flops_of(network, program, work);
    layer.gflops = flops / 1e9 / std::max(1e-12, layer.forward + layer.backward);
    report.flops += flops;
    report.layers.push_back(std::move(layer));
  }
  return report;
}

double flops_of(const Network& network, const Program& program) {
  double flops = 0;
  for (const Work& work : program.works)
    if (work.is_layer()) flops += flops_of(network, program, work);
  return flops;
}

size_t nearest_to(const TimeReport& report, const std::vector<IterationTimes>& times, size_t stride) {
  const auto away = [&](size_t i) { return std::abs(times[i].step - report.step); };
  size_t nearest = 0;
  for (size_t i = stride; i < times.size(); i += stride)
    if (away(i) < away(nearest)) nearest = i;
  return nearest;
}

std::vector<double> step_medians(const std::vector<IterationTimes>& times) {
  std::vector<double> medians;
  for (size_t step = 0; step < times.front().steps.size(); ++step) {
    std::vector<double> values;
    for (const IterationTimes& iteration : times) values.push_back(iteration.steps[step]);
    medians.push_back(median(std::move(values)));
  }
  return medians;
}

std::string times_text(const TimeReport& r) {
  std::vector<Table::Column> columns{{"layer", Table::Align::left}, {"forward ms"}, {"backward ms"}};
  const bool job = r.ranks > 1;
  if (job) columns.push_back({"communication ms"});
  columns.insert(columns.end(), {{"GFLOP/s"}, {"% of peak"}});
  Table table(columns);
  auto add = [&](std::vector<std::string> cells, const std::string& communication) {
    if (job) cells.insert(cells.begin() + 3, communication);
    table.add(std::move(cells));
  };
  double forward = 0, backward = 0;
  for (const LayerTimes& layer : r.layers) {
    add({layer.name, fmt::format("{:.3f}", 1e3 * layer.forward), fmt::format("{:.3f}", 1e3 * layer.backward),
         fmt::format("{:.1f}", layer.gflops), fmt::format("{:.1f}", 1e11 * layer.gflops * r.ranks / r.peak)},
        fmt::format("{:.3f}", 1e3 * layer.communication));
    forward += layer.forward;
    backward += layer.backward;
  }
  table.add_rule();
  add({"update", "", fmt::format("{:.3f}", 1e3 * r.update), "", ""}, "");
  add({"sum of layers", fmt::format("{:.3f}", 1e3 * forward), fmt::format("{:.3f}", 1e3 * backward), "", ""},
      fmt::format("{:.3f}", 1e3 * r.communication()));
  add({"iteration", "", fmt::format("{:.3f}", 1e3 * r.step), fmt::format("{:.1f}", r.flops / 1e9 / r.step),
       fmt::format("{:.1f}", r.percent_of_peak())},
      "");
  std::string text = table.text() + "\n";
  if (job) {
    text += fmt::format(
        "layers: those of rank 0; {:.3f} ms of its communication were not hidden (overlap ratio R {}); "
        "{:.3f} MiB sent by all ranks in an iteration\n",
        1e3 * r.exposed, r.overlap() ? fmt::format("{:.1f} %", *r.overlap()) : "of none",
        r.bytes / (1 << 20));
  }
  return text +
         fmt::format("{:.1f} images/s; {}: {:.1f} GFLOP/s\n", r.images / r.step, r.of_peak, r.peak / 1e9);
}

nlohmann::ordered_json times_json(const TimeReport& r) {
  Json layers = Json::array();
  for (const LayerTimes& layer : r.layers) {
    layers.push_back({{"name", layer.name},
                      {"forward_seconds", layer.forward},
                      {"backward_seconds", layer.backward},
                      {"communication_seconds", layer.communication},
                      {"gflops", layer.gflops}});
  }
  return {{"step_seconds", r.step},
          {"compute_seconds", r.compute()},
          {"communication_seconds", r.communication()},
          {"exposed_communication_seconds", r.exposed},
          {"overlap_ratio_percent", r.overlap() ? Json(*r.overlap()) : Json()},
          {"data_wait_seconds", r.data_wait},
          {"bytes_per_iteration", r.bytes},
          {"percent_of_peak", r.percent_of_peak()},
          {"images_per_second", r.images / r.step},
          {"update_seconds", r.update},
          {"peak_gflops", r.peak / 1e9},
          {"ranks", r.ranks},
          {"layers", layers}};
}

}  // namespace cortado
