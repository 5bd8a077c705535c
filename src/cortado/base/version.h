#pragma once

#include <string_view>

namespace cortado {

// "1.0.0", and the commit where the build was configured from one: "1.0.0 (b7cbc33)".
std::string_view version();

}  // namespace cortado
