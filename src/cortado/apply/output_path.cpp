#include "cortado/apply/output_path.h"

#include <filesystem>
#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

namespace fs = std::filesystem;

namespace {

bool same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
}

void check_is_not(const std::string& output, const std::string& input) {
  if (!input.empty() && same_file(output, input))
    throw UserError(fmt::format("the output {} is an input ({}); give another name", output, input));
}

}  // namespace

void check_outputs(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs,
                   ImageSet* images) {
  for (size_t o = 0; o < outputs.size(); ++o) {
    for (size_t other = 0; other < o; ++other)
      if (!outputs[o].empty() &&
          fs::path(outputs[o]).lexically_normal() == fs::path(outputs[other]).lexically_normal())
        throw UserError(fmt::format("two outputs have the name {}; give one another", outputs[o]));
    std::error_code ignored;
    if (outputs[o].empty() || !fs::exists(outputs[o], ignored)) continue;
    for (const std::string& input : inputs) check_is_not(outputs[o], input);
    for (int64_t i = 0; images && i < images->size(); ++i) check_is_not(outputs[o], images->file(i));
  }
}

}  // namespace cortado
