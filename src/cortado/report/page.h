#pragma once

#include <string>

#include "cortado/base/units.h"

namespace cortado {

// What the pages share: each is one self-contained file of HTML that is also well-formed XML.

// page.css of all pages, and those of the planner's page, of runs' and of sweeps'.
extern const char* const page_style;
extern const char* const plan_page_style;
extern const char* const run_page_style;
extern const char* const sweep_page_style;

// The origin of a page: its maker's version, its date (UTC), and the command as it was typed.
struct PageOrigin {
  std::string version, date, command;
};

// Returns the origin of a page that this command makes now.
PageOrigin page_origin(const std::string& command_line);

// Writes index.html into a folder, which is made where it is missing. Throws UserError naming `option`.
void write_page(const std::string& option, const std::string& folder, const std::string& page);

// The page up to <body>. `style` follows page_style.
std::string page_head(const std::string& title, const std::string& style);

// Returns the title with the advice below it.
std::string page_title(const std::string& title, const std::string& advice);

// The page from its footer to its end. `meaning`, in HTML, says what the figures are and how sure.
std::string page_foot(const std::string& meaning, const PageOrigin& origin);

// Returns a large figure, "12.3 ms", with its caption below it.
std::string page_tile(const std::string& value, const std::string& unit, const std::string& what);

// Write about three digits: "0.123", "12.3", "1,234"; milliseconds, and MiB or GiB.
std::string short_number(double number);
std::string short_milliseconds(Seconds seconds);
std::string short_bytes(double bytes);

// A picture of bars that is stretched to whatever room there is: 0 to bar_width wide.
inline constexpr double bar_width = 1000;
std::string bar_picture(double height, const std::string& label, const std::string& content);

// The three parts of a layer's time as rectangles one after the other, from x = 0, `scale` to a second, of
// the classes compute, sync and transfer. What lies beyond `limit` is cut off.
std::string stacked_bar(Seconds compute, Seconds sync, Seconds transfer, double scale, double limit, double y,
                        double height);

// Returns the legend of those classes.
std::string time_legend();

}  // namespace cortado
