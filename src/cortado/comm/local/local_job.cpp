#include "cortado/comm/local/local_job.h"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "cortado/base/compute_threads.h"
#include "cortado/comm/local/communicator.h"
#include "cortado/comm/local/hub.h"

namespace cortado {

LocalJob::LocalJob(int ranks, std::chrono::milliseconds patience)
    : hub_(std::make_shared<Hub>(ranks, patience)) {}

std::unique_ptr<Communicator> LocalJob::communicator(int rank) {
  return std::make_unique<LocalCommunicator>(hub_, rank);
}

void LocalJob::run(const std::function<void(Communicator&)>& body) {
  hub_ = hub_->renewed();
  std::mutex mutex;
  std::exception_ptr first;
  auto failed = [&](int rank, const std::string& message) {
    {
      std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
    hub_->fail(rank, message);
  };
  std::vector<std::thread> threads;
  const int compute = compute_threads();  // OpenMP's setting is each thread's own
  for (int rank = 0; rank < hub_->ranks(); ++rank) {
    threads.emplace_back([&, rank] {
      set_compute_threads(compute);
      try {
        body(*communicator(rank));
      } catch (const std::exception& error) {
        failed(rank, error.what());
      } catch (...) {
        failed(rank, "an exception of unknown type");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace cortado
