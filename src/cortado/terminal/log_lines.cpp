#include "cortado/terminal/log_lines.h"

#include <chrono>
#include <cstdio>
#include <ctime>
#include <fmt/format.h>
#include <unistd.h>

#include "cortado/terminal/terminal.h"

namespace cortado {
namespace {

LogFormat log_format = LogFormat::plain;

std::string prefix(std::string_view origin) {
  using namespace std::chrono;
  const auto now = system_clock::now();
  const std::time_t seconds = system_clock::to_time_t(now);
  const auto micros = duration_cast<microseconds>(now.time_since_epoch()).count() % 1'000'000;
  std::tm local{};
  localtime_r(&seconds, &local);
  return fmt::format("I{:02}{:02} {:02}:{:02}:{:02}.{:06} {:5} {}] ", local.tm_mon + 1, local.tm_mday,
                     local.tm_hour, local.tm_min, local.tm_sec, micros, gettid(), origin);
}

}  // namespace

bool writes_lines(const std::string& name) { return !name.empty() || !writes_to_terminal(); }

void set_log_format(const std::string& name) {
  const bool caffe = name.empty() ? !writes_to_terminal() : name == "caffe";
  log_format = caffe ? LogFormat::caffe : LogFormat::plain;
}

void log_line(std::string_view origin, std::string_view text) {
  fmt::print("{}{}\n", log_format == LogFormat::caffe ? prefix(origin) : "", text);
  std::fflush(stdout);
}

}  // namespace cortado
