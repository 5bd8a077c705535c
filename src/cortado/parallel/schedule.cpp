#include "cortado/parallel/schedule.h"

#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <string_view>

#include "cortado/base/error.h"

namespace cortado {
namespace {

using Kind = GradientChunks::Kind;

constexpr std::pair<std::string_view, Kind> names[] = {
    {"parameter", Kind::parameter}, {"layer", Kind::layer}, {"one", Kind::one}};

constexpr std::pair<std::string_view, int64_t> units[] = {
    {"GiB", int64_t{1} << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}};

// All of the text, from 1 to `most`.
std::optional<int64_t> number_in(std::string_view text, int64_t most) {
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size() || number < 1 || number > most)
    return std::nullopt;
  return number;
}

// With a unit.
std::optional<Bytes> size_in(std::string_view text) {
  for (const auto& [unit, size] : units) {
    if (!text.ends_with(unit)) continue;
    const auto count = number_in(text.substr(0, text.size() - unit.size()), (int64_t{1} << 40) / size);
    if (!count) return std::nullopt;
    return Bytes{*count * size};
  }
  return std::nullopt;
}

std::optional<GradientChunks> chunks_in(std::string_view text) {
  for (const auto& [name, kind] : names)
    if (text == name) return GradientChunks{.kind = kind};
  if (text.starts_with("first:")) {
    const auto layers = number_in(text.substr(6), 1 << 20);
    if (!layers) return std::nullopt;
    return GradientChunks{.kind = Kind::first, .layers = static_cast<int>(*layers)};
  }
  if (const auto size = size_in(text)) return GradientChunks{.kind = Kind::bytes, .bytes = *size};
  return std::nullopt;
}

}  // namespace

GradientChunks parse_chunks(const std::string& text, const std::string& where) {
  if (const auto chunks = chunks_in(text)) return *chunks;
  throw UserError(
      fmt::format("{}: '{}' does not say how gradients are summed together; use parameter, layer, "
                  "first:LAYERS, a size such as 4MiB, or one",
                  where, text));
}

Bytes parse_size(const std::string& text, const std::string& where) {
  if (const auto size = size_in(text)) return *size;
  if (const auto bytes = number_in(text, int64_t{1} << 50)) return {*bytes};
  throw UserError(fmt::format("{}: '{}' is no size; use bytes, or a number with KiB, MiB or GiB, as in 2GiB",
                              where, text));
}

std::string chunks_text(const GradientChunks& chunks) {
  if (chunks.kind == Kind::first) return fmt::format("first:{}", chunks.layers);
  for (const auto& [name, kind] : names)
    if (chunks.kind == kind) return std::string(name);
  for (const auto& [unit, size] : units)
    if (chunks.bytes.count % size == 0) return fmt::format("{}{}", chunks.bytes.count / size, unit);
  return "";
}

std::string schedule_text(const Schedule& schedule) {
  std::string text = chunks_text(schedule.chunks);
  for (const ScheduleSwitch& one : schedule_switches)
    if (const auto word = one.word(schedule); !word.empty()) text += fmt::format(", {}", word);
  return text;
}

}  // namespace cortado
