#include "cortado/job/parent.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cortado/base/error.h"
#include "cortado/job/failure.h"
#include "cortado/job/launcher.h"
#include "cortado/job/output.h"
#include "cortado/job/signal_file.h"
#include "cortado/job/stall.h"
#include "cortado/job/start_watch.h"
#include "cortado/job/wire.h"

namespace cortado {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// Between two questions to a rank.
constexpr Moment between_questions = 250ms;
// Between two looks at the hosts file.
constexpr Moment between_looks_at_hosts = 1s;
// At most this much time counts between two turns: if more has passed, the parent itself stood still.
constexpr Moment longest_turn = 500ms;
// After a failure: until the launcher is asked to end, until it is killed, and until it is left alone.
constexpr Moment grace = 1500ms, last_grace = 4s, end_of_grace = 8s;
// A rank that lost its peers waits so long for the connection of the one that is really gone to end.
constexpr Moment suspicion = 1s;

std::string new_token() {
  unsigned char bytes[16];
  ensure(getrandom(bytes, sizeof bytes, 0) == sizeof bytes, "the system gives random numbers");
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

// UCX, which carries MPICH's messages, reads these as it is loaded in the ranks: no page of addresses when a
// peer is gone, and a connection at rest is kept until the parent, which says more about it, has ended the
// job.
void set_ucx(int peer_seconds) {
  setenv("UCX_HANDLE_ERRORS", "none", 0);
  setenv("UCX_TCP_KEEPIDLE", fmt::format("{}s", peer_seconds).c_str(), 0);
  setenv("UCX_TCP_KEEPINTVL", fmt::format("{}s", std::max(1, peer_seconds / 4)).c_str(), 0);
  setenv("UCX_TCP_KEEPCNT", "4", 0);
}

class Parent {
 public:
  explicit Parent(const JobStart& start)
      : start_(start),
        token_(new_token()),
        listener_(listen_at(start.listen)),
        events_(epoll_create1(EPOLL_CLOEXEC)),
        launcher_(words(start),
                  {token_, port_of(listener_), start.peer_seconds,
                   start.listen.empty() ? own_addresses() : std::vector<std::string>{start.listen}},
                  signals_.before()),
        output_(launcher_.output(), STDOUT_FILENO),
        errors_(launcher_.errors(), STDERR_FILENO),
        last_turn_(Clock::now()) {
    watch(listener_.fd());
    watch(signals_.fd());
  }

  JobEnd run() {
    while (!over()) {
      wait();
      count_time();
      drop_strangers(peers_, now_);
      ask();
      look_at_hosts();
      if (launcher_.ended() && !launcher_ended_) launcher_ended_ = now_;
      if (failure_)
        end_the_rest();
      else
        look_for_failure();
    }
    return report();
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

  void count_time() {
    const Clock::time_point turn = Clock::now();
    now_ += std::min(longest_turn, std::chrono::duration_cast<Moment>(turn - last_turn_));
    last_turn_ = turn;
  }

  void ask() {
    if (failure_ || now_ < next_question_) return;
    next_question_ = now_ + between_questions;
    for (const auto& peer : peers_)
      if (peer->there() && peer->answered == peer->asked) peer->ask();
  }

  void look_at_hosts() {
    if (start_.hosts_file == nullptr || now_ < next_look_at_hosts_) return;
    next_look_at_hosts_ = now_ + between_looks_at_hosts;
    if (!start_.hosts_file->changed()) return;
    const Hosts& hosts = start_.hosts_file->hosts();
    wants_hosts_ = hosts != start_.hosts && ranks_on(hosts) >= start_.min_ranks;
  }

  // Asks the ranks to end in order, with a snapshot.
  void move_if_wanted() {
    if (!wants_hosts_ || moving_ || failure_ || asked_to_stop_ != 0) return;
    moving_ = true;
    for (const auto& peer : peers_)
      if (peer->rank >= 0) peer->socket.send(fmt::format("signal {}", SIGTERM));
  }

  void accept_peer() {
    Socket socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) return;
    watch(socket.fd());
    peers_.push_back(std::make_unique<Peer>());
    peers_.back()->socket = LineSocket(std::move(socket), start_.peer_seconds);
    peers_.back()->address = peers_.back()->socket.address();
    peers_.back()->came = now_;
  }

  void hear(Peer& peer) {
    bool there = peer.socket.receive();
    while (std::optional<std::string> line = peer.socket.take_line()) {
      if (!understand(peer, *line)) there = false;
    }
    if (peer.rank < 0 && peer.socket.overlong()) there = false;
    if (there) return;
    const bool timed_out = peer.socket.timed_out();
    peer.socket.close();
    if (!peer.there()) return;
    peer.finished = true;
    lost(peer, timed_out);
  }

  // Returns false where a new connection does not begin with a hello of this job. Passes over words that it
  // does not know.
  bool understand(Peer& peer, const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    if (peer.rank < 0) return verb == "hello" && welcome(peer, words);
    if (verb == "here") {
      peer.hear(words, now_);
    } else if (verb == "iteration") {
      words >> peer.iteration;
    } else if (verb == "snapshot") {
      words >> snapshot_iteration_;
      std::getline(words >> std::ws, snapshot_);
      remove_kept(start_.kept);
      move_if_wanted();
    } else if (verb == "stopped") {
      stopped_early_ = true;
    } else if (keeping_.hear(peer, verb, words)) {
      return true;
    } else if (verb == "orphaned" || verb == "unheard") {
      if (!unheard_since_) unheard_since_ = now_, unheard_ = name(peer);
    } else if (verb == "aborted") {
      peer.finished = true;
      fail({.text = name(peer) + " is gone", .missed_others = peer.rank});
    } else if (verb == "goodbye") {
      said_goodbye(peer, words);
    }
    return true;
  }

  bool welcome(Peer& peer, std::istringstream& words) {
    std::string token;
    int rank = -1;
    words >> token >> rank >> peer.pid >> peer.host;
    if (!same_secret(token, token_) || rank < 0 || rank >= start_.ranks || !words) return false;
    peer.rank = rank;
    peer.heard = peer.moved = now_;
    starting_.came(now_);
    if (peer.is_here(token_)) launcher_.guard_rank(peer.pid);
    peer.socket.send(failure_ ? "stop" : welcome_line());
    return true;
  }

  std::string welcome_line() const {
    return fmt::format("welcome {} {} {}", start_.ranks,
                       start_.trained ? start_.restarts_done + start_.moves_done : 0, start_.snapshot);
  }

  void said_goodbye(Peer& peer, std::istringstream& words) {
    int code = 0;
    std::string message;
    words >> code >> peer.iteration;
    std::getline(words >> std::ws, message);
    peer.finished = true;
    peer.moved = last_goodbye_ = now_;
    if (code == 0) {
      ++done_;
      return;
    }
    const bool missed_others = code == static_cast<int>(ExitCode::peer_error);
    // What the others missed says itself why it ends.
    if (!missed_others && failure_ && failure_->missed_others >= 0 && !stopped_) failure_.reset();
    fail({.text = message, .code = code, .who = name(peer), .missed_others = missed_others ? peer.rank : -1});
  }

  void lost(const Peer& peer, bool timed_out) {
    if (asked_to_stop_ && now_ - asked_at_ < suspicion) return fail({.code = 128 + asked_to_stop_});
    if (unheard_since_) return fail(failure_of_launcher());
    // This is the one that the other missed, unless it still answered: then the launcher ended it.
    if (failure_ && failure_->missed_others >= 0 && !stopped_ && peer.answered < peer.suspected)
      failure_.reset();
    if (timed_out) {
      lose_hosts(peer);
      return fail({.text = cannot_be_reached(peer, peers_, now_, start_.peer_seconds)});
    }
    fail({.text = name(peer) + " is gone"});
    launcher_may_be_reason_ = true;
  }

  // Notes the host of `peer`, and all others that have not answered for as long.
  void lose_hosts(const Peer& peer) {
    if (failure_) return;
    std::set<std::string> hosts = {host_as_named(start_.launcher, peer)};
    for (const auto& other : peers_)
      if (is_out_of_reach(*other, now_, start_.peer_seconds))
        hosts.insert(host_as_named(start_.launcher, *other));
    lost_hosts_.assign(hosts.begin(), hosts.end());
    lost_ranks_ = static_cast<int>(std::ranges::count_if(peers_, [&](const auto& other) {
      return other->rank >= 0 && hosts.contains(host_as_named(start_.launcher, *other));
    }));
  }

  // Ranks that were running have lost the launcher, or its process that started them.
  Failure failure_of_launcher() {
    const std::string launcher = fmt::format("the launcher '{}'", start_.launcher.front());
    if (const int signal = launcher_.killed_by_others())
      return {.text = fmt::format("{} was killed by signal {} though ranks were running", launcher, signal)};
    if (const std::optional<int> code = launcher_.ended())
      return {.text = fmt::format("{} ended with exit code {} though ranks were running", launcher, *code),
              .of_launcher = true};
    return {.text = fmt::format("the launcher's process that started {} is gone", unheard_)};
  }

  // The first failure is the job's; those that follow are its consequences.
  void fail(Failure failure) {
    if (failure_) return;
    failure_ = std::move(failure);
    failure_->when = now_;
    if (failure_->of_launcher) launcher_said_ = output_.kept() + errors_.kept();
    failure_->says_progress &=
        failure_->code == static_cast<int>(ExitCode::peer_error) && starting_.all_came();
    if (failure_->missed_others < 0) return stop_all();
    for (const auto& peer : peers_) {
      if (!peer->there()) continue;
      peer->ask();
      peer->suspected = peer->asked;
    }
  }

  // Where a rank that failed missed another one, the first rank that has not answered since then is the
  // reason.
  void blame_the_silent() {
    for (const auto& peer : peers_) {
      if (!peer->there() || peer->answered >= peer->suspected) continue;
      failure_->text = name(*peer) + " is gone";
      failure_->who.clear();
      return;
    }
  }

  // Ranks that are left may first have something to write, though none may have told of an iteration yet.
  void stop_all() {
    stopped_ = true;
    if (start_.restarts > 0 && is_loss() && starting_.all_came())
      keeping_.begin(peers_, snapshot_iteration_, now_);
    else
      send_stop();
  }

  void send_stop() {
    stop_sent_ = now_;
    for (const auto& peer : peers_) peer->socket.send("stop");
  }

  // A rank may have written a snapshot before it told of an iteration.
  bool trained() const {
    return snapshot_iteration_ >= 0 ||
           std::ranges::any_of(peers_, [](const auto& peer) { return peer->iteration >= 0; });
  }

  void pass_on(int number) {
    if (number == SIGCHLD) return;
    if (std::ranges::find(start_.stop_signals, number) != start_.stop_signals.end()) {
      asked_to_stop_ = number;
      asked_at_ = now_;
    }
    if (!starting_.all_came()) {
      fail({.code = 128 + number});
      launcher_.signal(number);
    }
    for (const auto& peer : peers_) {
      if (peer->rank >= 0) peer->socket.send(fmt::format("signal {}", number));
    }
  }

  bool all_closed() const {
    return std::ranges::none_of(peers_, [](const auto& peer) { return peer->there(); });
  }

  bool over() const {
    if (keeping_.began() && !stop_sent_) return false;
    if (failure_ && now_ - end_began() > end_of_grace) return true;
    return launcher_ended_ && (starting_.all_came() || failure_) && all_closed();
  }

  // Since when the ranks are asked to end, or soon will be.
  Moment end_began() const { return stop_sent_.value_or(failure_->when); }

  void end_the_rest() {
    if (keeping_.began() && !stop_sent_) {
      if (keeping_.done(peers_, now_)) send_stop();
      return;
    }
    const Moment since = now_ - end_began();
    if (!stopped_ && since > suspicion) {
      blame_the_silent();
      stop_all();
    }
    if (since > grace) {
      for (const auto& peer : peers_)
        if (peer->there()) peer->kill_process(token_);
      launcher_.signal(since > last_grace ? SIGKILL : SIGTERM);
    }
    if (launcher_ended_ && since > last_grace)
      for (const auto& peer : peers_) peer->finished = true;
  }

  void look_for_failure() {
    if (!starting_.all_came()) return look_at_start();
    if (launcher_ended_ && now_ - *launcher_ended_ > launcher_suspicion) return fail(failure_of_launcher());
    if (unheard_since_ && now_ - *unheard_since_ > launcher_suspicion) return fail(failure_of_launcher());
    const Moment limit = std::chrono::seconds(start_.stall_seconds);
    if (limit == 0s) return;
    if (std::optional<Stall> stall = find_stall(peers_, now_, limit))
      return fail({.text = stall->what, .more = stall->more});
    if (output_.held_up() || errors_.held_up()) last_goodbye_ = now_;  // so is the launcher
    if (all_closed() && now_ - last_goodbye_ > limit)
      fail({.text = fmt::format("all ranks are done, but the launcher '{}' has not ended for {} s",
                                start_.launcher.front(), start_.stall_seconds)});
  }

  // A launcher that was killed says nothing about hosts.
  void look_at_start() {
    std::optional<StartWatch::LauncherEnd> end;
    if (launcher_ended_) end = {*launcher_ended_, *launcher_.ended()};
    std::optional<Failure> failure = starting_.find_failure(peers_, now_, end);
    if (!failure) return;
    if (launcher_.killed_by_others() == 0) {
      auto [lost, silent] = starting_.hosts_without_ranks(peers_);
      lost_ranks_ = lost.empty() ? 0 : start_.ranks - starting_.arrived();
      lost_hosts_ = std::move(lost);
      silent_hosts_ = std::move(silent);
    }
    fail(std::move(*failure));
  }

  // Once the others have said the last that they had to say: a snapshot may have been under way.
  JobEnd report() {
    const Moment most = failure_ ? 1s : 10000h;  // a reader may take its time
    output_.finish(most);
    errors_.finish(most);
    if (!failure_) {
      fmt::print(stderr, "{}{}", output_.kept(), errors_.kept());
      return {.snapshot = snapshot_,
              .trained = trained(),
              .moves = moving_ && stopped_early_ && asked_to_stop_ == 0};
    }
    const bool is_lost = failure_->code == static_cast<int>(ExitCode::peer_error);
    if (is_lost && launcher_may_be_reason_ && launcher_.killed_by_others() != 0)
      failure_->text = failure_of_launcher().text;
    JobEnd end{.code = failure_->code,
               .launcher_said = launcher_said_,
               .snapshot = snapshot_,
               .lost_hosts = lost_hosts_,
               .lost_ranks = lost_ranks_};
    end.silent_hosts = silent_hosts_;
    end.trained = trained();
    end.wants_hosts = wants_hosts_;
    end.kept = keeping_.result();
    if (!end.kept.files.empty()) end.snapshot = end.kept.files.front();
    if (failure_->text.empty()) return end;
    end.message = message_of(*failure_, peers_, end.snapshot);
    end.reason = reason_of(*failure_, peers_);
    end.may_restart = is_loss();
    return end;
  }

  // Nobody is to blame but the machines: neither the input nor a user's signal. A launcher that by itself
  // never started a rank has a wrong command.
  bool is_loss() const {
    const bool began = starting_.arrived() > 0 || start_.restarts_done > 0 || !failure_->of_launcher ||
                       launcher_.killed_by_others() != 0;
    return failure_->code == static_cast<int>(ExitCode::peer_error) && asked_to_stop_ == 0 && began &&
           done_ < start_.ranks;
  }

  const JobStart& start_;
  std::string token_;
  SignalFile signals_;
  Socket listener_, events_;
  Launcher launcher_;
  Output output_, errors_;
  std::vector<std::unique_ptr<Peer>> peers_;
  Clock::time_point last_turn_;
  Moment now_{}, next_question_{};
  StartWatch starting_{start_, port_of(listener_)};
  int done_ = 0;  // ranks that ended well
  Moment last_goodbye_{};
  std::string snapshot_ = start_.snapshot;
  int64_t snapshot_iteration_ = -1;  // of those that this start wrote
  Keeping keeping_;
  bool wants_hosts_ = start_.wants_hosts;
  bool moving_ = false;         // the ranks were asked to end for that
  bool stopped_early_ = false;  // and did so before the work's end
  Moment next_look_at_hosts_{};
  std::vector<std::string> lost_hosts_, silent_hosts_;
  int lost_ranks_ = 0;
  std::optional<Failure> failure_;
  std::string launcher_said_;  // of a failure that is its own
  bool stopped_ = false;       // the failure is known, and the ranks are to end
  std::optional<Moment> stop_sent_;
  bool launcher_may_be_reason_ = false;  // of ranks that are gone: it took them with it
  int asked_to_stop_ = 0;
  Moment asked_at_{};
  std::optional<Moment> launcher_ended_;
  std::optional<Moment> unheard_since_;  // a rank has lost the process that started it
  std::string unheard_;                  // its name
};

}  // namespace

JobEnd watch_job(const JobStart& start) {
  set_ucx(start.peer_seconds);
  return Parent(start).run();
}

}  // namespace cortado
