#pragma once

#include <string>
#include <string_view>

namespace cortado {

// Throws UserError unless an implementation has that name, or it is `also`, which is listed with them.
void require_kernels_named(const std::string& name, std::string_view also = "");

}  // namespace cortado
