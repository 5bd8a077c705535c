#pragma once

#include <sys/types.h>

#include "cortado/job/wire.h"

namespace cortado {

// A process that ends the launcher once this one is gone, whatever ended it: asks it with SIGTERM where ranks
// have come, then kills it, what it has started, and the ranks that the guard was told of. A launcher that is
// only asked waits for its ranks; a rank that stands still (SIGSTOP) never ends by itself; and MPICH's
// proxies that come once their launcher is gone wait for it for good, for what starts them on other hosts
// holds its port open. So it also ends what a launcher leaves that has ended before any rank came.
class LauncherGuard {
 public:
  // `launcher`: its process, which leads a group of its own. Throws UserError where the system gives no
  // process.
  explicit LauncherGuard(pid_t launcher);
  ~LauncherGuard();           // the launcher has ended
  void add_rank(pid_t rank);  // a process of this host
  LauncherGuard(const LauncherGuard&) = delete;
  LauncherGuard& operator=(const LauncherGuard&) = delete;

 private:
  Socket socket_;  // whose other end the guard reads
  pid_t pid_ = -1;
};

}  // namespace cortado
