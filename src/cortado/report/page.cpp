#include "cortado/report/page.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "cortado/base/command_files.h"
#include "cortado/base/file.h"
#include "cortado/base/version.h"
#include "cortado/report/markup.h"
#include "cortado/report/table.h"

namespace cortado {

PageOrigin page_origin(const std::string& command_line) {
  return {.version = std::string(version()),
          .date = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr))),
          .command = command_line};
}

void write_page(const std::string& option, const std::string& folder, const std::string& page) {
  make_folder(option, folder);
  write_file_atomically(folder + "/index.html", page);
}

std::string page_head(const std::string& title, const std::string& style) {
  return fmt::format(
      "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
      "<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n<title>{}</title>\n"
      "<style>\n{}{}</style>\n</head>\n<body>\n",
      escaped(title), page_style, style);
}

std::string page_title(const std::string& title, const std::string& advice) {
  return fmt::format("<h1>{}</h1>\n<p class=\"advice\">{}</p>\n", escaped(title), escaped(advice));
}

std::string page_foot(const std::string& meaning, const PageOrigin& origin) {
  return fmt::format(
      "<footer>\n{}<p class=\"origin\">Made {} by Cortado {}: "
      "<code>{}</code></p>\n</footer>\n</body>\n</html>\n",
      meaning, escaped(origin.date), escaped(origin.version), escaped(origin.command));
}

std::string page_tile(const std::string& value, const std::string& unit, const std::string& what) {
  return fmt::format("<li><b>{}</b> <span class=\"unit\">{}</span><span class=\"what\">{}</span></li>\n",
                     value, unit, what);
}

std::string short_number(double number) {
  const double size = std::abs(number);
  if (size >= 999.5) return grouped(std::llround(number));
  if (size >= 99.95) return fmt::format("{:.0f}", number);
  if (size >= 9.995) return fmt::format("{:.1f}", number);
  if (size >= 0.9995) return fmt::format("{:.2f}", number);
  if (size >= 0.0005) return fmt::format("{:.3f}", number);
  return size == 0 ? "0" : "\u2248 0";
}

std::string short_milliseconds(Seconds seconds) { return short_number(1e3 * seconds.count); }

std::string short_bytes(double bytes) {
  constexpr double kibi = 1024;
  if (bytes >= kibi * kibi * kibi) return short_number(bytes / (kibi * kibi * kibi)) + " GiB";
  if (bytes >= kibi * kibi) return short_number(bytes / (kibi * kibi)) + " MiB";
  if (bytes >= kibi) return short_number(bytes / kibi) + " KiB";
  return fmt::format("{:.0f} bytes", bytes);
}

std::string bar_picture(double height, const std::string& label, const std::string& content) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" "
      "preserveAspectRatio=\"none\" style=\"height:{:.0f}px\" role=\"img\" "
      "aria-label=\"{}\">{}</svg>",
      bar_width, height, height, label, content);
}

std::string stacked_bar(Seconds compute, Seconds sync, Seconds transfer, double scale, double limit, double y,
                        double height) {
  std::string bar;
  double at = 0;
  const std::pair<const char*, Seconds> parts[] = {
      {"compute", compute}, {"sync", sync}, {"transfer", transfer}};
  for (const auto& [css_class, seconds] : parts) {
    const double end = std::min(at + seconds.count * scale, limit);
    if (end - at > 0.05) {
      bar += fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"/>",
                         css_class, at, y, end - at, height);
    }
    at = std::max(at, end);
  }
  return bar;
}

std::string time_legend() {
  return "<ul class=\"legend\"><li><i class=\"swatch compute\"></i>computing</li>"
         "<li><i class=\"swatch sync\"></i>sums of gradients</li>"
         "<li><i class=\"swatch transfer\"></i>transfers</li></ul>\n";
}

}  // namespace cortado
