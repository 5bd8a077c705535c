#pragma once

#include <string>

#include "cortado/report/run_report.h"

namespace cortado {

// A self-contained page of HTML that is also well-formed XML: both lanes of the ranks over time, the overlap
// ratio, what was waited for layer by layer, the prediction beside it.
std::string run_page(const RunReport& report);

}  // namespace cortado
