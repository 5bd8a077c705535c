#include "tests/corruption/damage.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <new>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/job/crash_handlers.h"

namespace cortado::testing {

namespace {

constexpr int cases_a_process = 50;
constexpr unsigned seconds_a_case = 10;
constexpr rlim_t more_memory = rlim_t{1} << 30;

// The process itself holds so much address space already.
rlim_t address_space() {
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  file >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

// AddressSanitizer reserves terabytes; there memory has no limit.
void limit_memory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlim_t bytes = address_space() + more_memory;
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

void write_plainly(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// "equal", "other", "refused", or what is wrong.
std::string outcome(const FileKind& kind, const std::string& path, const std::string& sound) {
  try {
    const std::string found = kind.read(path);
    if (found == sound) return "equal";
    return kind.checked ? "accepted with another content" : "other";
  } catch (const UserError& error) {
    const std::string message = error.what();
    if (message.find('\n') != std::string::npos)
      return "a message of several lines: " + message.substr(0, message.find('\n'));
    return message.empty() ? "an empty message" : "refused";
  } catch (const std::bad_alloc&) {
    return "memory is not bounded";
  } catch (const std::exception& error) {
    return fmt::format("an error that is none of the user's: {}", error.what());
  }
}

// Runs `body` in a process of its own with what it prints kept; true when it ended by itself.
bool in_process(const std::function<void(int out)>& body, std::string& printed, int& status) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    body(ends[1]);
    _exit(0);
  }
  close(ends[1]);
  std::array<char, 4096> block;
  for (ssize_t got; (got = read(ends[0], block.data(), block.size())) > 0;)
    printed.append(block.data(), static_cast<size_t>(got));
  close(ends[0]);
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void say(int out, const std::string& line) { (void)!write(out, (line + "\n").data(), line.size() + 1); }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  return lines;
}

void count(const std::string& line, int seed, Verdicts& verdicts) {
  if (line == "equal")
    ++verdicts.equal;
  else if (line == "other")
    ++verdicts.other;
  else if (line == "refused")
    ++verdicts.refused;
  else
    verdicts.faults += fmt::format("seed {}: {}\n", seed, line);
}

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "cortado-damage-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

void damage(std::string& bytes, std::mt19937& random) {
  auto below = [&](size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random); };
  const int times = below(3) > 0 ? 1 : 2 + static_cast<int>(below(2));
  for (int i = 0; i < times && !bytes.empty(); ++i) {
    const size_t at = below(bytes.size()), length = 1 + below(below(2) == 0 ? 4 : 64);
    switch (below(4)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes.resize(at);
        break;
      case 2: {
        const size_t other = below(bytes.size());
        for (size_t k = 0; k < length && std::max(at, other) + k < bytes.size(); ++k)
          std::swap(bytes[at + k], bytes[other + k]);
        break;
      }
      default:
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), std::min(length, bytes.size() - at),
                    '\0');
    }
  }
}

Verdicts read_damaged(const FileKind& kind, int cases, int first) {
  Verdicts verdicts;
  Folder folder;
  std::string made;
  int status = 0;
  // What makes and reads the sound file also runs in a process of its own: threads do not outlive a fork.
  const bool sound_is_read = in_process(
      [&](int out) {
        try {
          const std::string path = kind.make(folder.path());
          say(out, path);
          const std::string found = kind.read(path);
          (void)!write(out, found.data(), found.size());
        } catch (const std::exception& error) {
          say(out, error.what());
          _exit(1);
        }
      },
      made, status);
  const size_t line = made.find('\n');
  if (!sound_is_read || line == std::string::npos) return {.faults = "the sound file is not read: " + made};
  const std::string path = made.substr(0, line), sound = made.substr(line + 1), bytes = read_file(path);

  for (int seed = first; seed < first + cases;) {
    const int last = std::min(seed + cases_a_process, first + cases);
    std::string printed;
    const bool ended = in_process(
        [&](int out) {
          limit_memory();
          end_process_on_guarded_crash();
          for (int s = seed; s < last; ++s) {
            std::mt19937 random(static_cast<uint32_t>(s));
            std::string damaged = bytes;
            damage(damaged, random);
            write_plainly(path, damaged);
            alarm(seconds_a_case);
            say(out, outcome(kind, path, sound));
          }
        },
        printed, status);
    for (const std::string& verdict : lines_of(printed)) count(verdict, seed++, verdicts);
    if (ended) continue;
    if (WIFEXITED(status) &&
        WEXITSTATUS(status) == 2) {  // refused without an exception (job/crash_handlers.h)
      ++verdicts.refused, ++seed;
      continue;
    }
    verdicts.faults +=
        fmt::format("seed {}: {}\n", seed, WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit");
    ++seed;
  }
  write_plainly(path, bytes);
  return verdicts;
}

}  // namespace cortado::testing
