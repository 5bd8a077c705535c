#include "cortado/train/signals.h"

#include <csignal>
#include <initializer_list>

namespace cortado {
namespace {

volatile std::sig_atomic_t asked_stop = 0, asked_snapshot = 0;

// SA_RESETHAND puts the default back, so a second signal kills.
void ask_stop(int) { asked_stop = 1; }
void ask_snapshot(int) { asked_snapshot = 1; }

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

SignalWatch::SignalWatch(const Effects& effects) {
  asked_stop = 0;
  asked_snapshot = 0;
  install(SIGINT, effects.sigint);
  install(SIGHUP, effects.sighup);
  install(SIGTERM, effects.sigterm);
}

SignalWatch::~SignalWatch() {
  for (int signal : {SIGINT, SIGHUP, SIGTERM}) std::signal(signal, SIG_DFL);
}

bool SignalWatch::stop_asked() const { return asked_stop != 0; }

bool SignalWatch::take_snapshot_request() {
  bool asked = asked_snapshot != 0;
  asked_snapshot = 0;
  return asked;
}

}  // namespace cortado
