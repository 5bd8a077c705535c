#pragma once

#include <functional>
#include <string>

namespace cortado {

// Called with what a user should know, though the work goes on; null: nobody wants to know.
using Notices = std::function<void(const std::string& line)>;

}  // namespace cortado
