#pragma once

#include <string>

#include "cortado/plan/sweep.h"
#include "cortado/report/page.h"

namespace cortado {

// All that reports of a sweep show.
struct SweepReport {
  const plan::Sweep& sweep;
  PageOrigin origin = {};  // of the page
};

// Text for a terminal: a table of the points, and the answers to what people ask before they buy.
std::string sweep_text(const SweepReport& report);
// A line for each point, below one with the names of the columns; units are in the names.
std::string sweep_csv(const SweepReport& report);
// All figures, with the units in the keys (docs/reference/output.md).
std::string sweep_json(const SweepReport& report);
// A self-contained page of HTML that is also well-formed XML.
std::string sweep_page(const SweepReport& report);

// Files that a sweep is written to. Empty: none.
struct SweepFiles {
  std::string json, csv, page;  // page: a folder
};
// Writes the files and returns sweep_text(). Throws UserError naming the option `--report`.
std::string write_sweep(const SweepReport& report, const SweepFiles& files);

inline constexpr double bytes_per_gigabyte = 1e9;

// More devices are worth their price as long as each gives this share of what those of the first point give.
inline constexpr double worthwhile_efficiency = 0.5;

// The texts that the forms share.
std::string sweep_advice(const plan::Sweep& sweep);  // one sentence: what to take
std::string link_answer(const plan::Sweep& sweep);   // "" where no point has links
std::string smallest_answer(const plan::Sweep& sweep, const plan::SmallestMachine& smallest);
std::string point_name(const plan::Sweep& sweep, const plan::SweepPoint& point);  // "64 devices, batch 512"
std::string series_name(const plan::Sweep& sweep,
                        const plan::SweepPoint& point);  // "batch 512, network at 12 GB/s"
std::string bound_text(const plan::SweepPoint& point);
// "network 12 %": the links that gain most where they are twice as fast, and how much shorter an iteration
// is.
std::string gain_text(const plan::SweepPoint& point);

}  // namespace cortado
