#pragma once

#include <string>
#include <vector>

#include "cortado/base/units.h"

namespace cortado {

// A table of text for a terminal: columns as wide as their widest cell, a rule below the head.
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::right;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add(std::vector<std::string> cells);  // one for each column
  void add_rule() { rows_.push_back({}); }
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // empty: a rule
};

// "61,100,840".
std::string grouped(int64_t number);

std::string milliseconds(Seconds seconds);  // "12.345"

// "1 rank", "2 ranks".
std::string counted(int64_t number, const std::string& one);

}  // namespace cortado
