#include "cortado/comm/processors.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <fstream>
#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <sched.h>
#include <string>
#include <unistd.h>

#include "cortado/base/affinity.h"
#include "cortado/base/compute_threads.h"
#include "cortado/base/error.h"
#include "cortado/comm/values_of_ranks.h"

namespace cortado {
namespace {

using Set = std::unique_ptr<hwloc_bitmap_s, void (*)(hwloc_bitmap_s*)>;

// What a rank sends to the others: its machine and the processors that it may use. (The host name will not
// do: containers and network namespaces of one machine share its processors.)
struct Place {
  char machine[64] = "", host[256] = "";
  cpu_set_t processors{};
};

Place own_place() {
  Place place;
  std::string boot;
  gethostname(place.host, sizeof place.host - 1);
  if (!(std::ifstream("/proc/sys/kernel/random/boot_id") >> boot)) boot = place.host;
  boot.copy(place.machine, sizeof place.machine - 1);
  place.processors = thread_processors();
  return place;
}

Set bitmap() { return {hwloc_bitmap_alloc(), hwloc_bitmap_free}; }

// Cores within `set`; processors where the system knows of no cores.
int cores_within(hwloc_topology* topology, const hwloc_bitmap_s* set) {
  const int cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology, set, HWLOC_OBJ_CORE);
  return cores > 0 ? cores : std::max(1, hwloc_bitmap_weight(set));
}

}  // namespace

Topology Topology::of_process() {
  hwloc_topology* topology = nullptr;
  ensure(hwloc_topology_init(&topology) == 0, "hwloc starts");
  Handle handle(topology, hwloc_topology_destroy);
  ensure(hwloc_topology_load(topology) == 0, "hwloc reads this machine");
  const cpu_set_t own = thread_processors();
  Set set = bitmap();
  hwloc_cpuset_from_glibc_sched_affinity(topology, set.get(), &own, sizeof own);
  hwloc_topology_restrict(topology, set.get(), 0);
  return Topology(std::move(handle));
}

Topology Topology::synthetic(const std::string& description) {
  hwloc_topology* topology = nullptr;
  ensure(hwloc_topology_init(&topology) == 0, "hwloc starts");
  Handle handle(topology, hwloc_topology_destroy);
  ensure(hwloc_topology_set_synthetic(topology, description.c_str()) == 0, "hwloc knows the topology");
  ensure(hwloc_topology_load(topology) == 0, "hwloc makes the topology");
  return Topology(std::move(handle));
}

int Topology::cores() const {
  return cores_within(handle_.get(), hwloc_topology_get_topology_cpuset(handle_.get()));
}

Bytes Topology::last_cache() const {
  for (const auto type : {HWLOC_OBJ_L5CACHE, HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE}) {
    Bytes all;
    const int count = std::max(0, hwloc_get_nbobjs_by_type(handle_.get(), type));
    for (int i = 0; i < count; ++i) {
      const hwloc_obj* cache = hwloc_get_obj_by_type(handle_.get(), type, static_cast<unsigned>(i));
      all += {static_cast<int64_t>(cache->attr->cache.size)};
    }
    if (all.count > 0) return all;
  }
  return {};
}

ProcessorShare Topology::share(int index, int ranks) const {
  const int all = cores();
  if (ranks == 1) return {.threads = all};
  if (ranks > all) return {.threads = 1};
  std::vector<hwloc_bitmap_s*> shares(static_cast<size_t>(ranks));
  hwloc_obj* root = hwloc_get_root_obj(handle_.get());
  ensure(hwloc_distrib(handle_.get(), &root, 1, shares.data(), static_cast<unsigned>(ranks), INT_MAX, 0) == 0,
         "hwloc shares processors out");
  std::vector<Set> sets;  // hwloc_distrib made them
  for (hwloc_bitmap_s* set : shares) sets.emplace_back(set, hwloc_bitmap_free);
  const hwloc_bitmap_s* own = sets[static_cast<size_t>(index)].get();
  ProcessorShare share{.threads = cores_within(handle_.get(), own)};
  for (int p = hwloc_bitmap_first(own); p >= 0; p = hwloc_bitmap_next(own, p)) {
    share.processors.push_back(p);
  }
  return share;
}

ProcessorShare processors_of_rank(Communicator& communicator) {
  const Place mine = own_place();
  int sharing = 0, before = 0;
  bool same = true;
  const auto places = values_of_ranks(communicator, mine);
  for (size_t rank = 0; rank < places.size(); ++rank) {
    const Place& theirs = places[rank];
    cpu_set_t both;
    CPU_AND(&both, &mine.processors, &theirs.processors);
    if (std::strcmp(mine.machine, theirs.machine) != 0 || CPU_COUNT(&both) == 0) continue;
    ++sharing;
    if (static_cast<int>(rank) < communicator.rank()) ++before;
    same = same && CPU_EQUAL(&mine.processors, &theirs.processors);
  }
  const Topology topology = Topology::of_process();
  if (same) return topology.share(before, sharing);
  return {.threads = std::max(1, topology.cores() / sharing)};  // partly shared: not ours to divide
}

void take_processors(Communicator& communicator, int threads, bool may_bind) {
  const ProcessorShare share = processors_of_rank(communicator);
  const int taken = threads > 0 ? threads : share.threads;
  require_threads(taken);
  set_compute_threads(taken);
  if (may_bind && threads <= share.threads) bind_to(share.processors);
}

PlaceOnHost place_on_host(Communicator& communicator) {
  const Place mine = own_place();
  PlaceOnHost place{0, 0};
  const auto places = values_of_ranks(communicator, mine);
  for (size_t rank = 0; rank < places.size(); ++rank) {
    const Place& theirs = places[rank];
    if (std::strcmp(mine.machine, theirs.machine) != 0 || std::strcmp(mine.host, theirs.host) != 0) continue;
    ++place.ranks;
    if (static_cast<int>(rank) < communicator.rank()) ++place.index;
  }
  return place;
}

void bind_to(const std::vector<int>& processors) {
  if (processors.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int processor : processors) CPU_SET(static_cast<size_t>(processor), &set);
  keep_thread_on(set);
}

}  // namespace cortado
