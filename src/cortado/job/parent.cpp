#include "cortado/job/parent.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <optional>
#include <sstream>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cortado/base/error.h"
#include "cortado/job/launcher.h"
#include "cortado/job/wire.h"

namespace cortado {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// After a failure: until the launcher is asked to end, and until it is killed.
constexpr std::chrono::milliseconds grace = 1500ms, last_grace = 4s;
// A rank that lost its peers waits so long for the connection of the one that is really gone to end.
constexpr auto suspicion = 1s;
// A rank that has not come though all others have: until it is given up, or longer where all took long.
constexpr std::chrono::milliseconds late = 5s;

struct Peer {
  LineSocket socket;
  int rank = -1;  // until it has said hello
  std::string host;
  int64_t iteration = -1;
  bool finished = false;  // said goodbye
  bool answered = false;  // was there when another said that it failed for want of its peers
};

// Why the job stops.
struct Failure {
  std::string message;         // nothing: not to be told
  bool lost_progress = false;  // tell with it from where to resume
  int code = 0;
  Clock::time_point when;
  int rank = -1;  // the rank that told it, where another may be the reason
};

std::string new_token() {
  unsigned char bytes[16];
  ensure(getrandom(bytes, sizeof bytes, 0) == sizeof bytes, "the system gives random numbers");
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

// SIGINT, SIGTERM, SIGHUP and SIGCHLD as a file, while it lives.
class SignalFile {
 public:
  SignalFile() {
    sigset_t set;
    sigemptyset(&set);
    for (int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, &before_);
    file_ = Socket(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  }
  ~SignalFile() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  int fd() const { return file_.fd(); }
  const sigset_t& before() const { return before_; }
  // The next one; 0 when there is none.
  int take() {
    signalfd_siginfo info;
    return read(fd(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  sigset_t before_;
  Socket file_;
};

class Parent {
 public:
  explicit Parent(const JobStart& start)
      : start_(start),
        token_(new_token()),
        listener_(listen_anywhere()),
        events_(epoll_create1(EPOLL_CLOEXEC)),
        launcher_(words(start), {token_, port_of(listener_), own_addresses()}, signals_.before()),
        begin_(Clock::now()) {
    watch(listener_.fd());
    watch(signals_.fd());
  }

  int run() {
    while (!over()) {
      wait();
      look_at_launcher();
      look_at_clock();
    }
    if (failure_) tell();
    return failure_ ? failure_->code : 0;
  }

 private:
  static std::vector<std::string> words(const JobStart& start) {
    std::vector<std::string> all = start.launcher;
    all.insert(all.end(), {"-n", std::to_string(start.ranks)});
    all.insert(all.end(), start.command.begin(), start.command.end());
    return all;
  }

  void watch(int fd) const {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    epoll_ctl(events_.fd(), EPOLL_CTL_ADD, fd, &event);
  }

  // epoll gives events in the order in which they happened: of several ranks that end, the first comes first.
  void wait() {
    epoll_event events[64];
    int count = epoll_wait(events_.fd(), events, 64, 100);
    for (int i = 0; i < count; ++i) {
      int fd = events[i].data.fd;
      if (fd == listener_.fd()) {
        accept_peer();
      } else if (fd == signals_.fd()) {
        while (int number = signals_.take()) pass_on(number);
      } else {
        auto peer = std::ranges::find(peers_, fd, [](const auto& p) { return p->socket.fd(); });
        if (peer != peers_.end()) hear(**peer);
      }
    }
  }

  void accept_peer() {
    Socket socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) return;
    watch(socket.fd());
    peers_.push_back(std::make_unique<Peer>());
    peers_.back()->socket = LineSocket(std::move(socket));
  }

  void hear(Peer& peer) {
    bool there = peer.socket.receive();
    while (std::optional<std::string> line = peer.socket.take_line()) {
      if (!understand(peer, *line)) there = false;
    }
    if (there) return;
    peer.socket.close();
    if (peer.rank < 0 || peer.finished) return;
    peer.finished = true;
    lost(peer);
  }

  // False for what no rank says.
  bool understand(Peer& peer, const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    if (peer.rank < 0) return verb == "hello" && welcome(peer, words);
    if (verb == "iteration") {
      words >> peer.iteration;
    } else if (verb == "snapshot") {
      std::getline(words >> std::ws, snapshot_);
    } else if (verb == "here") {
      peer.answered = true;
    } else if (verb == "aborted") {
      peer.finished = true;
      fail(gone(peer), static_cast<int>(ExitCode::peer_error), peer.rank);
    } else if (verb == "goodbye") {
      int code = 0;
      std::string message;
      words >> code >> peer.iteration;
      std::getline(words >> std::ws, message);
      peer.finished = true;
      if (code != 0) ended_badly(peer, code, message);
    }
    return true;
  }

  bool welcome(Peer& peer, std::istringstream& words) {
    std::string token;
    int rank = -1;
    int64_t pid = 0;
    words >> token >> rank >> pid >> peer.host;
    if (token != token_ || rank < 0 || rank >= start_.ranks || !words) return false;
    peer.rank = rank;
    peer.socket.send(failure_ ? "stop" : "welcome");
    ++arrived_;
    last_arrival_ = Clock::now();
    return true;
  }

  std::string name(const Peer& peer) const { return fmt::format("rank {} on {}", peer.rank, peer.host); }

  std::string progress(const Peer& peer) const {
    return peer.iteration >= 0 ? fmt::format("last iteration {}", peer.iteration)
                               : "before its first iteration";
  }

  std::string advice() const {
    if (snapshot_.empty()) return "no snapshot was written yet";
    return fmt::format("resume with --snapshot {}", snapshot_);
  }

  void lost(const Peer& peer) {
    if (asked_to_stop_ && Clock::now() - asked_at_ < suspicion) return fail("", 128 + asked_to_stop_);
    // This is the one that the other missed, unless it still answered: then the launcher ended it.
    if (failure_ && failure_->rank >= 0 && !stopped_ && !peer.answered) failure_.reset();
    fail(gone(peer), static_cast<int>(ExitCode::peer_error));
  }

  std::string gone(const Peer& peer) const {
    return fmt::format("{} is gone ({})", name(peer), progress(peer));
  }

  void ended_badly(const Peer& peer, int code, const std::string& message) {
    bool missed_others = code == static_cast<int>(ExitCode::peer_error);
    std::string text = fmt::format("{} ({}{})", message, name(peer),
                                   peer.iteration >= 0 ? ", " + progress(peer) : std::string());
    fail(text, code, missed_others ? peer.rank : -1);
  }

  // The first failure is the job's; those that follow are its consequences.
  void fail(const std::string& message, int code, int missed_others = -1) {
    if (failure_) return;
    const bool lost_progress = code == static_cast<int>(ExitCode::peer_error) && arrived_ == start_.ranks;
    failure_ = Failure{message, lost_progress, code, Clock::now(), missed_others};
    if (missed_others < 0) return stop_all();
    for (const auto& peer : peers_) {
      if (peer->rank >= 0 && !peer->finished) peer->socket.send("there?");
    }
  }

  // Of the failure of a rank that missed others, one that does not answer is the reason.
  void blame_the_silent() {
    for (const auto& peer : peers_) {
      if (peer->rank < 0 || peer->finished || peer->answered) continue;
      failure_->message = gone(*peer);
      return;
    }
  }

  // Once the others have said the last that they had to say: a snapshot may have been under way.
  void tell() {
    if (told_) return;
    told_ = true;
    if (failure_->message.empty()) return;
    std::fflush(stdout);
    if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\x1b[K");  // of a progress bar that is left
    fmt::print(stderr, "cortado: error: {}{}\n", failure_->message,
               failure_->lost_progress ? "; the job was stopped; " + advice() : "");
  }

  void stop_all() {
    stopped_ = true;
    for (const auto& peer : peers_) peer->socket.send("stop");
  }

  void pass_on(int number) {
    if (number == SIGCHLD) return;
    if (number != SIGHUP) {
      asked_to_stop_ = number;
      asked_at_ = Clock::now();
    }
    if (arrived_ < start_.ranks) {
      fail("", 128 + number);
      launcher_.signal(number);
    }
    for (const auto& peer : peers_) {
      if (peer->rank >= 0) peer->socket.send(fmt::format("signal {}", number));
    }
  }

  void look_at_launcher() {
    if (launcher_ended_ || !launcher_.ended()) return;
    launcher_ended_ = Clock::now();
  }

  bool all_closed() const {
    return std::ranges::all_of(peers_, [](const auto& p) { return p->finished || p->rank < 0; });
  }

  bool over() const { return launcher_ended_ && (arrived_ == start_.ranks || failure_) && all_closed(); }

  // What must have happened by now.
  void look_at_clock() {
    Clock::time_point now = Clock::now();
    if (failure_) {
      if (!stopped_ && now - failure_->when > suspicion) {
        blame_the_silent();
        stop_all();
      }
      if (stopped_ && (all_closed() || now - failure_->when > grace)) tell();
      if (now - failure_->when > grace)
        launcher_.signal(now - failure_->when > last_grace ? SIGKILL : SIGTERM);
      if (launcher_ended_ && now - failure_->when > last_grace) abandon();
      return;
    }
    if (launcher_ended_ && now - *launcher_ended_ > 500ms) {
      fail(missing(fmt::format("the launcher ended with exit code {}", *launcher_.ended())),
           static_cast<int>(ExitCode::peer_error));
    } else if (arrived_ < start_.ranks && now - begin_ > std::chrono::seconds(start_.seconds_to_start)) {
      fail(missing(fmt::format("{} seconds have passed", start_.seconds_to_start)),
           static_cast<int>(ExitCode::peer_error));
    } else if (arrived_ == start_.ranks - 1 && arrived_ > 0 &&
               now - last_arrival_ > std::max<Clock::duration>(late, 3 * (last_arrival_ - begin_))) {
      fail(fmt::format("rank {} did not start, though all others have", absent()),
           static_cast<int>(ExitCode::peer_error));
    }
  }

  // The lowest rank that has not said hello.
  int absent() const {
    int rank = 0;
    while (std::ranges::find(peers_, rank, [](const auto& peer) { return peer->rank; }) != peers_.end())
      ++rank;
    return rank;
  }

  std::string missing(const std::string& what) const {
    if (arrived_ == start_.ranks) return what + " while ranks still ran";
    std::string hint;
    if (arrived_ == 0)
      hint = fmt::format("; a launcher must hand the variable {} to the ranks", job_variable);
    return fmt::format("{}, but {} of {} ranks have started (launcher '{}'{})", what, arrived_, start_.ranks,
                       fmt::join(start_.launcher, " "), hint);
  }

  void abandon() {
    for (const auto& peer : peers_) peer->finished = true;
  }

  const JobStart& start_;
  std::string token_;
  SignalFile signals_;
  Socket listener_, events_;
  Launcher launcher_;
  Clock::time_point begin_;
  std::vector<std::unique_ptr<Peer>> peers_;
  int arrived_ = 0;
  Clock::time_point last_arrival_;
  std::string snapshot_;
  std::optional<Failure> failure_;
  bool stopped_ = false, told_ = false;
  int asked_to_stop_ = 0;
  Clock::time_point asked_at_;
  std::optional<Clock::time_point> launcher_ended_;
};

}  // namespace

int run_job(const JobStart& start) { return Parent(start).run(); }

std::vector<std::string> split_words(const std::string& line) {
  std::vector<std::string> words;
  char quote = 0;
  bool inside = false;
  for (char c : line) {
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (quote != 0 && c == quote) {
      quote = 0;
      continue;
    } else if (quote == 0 && c == ' ') {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (quote == 0 || c != quote) words.back() += c;
  }
  return words;
}

}  // namespace cortado
