#include "cortado/job/rank.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <poll.h>
#include <sstream>
#include <string_view>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cortado/base/activity.h"
#include "cortado/base/error.h"

namespace cortado {
namespace {

using namespace std::chrono_literals;

constexpr int seconds_to_connect = 3, seconds_to_answer = 20, watch_milliseconds = 250;
constexpr std::chrono::seconds least_tries_to_connect{15}, tries_where_nobody_listens{2},
    tries_to_say_goodbye{2};
constexpr size_t longest_activity = 200;

[[noreturn]] void end_process() { _exit(static_cast<int>(ExitCode::peer_error)); }

// The connection of this process's JobRank, for the handler.
std::atomic<int> parent_of_aborting = -1;

void say_last(std::string_view line) {
  const int parent = parent_of_aborting;
  if (parent >= 0) (void)!send(parent, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Whether a state is offered, for the handler: then the parent may want it before this process ends, unless
// it is gone itself.
std::atomic<bool> offers_state = false, parent_left = false;
constexpr std::chrono::seconds time_to_keep{25};

// A library that finds its peer gone may abort before the parent hears of that peer: report that this
// rank aborts, so that it is not taken for the reason. The same of an output that nobody takes any more.
void report_end(int signal) {
  say_last(signal == SIGPIPE ? "unheard\n" : "aborted\n");
  // The launcher may end all others with this one: first let them answer the parent.
  const timespec moment{.tv_sec = 0, .tv_nsec = 500'000'000};
  for (auto waited = 0ms; waited < (offers_state && !parent_left ? time_to_keep : 0s) + 500ms;
       waited += 500ms)
    nanosleep(&moment, nullptr);
  std::signal(signal, SIG_DFL);
  raise(signal);  // ends the process once this handler has returned
}

// What follows the number of a question.
std::string answer(int64_t iteration) {
  const uint64_t progress = progress_count;  // before what is done: a step that ends between them counts
  const Activity activity = current_activity();
  std::string text = shortened(activity.text, longest_activity);
  std::ranges::replace(text, '\n', ' ');
  return fmt::format(" {} {} {} {} {}", iteration, progress, activity.waits ? "waits" : "works",
                     activity.ranks.empty() ? "*" : fmt::format("{}", fmt::join(activity.ranks, ",")), text);
}

// The parent's answer to hello, "welcome ..."; none of a stranger that listens at the same port of another
// host.
std::optional<std::string> welcome_of(LineSocket& parent) {
  pollfd wait{parent.fd(), POLLIN, 0};
  if (poll(&wait, 1, seconds_to_answer * 1000) != 1) return std::nullopt;
  parent.receive();
  std::optional<std::string> answer = parent.take_line();
  if (answer == "stop") end_process();  // the job failed before this rank came
  return answer && answer->starts_with("welcome ") ? answer : std::nullopt;
}

}  // namespace

std::unique_ptr<JobRank> JobRank::join(int rank) {
  const char* text = std::getenv(job_variable);
  if (text == nullptr) return nullptr;
  std::optional<JobAddress> address = parse_job_address(text);
  if (!address) throw UserError(fmt::format("the environment variable {} is broken; unset it", job_variable));
  // A network may be away for a while. But where all addresses tell that nobody listens, the parent is gone.
  const auto begin = std::chrono::steady_clock::now();
  const auto end = begin + std::max(least_tries_to_connect, std::chrono::seconds(address->peer_seconds));
  auto may_listen = begin;  // when that was last so
  do {
    bool nobody_listens = true;
    for (const std::string& host : address->hosts) {
      int error = 0;
      Socket socket = connect_to(host, address->port, seconds_to_connect, &error);
      nobody_listens &= error == ECONNREFUSED;
      if (!socket) continue;
      // The parent finds out first, and reports it.
      LineSocket parent(std::move(socket), address->peer_seconds * 3 / 2 + 1);
      parent.send(fmt::format("hello {} {} {} {}", address->token, rank, getpid(), host_name()));
      if (const auto welcome = welcome_of(parent))
        return std::unique_ptr<JobRank>(new JobRank(std::move(parent), *welcome));
    }
    const auto now = std::chrono::steady_clock::now();
    if (!nobody_listens) may_listen = now;
    if (now - may_listen > tries_where_nobody_listens) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  } while (std::chrono::steady_clock::now() < end);
  throw PeerError(fmt::format("rank {} on {} cannot reach the process that started it (tried {})", rank,
                              host_name(), fmt::join(address->hosts, " ")));
}

JobRank::JobRank(LineSocket parent, const std::string& welcome)
    : parent_(std::move(parent)), started_by_(getppid()), wake_(eventfd(0, EFD_CLOEXEC)) {
  std::istringstream words(welcome);
  words.ignore(std::numeric_limits<std::streamsize>::max(), ' ') >> ranks_ >> restarts_;
  std::getline(words >> std::ws, snapshot_);
  // A rank that is stopped cannot end: it goes on once the process that started it is gone.
  prctl(PR_SET_PDEATHSIG, SIGCONT);
  parent_of_aborting = parent_.fd();
  parent_left = false;
  std::signal(SIGABRT, report_end);
  std::signal(SIGPIPE, report_end);
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
  if (writer_.joinable()) writer_.join();
}

void JobRank::send(const std::string& line) {
  std::lock_guard lock(sending_);
  parent_.send(line);
}

void JobRank::report_snapshot(int64_t iteration, const std::string& path) {
  send(fmt::format("snapshot {} {}", iteration, path));
}

void JobRank::offer(RankState* state) {
  const std::lock_guard lock(offering_);
  if (held_) wait_for_the_end();
  state_ = state;
  offers_state = state != nullptr;
}

void JobRank::miss_others(const std::string& message) {
  if (!offers_state) return;
  goodbye(static_cast<int>(ExitCode::peer_error), message);
  wait_for_the_end();
}

// The parent ends this process. Where that does not come, or the parent is gone, it ends by itself.
void JobRank::wait_for_the_end() const {
  for (auto waited = 0ms; waited < time_to_keep && !parent_left; waited += 100ms)
    std::this_thread::sleep_for(100ms);
  end_process();
}

void JobRank::hold_still() {
  const std::lock_guard lock(offering_);
  if (state_ == nullptr) return send("holds-none");
  held_ = true;
  const RankState::Held held = state_->hold_still();
  if (!held.why_not.empty()) return send("holds-none " + held.why_not);
  send(fmt::format("holds {} {} {} {}", held.began, held.first, held.last, held.agreed));
}

// On a thread of its own: a disk may take long, and the parent's word to stop counts at once.
void JobRank::write_state(const std::string& words) {
  if (!held_ || writer_.joinable()) return;
  writer_ = std::thread([this, words] {
    int64_t iteration = 0;
    std::vector<int> ranks;
    std::istringstream numbers(words);
    numbers >> iteration;
    for (int rank = 0; numbers >> rank;) ranks.push_back(rank);
    try {
      send("written " + state_->write(iteration, ranks));
    } catch (const std::exception& error) {
      std::string why = error.what();
      std::ranges::replace(why, '\n', ' ');
      send("unwritten " + why);
    }
  });
}

void JobRank::goodbye(int code, const std::string& message) {
  if (said_goodbye_.exchange(true)) return;
  std::string line = message;
  for (char& c : line)
    if (c == '\n') c = ' ';
  std::lock_guard lock(sending_);
  parent_.send(fmt::format("goodbye {} {} {}", code, iteration_.load(), line));
  parent_.flush(tries_to_say_goodbye);  // the process's end could take it back
}

// False: the process must end.
bool JobRank::obey(const std::string& line) {
  if (line == "stop") {
    send(fmt::format("iteration {}", iteration_.load()));
    return false;
  }
  if (line.starts_with("there? ") && !said_goodbye_) send("here " + line.substr(7) + answer(iteration_));
  if (line == "hold") hold_still();
  if (line.starts_with("write ")) write_state(line.substr(6));
  if (line.starts_with("signal ")) kill(getpid(), std::atoi(line.c_str() + 7));
  return true;
}

// Without it nobody passes on what this rank prints.
void JobRank::look_at_launcher() {
  if (started_by_ == 0 || getppid() == started_by_ || said_goodbye_) return;
  started_by_ = 0;
  send("orphaned");
}

void JobRank::obey_all() {
  while (std::optional<std::string> line = parent_.take_line())
    if (!obey(*line)) end_process();
}

void JobRank::watch() {
  pollfd waits[2] = {{parent_.fd(), POLLIN, 0}, {wake_.fd(), POLLIN, 0}};
  obey_all();  // what came together with the welcome
  while (true) {
    poll(waits, 2, watch_milliseconds);
    if (waits[1].revents != 0) return;
    look_at_launcher();
    if (waits[0].revents == 0) continue;
    const bool there = parent_.receive();
    obey_all();
    if (there) continue;
    if (!said_goodbye_) end_process();
    parent_left = true;
    waits[0].fd = -1;
  }
}

}  // namespace cortado
