#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace cortado {

// Asks hosts whether they are there, on a thread of its own.
class HostProbe {
 public:
  // By a connection at `port`: a host that refuses it is there.
  HostProbe(std::vector<std::string> hosts, int port);
  // All have answered. False while that is not known.
  bool all_answer() const { return *answers_; }

 private:
  std::shared_ptr<std::atomic<bool>> answers_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace cortado
