#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <sys/types.h>
#include <vector>

#include "cortado/base/activity.h"
#include "cortado/job/wire.h"

namespace cortado {

// Time as the parent counts it: from the job's start, without times when the parent itself stood still.
using Moment = std::chrono::milliseconds;

// What the parent knows of a rank.
struct Peer {
  LineSocket socket{};
  int rank = -1;  // until it has said hello
  pid_t pid = 0;
  std::string host{}, address{};  // its name, and its address in numbers
  int64_t iteration = -1;         // the last that is complete
  bool finished = false;          // said goodbye, or is gone

  int asked = 0, answered = 0;  // questions, counted
  int suspected = 0;            // the question by which it shows that it is there, when another missed it
  Moment came{};                // when it connected
  Moment heard{};               // when it answered last
  Moment moved{};               // when it last did something other than wait, or said goodbye
  uint64_t progress = 0;
  Activity activity{};  // what it said then

  bool there() const { return rank >= 0 && !finished; }
  void ask();
  // What follows "here".
  void hear(std::istringstream& words, Moment now);
  // Whether its process runs on this machine. The job's `token` distinguishes it from another process with
  // its number.
  bool is_here(const std::string& token) const;
  void kill_process(const std::string& token) const;  // where it is here, even if it stands still
};
using Peers = std::vector<std::unique_ptr<Peer>>;

// Closes and forgets connections that are nobody's yet: those that said no hello within 10 seconds, and of
// more than 256 the oldest ones. So neither a flood of them nor silent ones use the parent up.
void drop_strangers(Peers& peers, Moment now);

// "rank 2 on b".
std::string name(const Peer& peer);
// "rank 2", "ranks 0, 1, 3".
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace cortado
