#include <algorithm>
#include <fmt/format.h>

#include "cortado/report/run_page_parts.h"

namespace cortado {
namespace {

// Messages of a layer, as the mean over the ranks.
struct LayerMessages {
  std::string name;
  int first_step = 0;  // number of the first of its steps on any rank
  Seconds communication, exposed;
  std::map<std::string, Seconds> exposed_kinds;  // "sum-gradient"
};

std::vector<LayerMessages> messages_of_layers(const RunReport& report) {
  std::map<std::string, LayerMessages> layers;
  for (const TraceSlice& slice : report.slices) {
    if (!slice.message() && slice.exposed.empty()) continue;
    auto [at, is_new] = layers.try_emplace(slice.layer);
    LayerMessages& layer = at->second;
    layer.first_step = is_new ? slice.step : std::min(layer.first_step, slice.step);
    layer.name = slice.layer.empty() ? "report of outputs" : slice.layer;
    const double share = 1.0 / report.ranks;
    layer.communication += {share * slice.length().count};
    const Seconds exposed{share * slice.exposed_length().count};
    layer.exposed += exposed;
    if (exposed.count > 0) layer.exposed_kinds[slice.category] += exposed;
  }
  std::vector<LayerMessages> list;
  for (auto& [name, layer] : layers) list.push_back(std::move(layer));
  std::ranges::sort(list, {}, &LayerMessages::first_step);
  return list;
}

std::string rect(const char* css_class, double from, double to) {
  if (to - from < 0.05) return "";
  return fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"0\" width=\"{:.1f}\" height=\"14\"/>", css_class,
                     from, to - from);
}

// Returns the kinds of steps that computing waited for, the longest wait first: "sum-gradient 12.3 ms".
std::string kinds_text(const LayerMessages& layer) {
  std::vector<std::pair<Seconds, std::string>> kinds;
  for (const auto& [kind, seconds] : layer.exposed_kinds) kinds.push_back({seconds, kind});
  std::ranges::sort(kinds, std::greater<>());
  std::string text;
  for (const auto& [seconds, kind] : kinds)
    text += fmt::format("{}{} {} ms", text.empty() ? "" : ", ", kind, short_milliseconds(seconds));
  return text.empty() ? "" : "waited for " + text;
}

std::string exposed_row(const LayerMessages& layer, double longest) {
  const double scale = bar_width / longest;
  const double exposed = std::min(layer.exposed, layer.communication).count * scale;
  const std::string name = escaped(layer.name), kinds = escaped(kinds_text(layer));
  const std::string values =
      fmt::format("{} of {} ms", short_milliseconds(layer.exposed), short_milliseconds(layer.communication));
  return fmt::format(
      "<li><span class=\"of\" title=\"{}\">{}</span>{}<span class=\"value\"><b>{}</b> of {}</span>"
      "{}</li>\n",
      name, breakable(name),
      bar_picture(14, fmt::format("{}: {} exposed", name, values),
                  rect("exposed", 0, exposed) + rect("hidden", exposed, layer.communication.count * scale)),
      short_milliseconds(layer.exposed), short_milliseconds(layer.communication),
      kinds.empty() ? "" : "<span class=\"what\">" + kinds + "</span>");
}

std::string parts_bar(const LayerParts& parts, double longest, double y, double height) {
  return stacked_bar(parts.compute, parts.sync, parts.transfer, bar_width / longest, bar_width, y, height);
}

// Returns "+3.1 %". An error above tenfold is "over 999 %": the column has no room for more.
std::string error_text(double predicted, double measured) {
  if (measured <= 0) return "";
  const double percent = 100 * (predicted / measured - 1);
  return percent < 999.95 ? fmt::format("{:+.1f} %", percent) : "over 999 %";
}

std::string predicted_row(const RunPrediction::Layer& layer, double longest) {
  const std::string name = escaped(layer.name);
  const double measured = layer.measured.total().count, predicted = layer.predicted.total().count;
  return fmt::format(
      "<li><span class=\"of\" title=\"{}\">{}</span>{}<span class=\"value\"><b>{}</b> {} ms</span>"
      "<span class=\"error\">{}</span></li>\n",
      name, breakable(name),
      bar_picture(18, name + ": measured, and predicted below",
                  parts_bar(layer.measured, longest, 0, 10) + parts_bar(layer.predicted, longest, 12, 5)),
      short_milliseconds(layer.measured.total()), short_milliseconds(layer.predicted.total()),
      error_text(predicted, measured));
}

}  // namespace

std::string exposed_part(const RunReport& report) {
  const auto layers = messages_of_layers(report);
  if (report.ranks == 1 || layers.empty()) return "";
  double longest = 0;
  for (const LayerMessages& layer : layers) longest = std::max(longest, layer.communication.count);
  if (longest <= 0) return "";
  std::string text =
      "<section id=\"exposed\">\n<h2>What computing waited for</h2>\n<p>The messages of each layer in the "
      "iteration that is drawn above, on the mean of the ranks: <b>how long the compute lane stood still</b> "
      "for them, of how long they took, in milliseconds. Where gradients of several layers are summed "
      "together, the sum is shown with the first of them.</p>\n<ul class=\"legend\"><li><i class=\"swatch "
      "exposed\"></i>computing "
      "waited</li><li><i class=\"swatch hidden\"></i>hidden under computing</li></ul>\n"
      "<ul class=\"bars rows\">\n";
  for (const LayerMessages& layer : layers) text += exposed_row(layer, longest);
  return text + "</ul>\n</section>\n";
}

std::string predicted_part(const RunReport& report) {
  if (!report.prediction) return "";
  const RunPrediction& prediction = *report.prediction;
  double longest = 0;
  for (const auto& layer : prediction.layers)
    longest = std::max({longest, layer.predicted.total().count, layer.measured.total().count});
  if (longest <= 0) return "";
  std::string text =
      "<section id=\"predicted\">\n<h2>Predicted beside measured</h2>\n<p>Thick bars are measured (medians), "
      "thin ones predicted by costs measured on this machine; beside them <b>measured</b> and predicted "
      "milliseconds of rank 0, and the prediction's error. Messages count whether they are hidden or not: as "
      "measured, with what they wait for the other ranks.</p>\n" +
      time_legend() + "<ul class=\"bars rows predictions\">\n";
  for (const auto& layer : prediction.layers) text += predicted_row(layer, longest);
  const auto error = [&](Seconds predicted) { return 100 * (predicted.count / report.step.count - 1); };
  return text + fmt::format(
                    "</ul>\n<p>An iteration took <b>{} ms</b>; simulated, with communication under "
                    "computing, {} ms ({:+.1f} %); with nothing hidden it would take {} ms.</p>\n"
                    "</section>\n",
                    short_milliseconds(report.step), short_milliseconds(prediction.step),
                    error(prediction.step), short_milliseconds(prediction.one_by_one));
}

}  // namespace cortado
