#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <sys/types.h>
#include <thread>

#include "cortado/base/rank_state.h"
#include "cortado/job/wire.h"

namespace cortado {

// This process as a rank that a parent (watch_job) watches. A thread keeps the connection: when the parent
// says stop or is gone, the process ends at once with exit code 3, whatever its other threads do (a call of
// MPI may never return). A signal that the parent passes on is raised here. The thread answers the parent's
// questions by current_activity().
class JobRank : public RankStateWatcher {
 public:
  // Null where no parent started this process. Throws PeerError when the parent does not answer.
  static std::unique_ptr<JobRank> join(int rank);
  ~JobRank();

  // As the parent says: how many ranks the job has, how often it was started again, and the snapshot that it
  // then goes on from; empty: as its command says.
  int ranks() const { return ranks_; }
  int restarts() const { return restarts_; }
  const std::string& snapshot() const { return snapshot_; }

  // Any thread; costs nothing. The parent asks a few times a second.
  void report_iteration(int64_t iteration) { iteration_ = iteration; }
  // A snapshot that training can go on from.
  void report_snapshot(int64_t iteration, const std::string& path);
  // The work ends before its end, because it was asked to.
  void report_stopped() { send("stopped"); }
  void offer(RankState* state) override;
  void miss_others(const std::string& message) override;
  // The process ends with this code. With another than 0 the parent prints the message and stops the job. A
  // rank that ends without goodbye counts as failed.
  void goodbye(int code, const std::string& message = "");

 private:
  JobRank(LineSocket parent, const std::string& welcome);
  void watch();
  void send(const std::string& line);
  void look_at_launcher();
  bool obey(const std::string& line);  // false: the process must end
  void hold_still();
  void write_state(const std::string& words);
  [[noreturn]] void wait_for_the_end() const;
  void obey_all();  // what has come; may end the process

  LineSocket parent_;
  int ranks_ = 0, restarts_ = 0;
  std::string snapshot_;
  std::mutex sending_;
  std::atomic<int64_t> iteration_ = -1;
  pid_t started_by_;  // the launcher's process on this host
  std::atomic<bool> said_goodbye_ = false;
  Socket wake_;  // an eventfd
  std::mutex offering_;
  RankState* state_ = nullptr;
  std::atomic<bool> held_ = false;  // the state
  std::thread writer_;              // of it
  std::thread watcher_;
};

}  // namespace cortado
