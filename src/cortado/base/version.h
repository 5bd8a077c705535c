#pragma once

#include <string_view>

namespace cortado {

// "0.1.0", and the commit where the build was configured from one: "0.1.0 (b7cbc33)".
std::string_view version();

}  // namespace cortado
