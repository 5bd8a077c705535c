#pragma once

#include <stdexcept>
#include <string>

namespace cortado {

// Exit codes of the command (docs/reference/output.md).
enum class ExitCode : int { done = 0, user_error = 2, peer_error = 3, internal_error = 70 };

// The user's input is wrong. The message says what is wrong, where (file:line, layer), the value, and
// what to do; one or two sentences, no trailing newline.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Another rank of the job failed or is gone. The message names rank and, where known, host and step.
class PeerError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Cortado itself is wrong: an invariant does not hold. Never thrown for bad input.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Throws InternalError("MESSAGE") unless the invariant holds.
inline void ensure(bool invariant, const char* message) {
  if (!invariant) throw InternalError(message);
}

}  // namespace cortado
