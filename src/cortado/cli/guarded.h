#pragma once

#include <functional>
#include <string>

#include "cortado/base/error.h"

namespace cortado {

// Runs `body` and returns its exit code. If it throws, calls `on_error` with the exit code of that error
// (base/error.h) and its message of one line, and returns what `on_error` returns.
int guarded(const std::function<int()>& body,
            const std::function<int(ExitCode, const std::string& message)>& on_error);

}  // namespace cortado
