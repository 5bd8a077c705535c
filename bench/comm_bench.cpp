// Sums over all ranks: the ring of comm/mpi/ring.h against MPI's own allreduce, both stepped by tests as a
// progress thread does. Run by an MPI launcher: mpiexec -n 2 comm_bench [LARGEST_MEGABYTES]. Medians, in
// milliseconds.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cortado/comm/mpi/ring.h"

namespace {

using namespace cortado;

double median_milliseconds(int times, const std::function<void()>& once) {
  std::vector<double> all;
  for (int i = 0; i < times; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    auto begin = std::chrono::steady_clock::now();
    once();
    all.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

void own_allreduce_of_mpi(float* values, int count) {
  MPI_Request request;
  check_mpi(MPI_Iallreduce(MPI_IN_PLACE, values, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request));
  for (int done = 0; done == 0; std::this_thread::yield())
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
}

}  // namespace

int main(int count, char** words) {
  int64_t largest = (count > 1 ? std::atoi(words[1]) : 64) << 20;
  auto world = std::make_shared<MpiWorld>(
      false, [] {}, std::chrono::seconds(5));
  std::vector<int> everyone;
  for (int rank = 0; rank < world->size(); ++rank) everyone.push_back(rank);
  MpiGroup& group = world->group(everyone);
  std::vector<float> values(static_cast<size_t>(largest) / sizeof(float));
  const std::vector<int64_t> segments = {1 << 16, 1 << 17, 1 << 18, 1 << 20, 1 << 22};
  if (world->rank() == 0)
    fmt::print("{:>12} {:>12}   rings with segments of {} bytes\n", "bytes", "MPI",
               fmt::join(segments, ", "));
  for (int64_t bytes = 1024; bytes <= largest; bytes *= 4) {
    int64_t floats = bytes / static_cast<int64_t>(sizeof(float));
    int times = bytes < (1 << 22) ? 21 : 7;
    double mpi =
        median_milliseconds(times, [&] { own_allreduce_of_mpi(values.data(), static_cast<int>(floats)); });
    std::string line = fmt::format("{:>12} {:>12.3f}", bytes, mpi);
    for (int64_t segment : segments) {
      MpiRing ring(world, group, group.made++, values.data(), balanced_chunks(floats, world->size()), {},
                   segment);
      line += fmt::format(" {:>12.3f}", median_milliseconds(times, [&] {
                            ring.start();
                            while (!ring.test()) std::this_thread::yield();
                          }));
    }
    if (world->rank() == 0) fmt::print("{}\n", line);
  }
  return 0;
}
