#pragma once

#include <functional>
#include <string>

#include "cortado/base/error.h"

namespace cortado {

// Runs `body` and returns what it returns, an exit code. Where it throws, returns what `tell` does with the
// exit code of that error (base/error.h) and its message, one line.
int guarded(const std::function<int()>& body,
            const std::function<int(ExitCode, const std::string& message)>& tell);

}  // namespace cortado
