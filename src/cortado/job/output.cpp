#include "cortado/job/output.h"

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <poll.h>
#include <thread>
#include <unistd.h>

#include "cortado/job/launcher_words.h"

namespace cortado {
namespace {

constexpr int look_milliseconds = 100;

// False once nobody takes it.
bool write_all(int to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(to, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      pollfd wait{to, POLLOUT, 0};
      poll(&wait, 1, look_milliseconds);
      continue;
    }
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

struct Output::State {
  State(Socket pipe, int target) : from(std::move(pipe)), to(target), words(target == STDERR_FILENO) {}
  std::string pass(std::string_view text) {
    std::lock_guard lock(mutex);
    return words.pass(text);
  }
  Socket from;
  const int to;
  std::atomic<bool> writes = false;
  std::atomic<bool> last = false;  // nobody writes any more: what the pipe has is all
  std::mutex mutex;                // of what follows
  LauncherWords words;
  std::condition_variable changed;
  bool done = false;
};

Output::Output(Socket from, int to) : state_(std::make_shared<State>(std::move(from), to)) {
  std::thread(pass_on, state_).detach();
}

Output::~Output() { state_->last = true; }

void Output::pass_on(const std::shared_ptr<State>& state) {
  char buffer[65536];
  pollfd wait{state->from.fd(), POLLIN, 0};
  bool taken = true;
  while (true) {
    const bool last = state->last;
    if (poll(&wait, 1, last ? 0 : look_milliseconds) < 1) {
      if (last) break;  // a process that is left may hold the pipe open
      continue;
    }
    const ssize_t got = read(state->from.fd(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    const std::string passed = state->pass({buffer, static_cast<size_t>(got)});
    state->writes = true;
    taken = taken && write_all(state->to, passed);
    state->writes = false;
  }
  std::unique_lock lock(state->mutex);
  const std::string rest = state->words.end();
  lock.unlock();
  if (taken) write_all(state->to, rest);
  lock.lock();
  state->done = true;
  state->changed.notify_all();
}

bool Output::held_up() const { return state_->writes; }

void Output::finish(std::chrono::milliseconds most) {
  state_->last = true;
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, most, [&] { return state_->done; });
}

std::string Output::kept() const {
  std::lock_guard lock(state_->mutex);
  return state_->words.kept();
}

}  // namespace cortado
