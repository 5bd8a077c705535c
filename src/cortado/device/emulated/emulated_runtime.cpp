#include "cortado/device/emulated/emulated_runtime.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

#include "cortado/base/error.h"
#include "cortado/device/emulated/late_queue.h"

namespace cortado::device {
namespace emulated {
namespace {

constexpr size_t range_size = size_t{1} << 38;  // of addresses; pages are there once they are touched
constexpr size_t page = 4096;

size_t rounded(Bytes size) { return (static_cast<size_t>(size.count) + page - 1) / page * page; }

std::byte* reserve(size_t size) {
  void* mapped = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    throw UserError(
        fmt::format("the system does not give the emulated device {} GiB of addresses: {}; raise "
                    "`ulimit -v`",
                    size >> 30, std::strerror(errno)));
  return static_cast<std::byte*>(mapped);
}

// Two ranges of addresses of one size. Those of the first are the device's, and nobody may touch them. The
// second has the memory, and launched functions alone know of it.
class EmulatedRuntime : public DeviceRuntime {
 public:
  explicit EmulatedRuntime(const DeviceOptions& options)
      : DeviceRuntime(false, Launches::either), options_(options), addresses_(reserve(2 * range_size)) {
    const auto begin = reinterpret_cast<uintptr_t>(addresses_);
    shift_for_kernels(begin, begin + range_size, range_size);
    queue_ = make_queue();
  }
  ~EmulatedRuntime() override {
    queue_.reset();
    munmap(addresses_, 2 * range_size);
  }
  bool captures() const override { return options_.graphs; }
  Link link() const override { return options_.links ? Link::emulated : Link::none; }
  std::string unit() const override { return fmt::format("{} {}", getpid(), fmt::ptr(addresses_)); }
  Queue& queue() override { return *queue_; }
  std::unique_ptr<Queue> make_queue() override { return std::make_unique<LateQueue>(*this); }
  std::unique_ptr<Event> make_event(bool timed) override { return std::make_unique<LateEvent>(timed); }

 private:
  std::byte* allocate(Bytes size) override {
    std::lock_guard lock(mutex_);
    const size_t length = rounded(size);
    std::byte* block = addresses_ + used_;
    if (length > range_size - used_ || mprotect(for_kernels(block), length, PROT_READ | PROT_WRITE) != 0)
      throw UserError(
          fmt::format("the emulated device does not have {:.2f} GiB of memory; use a smaller batch",
                      static_cast<double>(length) / (1 << 30)));
    used_ += length + page;  // a page between blocks that nobody may touch
    return block;
  }
  // Addresses are not used again: who still uses them faults.
  void free(std::byte* block, Bytes size) override {
    mmap(for_kernels(block), rounded(size), PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }

  const DeviceOptions options_;
  std::byte* const addresses_;
  std::mutex mutex_;
  size_t used_ = 0;
  std::unique_ptr<Queue> queue_;
};

}  // namespace
}  // namespace emulated

std::unique_ptr<DeviceRuntime> make_emulated(const DeviceOptions& options) {
  return std::make_unique<emulated::EmulatedRuntime>(options);
}

}  // namespace cortado::device
