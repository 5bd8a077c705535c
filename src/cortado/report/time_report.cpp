#include "cortado/report/time_report.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

#include "cortado/program/exposure.h"
#include "cortado/report/overlap_ratio.h"
#include "cortado/report/table.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;

Seconds median(std::vector<Seconds> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double gflops(FlopRate rate) { return rate.per_second / 1e9; }

// Counts ranks' shares of what the operations of one placement take. Remembers what all ranks together take.
class FlopCount {
 public:
  explicit FlopCount(const Network& network) : network_(network) {}

  Flops of(const Program& program, const Work& work) {
    // A gradient of the inputs costs what the forward pass does, and so does one of the parameters.
    int passes = work.backward_only ? 0 : 1;
    if (any_wanted(work.task.input_gradients)) ++passes;
    if (work.task.layer().splits_backward() && any_wanted(work.task.parameter_gradients)) ++passes;
    return {passes * forward(program, work).count};
  }

 private:
  struct Whole {
    int64_t elements = 0;  // of the domain
    Flops flops;
  };
  Flops forward(const Program& program, const Work& work) {
    Flops flops;
    for (OperationIndex operation : work.operations) {
      const auto& part = program.placement->operations[operation];
      // The bias after partial sums is an operation of the same node.
      if (part.layer->type() != network_.nodes()[part.node].layer->type()) continue;
      const auto [known, is_new] = known_.try_emplace(operation);
      if (is_new) {
        for (const auto& box : part.domain) known->second.elements += box ? box->shape().size() : 0;
        known->second.flops = network_.forward_flops(part.node);
      }
      const double share = static_cast<double>(work.task.domain_box.shape().size()) /
                           static_cast<double>(known->second.elements);
      flops += {share * known->second.flops.count};
    }
    return flops;
  }

  const Network& network_;
  std::map<OperationIndex, Whole> known_;
};

}  // namespace

Seconds TimeReport::communication() const {
  Seconds seconds;
  for (const LayerTimes& layer : layers) seconds += layer.communication;
  return seconds;
}

std::optional<double> TimeReport::overlap() const { return overlap_ratio(messages, exposed); }

Seconds TimeReport::compute() const {
  Seconds seconds = update;
  for (const LayerTimes& layer : layers) seconds += layer.forward + layer.backward;
  return seconds;
}

IterationTimes times_of(const Program& program, std::span<const TimelineEntry> timeline, Seconds step,
                        Seconds exposed, Seconds data_wait) {
  IterationTimes times{.step = step, .exposed = exposed, .data_wait = data_wait};
  for (auto* list : {&times.forward, &times.backward, &times.communication})
    list->resize(program.works.size());
  for (const TimelineEntry& entry : timeline) {
    const Step& step = program.steps[entry.step];
    const Seconds seconds = entry.end - entry.begin;
    times.steps.push_back(seconds);
    if (step.is<steps::Update>()) times.update += seconds;
    if (step.lane == Lane::communication) {
      if (step.is<steps::Load>()) continue;
      times.messages += seconds;
      if (const WorkIndex work = work_served(program, step)) times.communication[work] += seconds;
    } else if (step.work()) {
      if (step.again()) times.recomputed += seconds;
      const bool forward = !step.again() && (step.runs(Pass::forward) || step.runs(Pass::forward_partial));
      (forward ? times.forward : times.backward)[program.whole_of(step.work())] += seconds;
    }
  }
  return times;
}

TimeReport report_of(const Network& network, const Program& program,
                     const std::vector<IterationTimes>& times) {
  auto median_of = [&](auto&& pick) {
    std::vector<Seconds> values;
    for (const IterationTimes& iteration : times) values.push_back(pick(iteration));
    return median(std::move(values));
  };
  TimeReport report;
  FlopCount count(network);
  report.step = median_of([](const IterationTimes& t) { return t.step; });
  report.update = median_of([](const IterationTimes& t) { return t.update; });
  report.exposed = median_of([](const IterationTimes& t) { return t.exposed; });
  report.data_wait = median_of([](const IterationTimes& t) { return t.data_wait; });
  report.messages = median_of([](const IterationTimes& t) { return t.messages; });
  report.recomputed = median_of([](const IterationTimes& t) { return t.recomputed; });
  report.arena = program.arena;
  for (const Step& step : program.steps) report.steps_again += step.is<steps::Compute>() && step.again();
  for (WorkIndex w : indices(program.works)) {
    const Work& work = program.works[w];
    if (work.kind == Work::Kind::source && report.images == 0) {
      const Network::Node& node = network.nodes()[work.nodes.front()];
      const Shape& batch = network.tensors()[node.outputs.front()].shape;
      report.images = static_cast<double>(batch[0]);
    }
    if (!work.is_layer()) continue;
    LayerTimes layer{.name = name_of(work, network)};
    layer.forward = median_of([&](const IterationTimes& t) { return t.forward[w]; });
    layer.backward = median_of([&](const IterationTimes& t) { return t.backward[w]; });
    layer.communication = median_of([&](const IterationTimes& t) { return t.communication[w]; });
    const Flops flops = count.of(program, work);
    layer.rate = {flops.count / std::max(1e-12, (layer.forward + layer.backward).count)};
    report.flops += flops;
    report.layers.push_back(std::move(layer));
  }
  return report;
}

Flops flops_of(const Network& network, const Program& program) {
  FlopCount count(network);
  Flops flops;
  for (const Work& work : program.works)
    if (work.is_layer()) flops += count.of(program, work);
  return flops;
}

size_t nearest_to(const TimeReport& report, const std::vector<IterationTimes>& times, size_t stride) {
  const auto away = [&](size_t i) { return std::abs((times[i].step - report.step).count); };
  size_t nearest = 0;
  for (size_t i = stride; i < times.size(); i += stride)
    if (away(i) < away(nearest)) nearest = i;
  return nearest;
}

IndexedVector<StepIndex, Seconds> step_medians(const std::vector<IterationTimes>& times) {
  IndexedVector<StepIndex, Seconds> medians;
  for (StepIndex step : indices(times.front().steps)) {
    std::vector<Seconds> values;
    for (const IterationTimes& iteration : times) values.push_back(iteration.steps[step]);
    medians.push_back(median(std::move(values)));
  }
  return medians;
}

std::optional<double> TimeReport::percent_of_peak(FlopRate of_all_ranks) const {
  if (peak.per_second <= 0) return {};
  return 100 * of_all_ranks.per_second / peak.per_second;
}

std::string times_text(const TimeReport& r) {
  std::vector<Table::Column> columns{{"layer", Table::Align::left}, {"forward ms"}, {"backward ms"}};
  const bool job = r.ranks > 1;
  if (job) columns.push_back({"communication ms"});
  columns.insert(columns.end(), {{"GFLOP/s"}, {"% of peak"}});
  const auto percent = [&](FlopRate rate) {
    const auto known = r.percent_of_peak(rate);
    return known ? fmt::format("{:.1f}", *known) : "";
  };
  Table table(columns);
  auto add = [&](std::vector<std::string> cells, const std::string& communication) {
    if (job) cells.insert(cells.begin() + 3, communication);
    table.add(std::move(cells));
  };
  Seconds forward, backward;
  for (const LayerTimes& layer : r.layers) {
    add({layer.name, milliseconds(layer.forward), milliseconds(layer.backward),
         fmt::format("{:.1f}", gflops(layer.rate)), percent({layer.rate.per_second * r.ranks})},
        milliseconds(layer.communication));
    forward += layer.forward;
    backward += layer.backward;
  }
  table.add_rule();
  add({"update", "", milliseconds(r.update), "", ""}, "");
  add({"sum of layers", milliseconds(forward), milliseconds(backward), "", ""},
      milliseconds(r.communication()));
  add({"iteration", "", milliseconds(r.step), fmt::format("{:.1f}", gflops(r.rate())), percent(r.rate())},
      "");
  std::string text = table.text() + "\n";
  if (job) {
    text += fmt::format(
        "layers: those of rank 0; {} ms of its communication were not hidden (overlap ratio R {}); "
        "{:.3f} MiB sent by all ranks in an iteration\n",
        milliseconds(r.exposed), r.overlap() ? fmt::format("{:.1f} %", *r.overlap()) : "of none",
        r.bytes / (1 << 20));
  }
  if (r.steps_again > 0)
    text += fmt::format("{} of the backward pass repeat the forward pass, {} ms; tensors lie in {:.1f} MiB\n",
                        counted(r.steps_again, "step"), milliseconds(r.recomputed),
                        static_cast<double>(r.arena.count) / (1 << 20));
  text += fmt::format("{:.1f} images/s", r.images / r.step.count);
  if (r.peak.per_second > 0) text += fmt::format("; {}: {:.1f} GFLOP/s", r.of_peak, gflops(r.peak));
  return text + "\n";
}

nlohmann::ordered_json times_json(const TimeReport& r) {
  Json layers = Json::array();
  for (const LayerTimes& layer : r.layers) {
    layers.push_back({{"name", layer.name},
                      {"forward_seconds", layer.forward.count},
                      {"backward_seconds", layer.backward.count},
                      {"communication_seconds", layer.communication.count},
                      {"gflops", gflops(layer.rate)}});
  }
  Json json{{"step_seconds", r.step.count},
            {"compute_seconds", r.compute().count},
            {"communication_seconds", r.communication().count},
            {"exposed_communication_seconds", r.exposed.count},
            {"overlap_ratio_percent", r.overlap() ? Json(*r.overlap()) : Json()},
            {"data_wait_seconds", r.data_wait.count},
            {"bytes_per_iteration", r.bytes},
            {"percent_of_peak", r.peak.per_second > 0 ? Json(*r.percent_of_peak(r.rate())) : Json()},
            {"images_per_second", r.images / r.step.count},
            {"update_seconds", r.update.count},
            {"peak_gflops", gflops(r.peak)},
            {"ranks", r.ranks},
            {"layers", layers}};
  if (r.steps_again > 0) {
    json["recomputed_steps"] = r.steps_again;
    json["recomputed_seconds"] = r.recomputed.count;
    json["arena_bytes"] = r.arena.count;
  }
  return json;
}

}  // namespace cortado
