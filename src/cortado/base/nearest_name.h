#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cortado {

// The known name with the smallest edit distance to `word` (insert, delete, replace, swap of neighbours);
// empty when even that one differs in more than a third of the letters plus one.
std::string_view nearest_name(std::string_view word, std::span<const std::string_view> known);

// "; did you mean 'NAME'?", or nothing when no name is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

}  // namespace cortado
