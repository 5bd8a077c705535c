#include "cortado/base/crash_guard.h"

#include <atomic>

#include "cortado/base/text.h"

namespace cortado {
namespace {

// Facts of the innermost guard, as plain memory: handlers must not call anything that allocates.
thread_local const char* line_at = nullptr;
thread_local size_t line_bytes = 0;
thread_local const CrashGuard* innermost = nullptr;

std::atomic<void (*)()> install_next = nullptr;

}  // namespace

std::string_view CrashGuard::line() { return {line_at, line_bytes}; }

void CrashGuard::before_next(void (*install)()) { install_next = install; }

CrashGuard::CrashGuard(const std::string& path)
    : message_(
          "cortado: error: " +
          message_line(path + ": damaged: the library that reads it crashed on it; make or copy it anew") +
          "\n"),
      outer_(innermost) {
  if (void (*const install)() = install_next.exchange(nullptr)) install();
  innermost = this;
  line_at = message_.data();
  line_bytes = message_.size();
}

CrashGuard::~CrashGuard() {
  innermost = outer_;
  line_at = outer_ ? outer_->message_.data() : nullptr;
  line_bytes = outer_ ? outer_->message_.size() : 0;
}

}  // namespace cortado
