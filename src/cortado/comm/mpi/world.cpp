#include "cortado/comm/mpi/world.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "cortado/base/activity.h"
#include "cortado/base/error.h"
#include "cortado/comm/launched_rank.h"
#include "cortado/comm/mpi/measured_link.h"
#include "cortado/comm/ring.h"

namespace cortado {
namespace {

MPI_Comm duplicate(MPI_Comm comm) {
  MPI_Comm copy = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(comm, &copy));
  check_mpi(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN));
  return copy;
}

bool all_on_one_host(int size) {
  MPI_Comm here = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here));
  int ranks_here = 0;
  check_mpi(MPI_Comm_size(here, &ranks_here));
  MPI_Comm_free(&here);
  return ranks_here == size;
}

// UCX, below MPICH, fetches long messages from their sender. Over TCP that uses one direction of a link at a
// time (measured: half the rate of sending at once), over shared memory it saves a copy. So where hosts have
// no RDMA: send at once with one rank a host, else fetch in the way that costs TCP least. What the user set
// stays.
void tune_ucx_for_tcp() {
  const char* local = std::getenv("MPI_LOCALNRANKS");  // of MPICH's launcher
  int ranks = launched_rank().value_or(LaunchedRank{}).size;
  std::error_code error;
  bool rdma = std::filesystem::exists("/sys/class/infiniband", error) &&
              !std::filesystem::is_empty("/sys/class/infiniband", error);
  if (local == nullptr || std::atoi(local) >= ranks || rdma) return;
  if (std::atoi(local) == 1) {
    setenv("UCX_RNDV_THRESH", "inf", 0);
  } else {
    setenv("UCX_RNDV_SCHEME", "get_zcopy", 0);
  }
}

// MPICH over UCX ends its TCP connections by a message that the other side has to answer, and does not stay
// to answer once its own is answered. So others wait in vain for a rank that answers before it ends its own
// connections. Therefore all ranks leave the barrier and answer nothing for a while, until every rank has
// left it.
void finalize(bool one_host, const std::function<void()>& stuck, std::chrono::seconds time_to_end) {
  using namespace std::chrono_literals;
  const ActivityScope waiting("the end of MPI");
  MPI_Barrier(MPI_COMM_WORLD);  // a rank that comes late, as one that a GPU keeps busy, is not stuck
  if (!one_host) std::this_thread::sleep_for(100ms);
  std::mutex mutex;
  std::condition_variable ended;
  bool finalized = false;
  std::thread watch([&] {
    std::unique_lock lock(mutex);
    const bool in_time = ended.wait_for(lock, time_to_end, [&] { return finalized; });
    if (!in_time && stuck) stuck();
  });
  MPI_Finalize();
  {
    std::lock_guard lock(mutex);
    finalized = true;
  }
  ended.notify_one();
  watch.join();
}

void check_launcher(int size) {
  int launched = launched_rank().value_or(LaunchedRank{}).size;
  if (launched > 1 && size == 1) {
    throw UserError(fmt::format(
        "the launcher started {} processes, but each sees only itself: it belongs to another MPI than "
        "this cortado; start it with {}",
        launched, CORTADO_MPI_LAUNCHER));
  }
}

}  // namespace

MpiWorld::MpiWorld(bool apart, std::function<void()> stuck, std::chrono::seconds time_to_end)
    : exceptions_(std::uncaught_exceptions()), stuck_(std::move(stuck)), time_to_end_(time_to_end) {
  const ActivityScope waiting("the start of MPI");
  int begun = 0, ended = 0, provided = 0;
  MPI_Finalized(&ended);
  if (ended != 0)
    throw UserError("MPI has ended in this process and cannot begin again; keep the first job to the end");
  MPI_Initialized(&begun);
  begun_here_ = begun == 0;
  if (begun_here_) {
    tune_ucx_for_tcp();
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided));
  } else {
    check_mpi(MPI_Query_thread(&provided));
  }
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  if (provided < MPI_THREAD_MULTIPLE)
    throw UserError("this MPI does not allow calls from several threads (MPI_THREAD_MULTIPLE); use another");
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size_));
  void* most = nullptr;
  int known = 0;
  check_mpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&most), &known));
  if (known != 0) largest_tag_ = *static_cast<int*>(most);
  check_launcher(size_);
  one_host_ = !apart && all_on_one_host(size_);
  exchanges_ = duplicate(MPI_COMM_WORLD);
  blocking_ = duplicate(MPI_COMM_WORLD);
  if (one_host_) return;
  const MeasuredLink link = measured_link(blocking_);
  segment_bytes_ = segment_over(link.bytes_per_second, link.latency);
  under_way_.limit(segment_bytes_);
}

MpiWorld::~MpiWorld() {
  if (std::uncaught_exceptions() > exceptions_) return;
  for (auto& [ranks, group] : groups_) MPI_Comm_free(&group.comm);
  MPI_Comm_free(&blocking_);
  MPI_Comm_free(&exchanges_);
  if (begun_here_) finalize(one_host_, stuck_, time_to_end_);
}

MpiGroup& MpiWorld::group(std::span<const int> ranks) {
  std::vector<int> key(ranks.begin(), ranks.end());
  auto found = groups_.find(key);
  if (found != groups_.end()) return found->second;
  MpiGroup made{.member = group_member(ranks, rank_), .size = static_cast<int>(ranks.size())};
  const ActivityScope waiting("the making of a group");
  MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &all));
  check_mpi(MPI_Group_incl(all, made.size, key.data(), &some));
  check_mpi(MPI_Comm_create_group(MPI_COMM_WORLD, some, 0, &made.comm));
  check_mpi(MPI_Comm_set_errhandler(made.comm, MPI_ERRORS_RETURN));
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  return groups_.emplace(std::move(key), made).first->second;
}

}  // namespace cortado
