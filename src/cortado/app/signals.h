#pragma once

#include "cortado/train/stop_flags.h"

namespace cortado {

enum class SignalEffect { none, stop, snapshot };

// While it lives, SIGINT, SIGHUP and SIGTERM set flags instead of killing. Once a stop is asked, the signal
// that asked it kills when it comes again. One at a time.
class SignalWatch {
 public:
  struct Effects {
    SignalEffect sigint = SignalEffect::stop, sighup = SignalEffect::snapshot, sigterm = SignalEffect::stop;
  };
  // `flags` must outlive it.
  SignalWatch(const Effects& effects, StopFlags& flags);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
};

}  // namespace cortado
