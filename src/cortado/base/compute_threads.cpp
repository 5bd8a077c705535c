#include "cortado/base/compute_threads.h"

#include <fmt/format.h>
#include <latch>
#include <omp.h>
#include <system_error>
#include <thread>
#include <vector>

#include "cortado/base/error.h"

namespace cortado {

int compute_threads() { return omp_get_max_threads(); }
void set_compute_threads(int threads) { omp_set_num_threads(threads); }

void require_threads(int threads) {
  std::latch all_are_there(1);
  std::vector<std::thread> started;
  std::string refusal;
  try {
    while (std::ssize(started) < threads) started.emplace_back([&] { all_are_there.wait(); });
  } catch (const std::system_error& error) {
    refusal = error.code().message();
  }
  all_are_there.count_down();
  for (std::thread& thread : started) thread.join();
  if (!refusal.empty())
    throw UserError(
        fmt::format("the system gives this process {} of {} threads: {}; use fewer threads, or "
                    "raise `ulimit -u` or `ulimit -v`",
                    started.size(), threads, refusal));
}

}  // namespace cortado
