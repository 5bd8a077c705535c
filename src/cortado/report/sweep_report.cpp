#include "cortado/report/sweep_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cortado/base/file.h"
#include "cortado/base/text.h"
#include "cortado/report/table.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;
using plan::Sweep;
using plan::SweepPoint;

std::string bandwidth_text(const SweepPoint& point) {
  return point.bandwidth ? fmt::format("{:g}", point.bandwidth->bytes_per_second / bytes_per_gigabyte) : "";
}

std::vector<std::string> cells_of(const Sweep& sweep, const SweepPoint& point) {
  std::vector<std::string> cells{point.batch.text(), fmt::format("{}", point.devices)};
  if (!sweep.link.empty()) cells.push_back(bandwidth_text(point));
  if (point.fits()) {
    cells.insert(cells.end(),
                 {fmt::format("{:.3f}", 1e3 * point.seconds().count), short_number(point.images_per_second()),
                  fmt::format("{:.0f}", 100 * point.efficiency), plan::gibibytes(point.memory)});
  } else {
    cells.insert(cells.end(), {"", "", "", ""});
  }
  if (sweep.priced()) {
    cells.push_back(short_number(point.price_per_hour));
    cells.push_back(point.fits() ? short_number(point.price_per_million()) : "");
  }
  cells.push_back(bound_text(point));
  cells.push_back(gain_text(point));
  cells.push_back(!point.fits() ? "" : point.simulated ? "simulated" : "added up");
  return cells;
}

Json price_or_null(double number) { return number > 0 ? Json(number) : Json(); }

Json point_json(const SweepPoint& point) {
  Json json{{"devices", point.devices},
            {"batch", point.samples},
            {"batch_per_device", point.batch.per_device},
            {"bandwidth_gb_per_s",
             point.bandwidth ? Json(point.bandwidth->bytes_per_second / bytes_per_gigabyte) : Json()},
            {"price_per_hour", price_or_null(point.price_per_hour)},
            {"fits", point.fits()},
            {"bound", std::string(name_of(point.bound()))}};
  if (!point.fits()) {
    json["needs_bytes"] = point.needs.count;
    return json;
  }
  json.update({{"iteration_seconds", point.seconds().count},
               {"simulated", point.simulated},
               {"compute_seconds", point.parts.compute.count},
               {"exchange_seconds", point.parts.exchange.count},
               {"sync_seconds", point.parts.sync.count},
               {"images_per_second", point.images_per_second()},
               {"efficiency", point.efficiency},
               {"memory_bytes", point.memory.count},
               {"price_per_million_images", price_or_null(point.price_per_million())},
               {"optimal", point.proven},
               {"gap", point.gap},
               {"cost_seconds", point.planned.count},
               {"cost_seconds_without_memory_limit", point.unlimited.count},
               {"twice_as_fast", Json::array()}});
  for (const plan::LinkGain& gain : point.gains)
    json["twice_as_fast"].push_back(
        {{"links", gain.links.name},
         {"bandwidth_gb_per_s", gain.links.bandwidth.bytes_per_second / bytes_per_gigabyte},
         {"iteration_seconds", gain.seconds.count}});
  return json;
}

}  // namespace

std::string sweep_text(const SweepReport& report) {
  const Sweep& sweep = report.sweep;
  using Align = Table::Align;
  std::vector<Table::Column> columns{{"batch"}, {"devices"}};
  if (!sweep.link.empty()) columns.push_back({sweep.link + " GB/s"});
  for (const char* title : {"iteration ms", "images/s", "efficiency %", "a device"})
    columns.push_back({title});
  if (sweep.priced()) columns.insert(columns.end(), {{"an hour"}, {"a million images"}});
  for (const char* title : {"bound by", "a faster link saves", "time"})
    columns.push_back({title, Align::left});
  Table table(columns);
  for (size_t p = 0; p < sweep.points.size(); ++p) {
    const SweepPoint& point = sweep.points[p];
    const bool begins = p > 0 && series_name(sweep, point) != series_name(sweep, sweep.points[p - 1]);
    if (begins) table.add_rule();
    table.add(cells_of(sweep, point));
  }
  std::string text = table.text() + '\n' + sweep_advice(sweep) + '\n';
  if (const std::string links = link_answer(sweep); !links.empty()) text += links + ".\n";
  for (const plan::SmallestMachine& smallest : sweep.smallest)
    text += smallest_answer(sweep, smallest) + ".\n";
  return text;
}

std::string sweep_csv(const SweepReport& report) {
  const Sweep& sweep = report.sweep;
  std::string text =
      "devices,batch,links,bandwidth_gb_per_s,fits,iteration_seconds,simulated,images_per_second,efficiency,"
      "memory_bytes,price_per_hour,price_per_million_images,bound,best_links,best_links_iteration_seconds\n";
  for (const SweepPoint& point : sweep.points) {
    const auto number = [&](double value) {
      return point.fits() && value > 0 ? fmt::format("{}", value) : std::string();
    };
    const plan::LinkGain* best = point.best_gain();
    const std::vector<std::string> fields{
        fmt::format("{}", point.devices),
        fmt::format("{}", point.samples),
        sweep.link,
        bandwidth_text(point),
        point.fits() ? "1" : "0",
        number(point.seconds().count),
        point.simulated ? "1" : "0",
        point.fits() ? number(point.images_per_second()) : "",
        number(point.efficiency),
        fmt::format("{}", point.fits() ? point.memory.count : point.needs.count),
        point.price_per_hour > 0 ? fmt::format("{}", point.price_per_hour) : "",
        number(point.price_per_million()),
        std::string(name_of(point.bound())),
        best ? best->links.name : "",
        best ? fmt::format("{}", best->seconds.count) : ""};
    text += fmt::format("{}\n", fmt::join(fields, ","));
  }
  return text;
}

std::string sweep_json(const SweepReport& report) {
  const Sweep& sweep = report.sweep;
  Json json{{"net", sweep.net},
            {"machine", sweep.machine},
            {"links", sweep.link.empty() ? Json() : Json(sweep.link)},
            {"memory_limit_bytes", sweep.memory_limit.count},
            {"points", Json::array()},
            {"smallest", Json::array()}};
  for (const SweepPoint& point : sweep.points) json["points"].push_back(point_json(point));
  for (const plan::SmallestMachine& smallest : sweep.smallest)
    json["smallest"].push_back({{"batch", smallest.batch.samples},
                                {"batch_per_device", smallest.batch.per_device},
                                {"devices", smallest.devices > 0 ? Json(smallest.devices) : Json()},
                                {"price_per_hour", price_or_null(smallest.price_per_hour)}});
  return json.dump(2) + "\n";
}

std::string write_sweep(const SweepReport& report, const SweepFiles& files) {
  if (!files.page.empty()) write_page("--report", files.page, sweep_page(report));
  if (!files.json.empty()) write_file_atomically(files.json, sweep_json(report));
  if (!files.csv.empty()) write_file_atomically(files.csv, sweep_csv(report));
  return sweep_text(report);
}

}  // namespace cortado
