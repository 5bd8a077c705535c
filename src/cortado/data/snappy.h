#pragma once

#include <string>
#include <string_view>

namespace cortado {

// What bytes in Snappy's format hold (google/snappy, format_description.txt). Throws UserError, with the
// reason alone, where they do not fit the format; whatever they are, it takes at most 32 times their memory.
std::string uncompressed_snappy(std::string_view bytes);

}  // namespace cortado
