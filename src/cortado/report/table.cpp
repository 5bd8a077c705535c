#include "cortado/report/table.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/base/text.h"

namespace cortado {

void Table::add(std::vector<std::string> cells) {
  ensure(cells.size() == columns_.size(), "a table row has a cell for each column");
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(columns_[c].title.size());
    for (const auto& row : rows_) {
      if (!row.empty()) widths[c] = std::max(widths[c], row[c].size());
    }
  }
  std::string text;
  auto line = [&](auto&& cell) {
    std::string row;
    for (size_t c = 0; c < columns_.size(); ++c) {
      std::string content = cell(c);
      std::string padding(widths[c] - content.size(), ' ');
      if (c > 0) row += "  ";
      row += columns_[c].align == Align::left ? content + padding : padding + content;
    }
    text += row.substr(0, row.find_last_not_of(' ') + 1) + '\n';
  };
  auto rule = [&] { line([&](size_t c) { return std::string(widths[c], '-'); }); };
  line([&](size_t c) { return columns_[c].title; });
  rule();
  for (const auto& row : rows_) {
    if (row.empty()) {
      rule();
    } else {
      line([&](size_t c) { return row[c]; });
    }
  }
  return text;
}

std::string grouped(int64_t number) {
  std::string digits = std::to_string(number), text;
  size_t first = digits.starts_with('-') ? 1 : 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > first && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string milliseconds(Seconds seconds) { return fmt::format("{:.3f}", 1e3 * seconds.count); }

std::string counted(int64_t number, const std::string& one) {
  return fmt::format("{} {}{}", number, one, number == 1 ? "" : "s");
}

}  // namespace cortado
