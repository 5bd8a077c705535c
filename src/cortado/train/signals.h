#pragma once

namespace cortado {

enum class SignalEffect { none, stop, snapshot };

// While it lives, SIGINT, SIGHUP and SIGTERM ask instead of killing: the training loop looks here between
// iterations. Once a stop is asked, the signal that asked it kills when it comes again. One at a time.
class SignalWatch {
 public:
  struct Effects {
    SignalEffect sigint = SignalEffect::stop, sighup = SignalEffect::snapshot, sigterm = SignalEffect::stop;
  };
  explicit SignalWatch(const Effects& effects);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  bool stop_asked() const;
  bool take_snapshot_request();  // true once for each request
};

}  // namespace cortado
