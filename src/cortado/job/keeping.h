#pragma once

#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "cortado/job/peer.h"

namespace cortado {

// What the ranks that were left have written: an iteration that they have whole together.
struct KeptIteration {
  int64_t iteration = -1;
  std::vector<std::string> files;  // none: nothing was kept
  std::string why_not;             // empty: or nothing newer than the newest snapshot was there
};

// After a failure: asks the ranks that are left what they have, and has them write the newest iteration that
// they have whole together. It takes a few seconds at most, whatever becomes of the ranks.
class Keeping {
 public:
  // Asks all ranks that are connected. `snapshot`: iteration of the newest; -1: there is none.
  void begin(const Peers& peers, int64_t snapshot, Moment now);
  bool began() const { return began_.has_value(); }
  // Takes a rank's answer; false where the verb is none of it.
  bool hear(const Peer& peer, const std::string& verb, std::istringstream& words);
  // Goes on with what has come. True once there is nothing more to wait for.
  bool done(const Peers& peers, Moment now);
  // Once done.
  const KeptIteration& result() const { return result_; }

 private:
  struct Rank {
    std::string name;
    bool heard = false, written = false;
    int64_t began = 0, first = 0, last = 0, agreed = 0;
  };
  void choose(const Peers& peers, Moment now);
  bool wait_for_files(const Peers& peers, Moment now);
  void give_up(const std::string& why);

  std::map<int, Rank> ranks_;  // by number
  int64_t snapshot_ = -1;
  std::optional<Moment> began_, chosen_;
  bool done_ = false;
  KeptIteration result_;
};

// Removes files that a job's ranks have kept; those that are not there are passed over.
void remove_kept(const std::vector<std::string>& files);

}  // namespace cortado
