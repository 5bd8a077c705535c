#include "cortado/app/signals.h"

#include <csignal>
#include <initializer_list>

namespace cortado {
namespace {

StopFlags* asked = nullptr;

// SA_RESETHAND puts the default back, so a second signal kills.
void ask_stop(int) { asked->stop = true; }
void ask_snapshot(int) { asked->snapshot = true; }

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

SignalWatch::SignalWatch(const Effects& effects, StopFlags& flags) {
  asked = &flags;
  install(SIGINT, effects.sigint);
  install(SIGHUP, effects.sighup);
  install(SIGTERM, effects.sigterm);
}

SignalWatch::~SignalWatch() {
  for (int signal : {SIGINT, SIGHUP, SIGTERM}) std::signal(signal, SIG_DFL);
}

}  // namespace cortado
