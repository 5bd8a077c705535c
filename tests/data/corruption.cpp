#include "tests/data/corruption.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <omp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/data/support.h"

namespace cortado {

std::string corrupted(std::string bytes, uint32_t which, size_t block) {
  std::mt19937 random(which);
  auto below = [&](size_t end) { return end == 0 ? 0 : random() % end; };
  auto place = [&] {
    if (random() % 2 != 0) return below(bytes.size());
    return std::min(below(bytes.size()) / block * block + below(64), bytes.size() - 1);
  };
  auto range = [&](size_t begin) { return std::min<size_t>(1 + below(64), bytes.size() - begin); };
  for (size_t times = 1 + below(3); times > 0 && !bytes.empty(); --times) {
    const size_t at = place();
    switch (random() % 6) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1u << random() % 8));
        break;
      case 1:
        bytes[at] = static_cast<char>(random());
        break;
      case 2:
        std::memset(&bytes[at], random() % 2 != 0 ? 0 : 0xFF, range(at));
        break;
      case 3:
        std::swap(bytes[at], bytes[place()]);
        break;
      case 4: {
        const size_t from = below(bytes.size()) / block * block, to = below(bytes.size()) / block * block;
        std::memmove(&bytes[to], &bytes[from], std::min(block, bytes.size() - std::max(from, to)));
        break;
      }
      default:
        if (random() % 4 == 0) bytes.resize(at);
    }
  }
  return bytes;
}

namespace {

// Runs in the child; `progress` says what it got to.
[[noreturn]] void run_cases(std::atomic<int>* progress, int cases, const std::function<void(int)>& read) {
  for (; *progress < cases; ++*progress) {
    alarm(60);
    omp_set_num_threads(1);
    try {
      read(*progress);
    } catch (const UserError&) {
    } catch (const std::exception& error) {
      fprintf(stderr, "case %d: %s\n", progress->load(), error.what());
      _exit(1);
    }
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  if (used.ru_maxrss > 1 << 20) fprintf(stderr, "%ld KiB of memory were used\n", used.ru_maxrss);
  _exit(used.ru_maxrss > 1 << 20 ? 2 : 0);
}

}  // namespace

void expect_all_survive(int cases, const std::function<void(int)>& read) {
  void* shared =
      mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* progress = static_cast<std::atomic<int>*>(shared);
  *progress = 0;
  for (int failures = 0; failures < 5 && *progress < cases; ++*progress) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) run_cases(progress, cases, read);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (status == 0) break;
    ++failures;
    ADD_FAILURE() << "case " << *progress << " ended by "
                  << (WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                          : "exit code " + std::to_string(WEXITSTATUS(status)));
  }
  munmap(shared, sizeof(std::atomic<int>));
}

}  // namespace cortado
