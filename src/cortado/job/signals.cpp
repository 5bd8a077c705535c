#include "cortado/job/signals.h"

#include <csignal>
#include <initializer_list>

namespace cortado {
namespace {

static_assert(std::atomic<bool>::is_always_lock_free);
std::atomic<bool>*stop_flag = nullptr, *snapshot_flag = nullptr;

// SA_RESETHAND puts the default back, so a second signal kills.
void ask_stop(int) { *stop_flag = true; }
void ask_snapshot(int) { *snapshot_flag = true; }

void install(int signal, SignalEffect effect) {
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  switch (effect) {
    case SignalEffect::none:
      action.sa_handler = SIG_IGN;
      break;
    case SignalEffect::stop:
      action.sa_handler = ask_stop;
      action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
      break;
    case SignalEffect::snapshot:
      action.sa_handler = ask_snapshot;
      action.sa_flags = SA_RESTART;
      break;
  }
  sigaction(signal, &action, nullptr);
}

}  // namespace

SignalEffect signal_effect_named(std::string_view name) {
  if (name == "stop") return SignalEffect::stop;
  return name == "snapshot" ? SignalEffect::snapshot : SignalEffect::none;
}

SignalWatch::SignalWatch(const Effects& effects, std::atomic<bool>& stop, std::atomic<bool>& snapshot) {
  stop_flag = &stop;
  snapshot_flag = &snapshot;
  install(SIGINT, effects.sigint);
  install(SIGHUP, effects.sighup);
  install(SIGTERM, effects.sigterm);
}

SignalWatch::~SignalWatch() {
  for (int signal : {SIGINT, SIGHUP, SIGTERM}) std::signal(signal, SIG_DFL);
}

}  // namespace cortado
