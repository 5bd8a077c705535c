#include "cortado/job/rank.h"

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <poll.h>
#include <string_view>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cortado/base/error.h"

namespace cortado {
namespace {

constexpr int seconds_to_connect = 3, seconds_to_answer = 20, report_milliseconds = 250;

[[noreturn]] void end_process() { _exit(static_cast<int>(ExitCode::peer_error)); }

// The connection of this process's JobRank, for the handler.
std::atomic<int> parent_of_aborting = -1;

// A library that finds its peer gone may abort before the parent hears of that peer: tell that this rank
// aborts, so that it is not taken for the reason.
void tell_abort(int) {
  const int parent = parent_of_aborting;
  if (parent >= 0) (void)!send(parent, "aborted\n", 8, MSG_NOSIGNAL | MSG_DONTWAIT);
  // The launcher may end all others with this one: first let them answer the parent.
  const timespec moment{.tv_sec = 0, .tv_nsec = 500'000'000};
  nanosleep(&moment, nullptr);
  std::signal(SIGABRT, SIG_DFL);
  raise(SIGABRT);  // ends the process once this handler has returned
}

// The parent's answer to hello; false for a stranger that listens at the same port of another host.
bool welcomed(LineSocket& parent) {
  pollfd wait{parent.fd(), POLLIN, 0};
  if (poll(&wait, 1, seconds_to_answer * 1000) != 1) return false;
  parent.receive();
  std::optional<std::string> answer = parent.take_line();
  if (answer == "stop") end_process();  // the job failed before this rank came
  return answer == "welcome";
}

}  // namespace

std::unique_ptr<JobRank> JobRank::join(int rank) {
  const char* text = std::getenv(job_variable);
  if (text == nullptr) return nullptr;
  std::optional<JobAddress> address = parse_job_address(text);
  if (!address) throw UserError(fmt::format("the environment variable {} is broken; unset it", job_variable));
  for (const std::string& host : address->hosts) {
    Socket socket = connect_to(host, address->port, seconds_to_connect);
    if (!socket) continue;
    LineSocket parent(std::move(socket));
    parent.send(fmt::format("hello {} {} {} {}", address->token, rank, getpid(), host_name()));
    if (welcomed(parent)) return std::unique_ptr<JobRank>(new JobRank(std::move(parent)));
  }
  throw PeerError(fmt::format("rank {} on {} cannot reach the process that started it (tried {})", rank,
                              host_name(), text + address->token.size() + 1));
}

JobRank::JobRank(LineSocket parent) : parent_(std::move(parent)), wake_(eventfd(0, EFD_CLOEXEC)) {
  parent_of_aborting = parent_.fd();
  std::signal(SIGABRT, tell_abort);
  // Signals are for the main thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  watcher_ = std::thread([this] { watch(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

JobRank::~JobRank() {
  parent_of_aborting = -1;
  uint64_t one = 1;
  (void)!write(wake_.fd(), &one, sizeof one);
  watcher_.join();
}

void JobRank::send(const std::string& line) {
  std::lock_guard lock(sending_);
  parent_.send(line);
}

void JobRank::send_iteration() {
  int64_t iteration = iteration_;
  if (iteration == sent_iteration_) return;
  sent_iteration_ = iteration;
  send(fmt::format("iteration {}", iteration));
}

void JobRank::report_snapshot(const std::string& path) { send("snapshot " + path); }

void JobRank::goodbye(int code, const std::string& message) {
  if (said_goodbye_.exchange(true)) return;
  std::string line = message;
  for (char& c : line)
    if (c == '\n') c = ' ';
  send(fmt::format("goodbye {} {} {}", code, iteration_.load(), line));
}

void JobRank::watch() {
  pollfd waits[2] = {{parent_.fd(), POLLIN, 0}, {wake_.fd(), POLLIN, 0}};
  while (true) {
    poll(waits, 2, report_milliseconds);
    if (waits[1].revents != 0) return;
    if (!said_goodbye_) send_iteration();
    if (waits[0].revents == 0) continue;
    bool there = parent_.receive();
    while (std::optional<std::string> line = parent_.take_line()) {
      if (*line == "stop") end_process();
      if (*line == "there?") send("here");
      if (line->starts_with("signal ")) kill(getpid(), std::atoi(line->c_str() + 7));
    }
    if (there) continue;
    if (!said_goodbye_) end_process();
    waits[0].fd = -1;  // the parent heard the goodbye and left
  }
}

}  // namespace cortado
