#pragma once

#include <atomic>
#include <string_view>

namespace cortado {

enum class SignalEffect { none, stop, snapshot };
// "stop" and "snapshot"; none of another name.
SignalEffect signal_effect_named(std::string_view name);

// While it lives, SIGINT, SIGHUP and SIGTERM set these flags instead of killing. Once a stop is asked, the
// signal that asked it kills when it comes again. One at a time.
class SignalWatch {
 public:
  struct Effects {
    SignalEffect sigint = SignalEffect::stop, sighup = SignalEffect::snapshot, sigterm = SignalEffect::stop;
  };
  // The flags must outlive it.
  SignalWatch(const Effects& effects, std::atomic<bool>& stop, std::atomic<bool>& snapshot);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
};

}  // namespace cortado
