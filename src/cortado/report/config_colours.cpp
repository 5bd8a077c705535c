#include "cortado/report/config_colours.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {
namespace {

using Rgb = std::array<double, 3>;

constexpr Rgb white{255, 255, 255}, night{27, 30, 36};

// Returns a hue for what is cut: 1 samples, 2 channels, 4 space, 8 the summed dimension. Colour-blind eyes,
// too, tell those hues apart that a net is likely to use together.
Rgb hue_of(unsigned cut) {
  static const std::map<unsigned, Rgb> hues = {
      {0, {130, 137, 148}}, {1, {47, 116, 208}}, {2, {226, 122, 20}},  {4, {38, 152, 94}},
      {8, {190, 60, 138}},  {3, {122, 84, 200}}, {5, {20, 148, 168}},  {6, {150, 134, 10}},
      {10, {204, 58, 70}},  {9, {88, 100, 220}}, {12, {110, 150, 40}},
  };
  const auto found = hues.find(cut);
  return found == hues.end() ? Rgb{139, 94, 60} : found->second;
}

unsigned cut_of(const Degrees& d) {
  return (d.n > 1 ? 1u : 0) | (d.c > 1 ? 2u : 0) | (d.h > 1 || d.w > 1 || d.d > 1 ? 4u : 0) |
         (d.r > 1 ? 8u : 0);
}

std::string mixed(const Rgb& colour, const Rgb& with, double share) {
  std::array<int, 3> sum{};
  for (size_t i = 0; i < 3; ++i) sum[i] = static_cast<int>(colour[i] * share + with[i] * (1 - share) + 0.5);
  return fmt::format("#{:02x}{:02x}{:02x}", sum[0], sum[1], sum[2]);
}

}  // namespace

ConfigColours::ConfigColours(const plan::Assignment& plan) {
  for (const plan::PlannedGroup& group : plan.groups) {
    const Degrees& degrees = group.strategy.config.degrees;
    auto use = std::ranges::find(uses_, degrees, &Use::degrees);
    if (use == uses_.end()) use = uses_.insert(uses_.end(), Use{.degrees = degrees});
    ++use->layers;
    use->seconds += group.total();
  }
  std::ranges::stable_sort(uses_, std::greater<>(), &Use::seconds);
  std::map<unsigned, size_t> shades;
  for (size_t i = 0; i < uses_.size(); ++i) {
    uses_[i].css_class = fmt::format("k{}", i);
    const unsigned cut = cut_of(uses_[i].degrees);
    constexpr double shares[] = {0.62, 0.40, 0.24, 0.14, 0.5, 0.32};
    const double share = shares[shades[cut]++ % std::size(shares)];
    light_.push_back(mixed(hue_of(cut), white, share));
    dark_.push_back(mixed(hue_of(cut), night, share));
    line_.push_back(mixed(hue_of(cut), white, 1));
  }
}

const std::string& ConfigColours::css_class(const Degrees& degrees) const {
  const auto use = std::ranges::find(uses_, degrees, &Use::degrees);
  ensure(use != uses_.end(), "colours are of the plan's configurations");
  return use->css_class;
}

std::string ConfigColours::style() const {
  std::string light, dark;
  for (size_t i = 0; i < uses_.size(); ++i) {
    light += fmt::format(".k{}{{--fill:{};--line:{}}}\n", i, light_[i], line_[i]);
    dark += fmt::format(".k{}{{--fill:{}}}\n", i, dark_[i]);
  }
  return light + "@media screen and (prefers-color-scheme: dark) {\n" + dark + "}\n";
}

}  // namespace cortado
