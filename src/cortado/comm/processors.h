#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cortado/base/units.h"
#include "cortado/comm/communicator.h"

struct hwloc_topology;

namespace cortado {

// The processors on which one rank computes.
struct ProcessorShare {
  int threads = 1;              // one per core
  std::vector<int> processors;  // the system's numbers, to bind the rank to; none: it is not to be bound
  bool operator==(const ProcessorShare&) const = default;
};

// Cores, caches and sockets of a machine, as hwloc sees them.
class Topology {
 public:
  // The processors of this machine, as far as this process may use it by its affinity mask.
  static Topology of_process();
  // "socket:2 core:4 pu:2" (hwloc's synthetic topologies), for tests.
  static Topology synthetic(const std::string& description);

  int cores() const;
  // What their caches of the last level hold together; 0 where the system does not say.
  Bytes last_cache() const;
  // The share of rank `index` of `ranks` that share these processors: ranks that are neighbours in number are
  // neighbours on the machine, and no core has two ranks. More ranks than cores are not bound.
  ProcessorShare share(int index, int ranks) const;

 private:
  using Handle = std::unique_ptr<hwloc_topology, void (*)(hwloc_topology*)>;
  explicit Topology(Handle handle) : handle_(std::move(handle)) {}
  Handle handle_;
};

// This rank's share of its machine: ranks of one machine that may use the same processors share them evenly;
// a launcher that bound each rank to its own has shared them already. All ranks call it.
ProcessorShare processors_of_rank(Communicator& communicator);

// Gives this rank's calling thread so many compute threads (base/parallel_for.h), for 0 one for each core of
// its share, and binds it to its share if it may and has no more threads than that. All ranks call it.
// Throws UserError where the system does not give so many threads.
void take_processors(Communicator& communicator, int threads, bool may_bind);

// This rank among those of its host: those that share its machine and its host name, as containers do not.
struct PlaceOnHost {
  int index = 0, ranks = 1;
};
PlaceOnHost place_on_host(Communicator& communicator);  // all ranks call it

// Binds the calling thread, and those that it starts from now on.
void bind_to(const std::vector<int>& processors);

}  // namespace cortado
