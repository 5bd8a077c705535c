#pragma once

#include <map>
#include <string>
#include <vector>

#include "cortado/plan/planner.h"

namespace cortado {

// A colour for each way to cut that a plan uses. What is cut gives the hue (samples, channels, space, the
// summed dimension and their mixtures), the degrees the shade. Elements get the class of their configuration;
// the style gives it the variables --fill, for dark text on light pages and light text on dark ones, and
// --line.
class ConfigColours {
 public:
  explicit ConfigColours(const plan::Assignment& plan);

  struct Use {
    Degrees degrees;
    std::string css_class;  // "k0"
    int layers = 0;         // groups cut so
    Seconds seconds;
  };
  const std::string& css_class(const Degrees& degrees) const;
  const std::vector<Use>& uses() const { return uses_; }  // by seconds, the most first
  std::string style() const;                              // CSS rules

 private:
  std::vector<Use> uses_;
  std::vector<std::string> light_, dark_, line_;
};

}  // namespace cortado
