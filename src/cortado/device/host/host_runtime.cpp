#include "cortado/device/host/host_runtime.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <sys/mman.h>

#include "cortado/base/error.h"

namespace cortado::device {
namespace {

constexpr size_t huge_page = size_t{2} << 20;

size_t rounded(Bytes size) {
  return (static_cast<size_t>(size.count) + huge_page - 1) / huge_page * huge_page;
}

class HostEvent : public Event {
 public:
  void wait() override {}
  bool reached() override { return true; }
  Seconds since(const Event& earlier) const override {
    return {
        std::chrono::duration<double>(recorded - static_cast<const HostEvent&>(earlier).recorded).count()};
  }
  std::chrono::steady_clock::time_point recorded;
};

class HostQueue : public Queue {
 public:
  HostQueue() : Queue(true) {}
  void copy_in(std::byte* device, const std::byte* host, Bytes size) override {
    if (size.count > 0) std::memcpy(device, host, static_cast<size_t>(size.count));
  }
  void copy_out(std::byte* host, const std::byte* device, Bytes size) override {
    copy_in(host, device, size);
  }
  void fill(float* device, float value, int64_t count) override { std::fill_n(device, count, value); }
  void record(Event& event) override {
    static_cast<HostEvent&>(event).recorded = std::chrono::steady_clock::now();
  }
  void wait(Event&) override {}
  void finish() override {}

 private:
  void launch_later(std::function<void()>) override { throw InternalError("the host runs work at once"); }
};

class HostRuntime : public DeviceRuntime {
 public:
  HostRuntime() : DeviceRuntime(true, Launches::host_functions) {}
  Queue& queue() override { return queue_; }
  std::unique_ptr<Queue> make_queue() override { return std::make_unique<HostQueue>(); }
  std::unique_ptr<Event> make_event(bool) override { return std::make_unique<HostEvent>(); }

 private:
  // Allocates on a boundary of 2 MiB. The system is asked for huge pages, and gives them when they are
  // touched.
  std::byte* allocate(Bytes size) override {
    // Map one page more than needed and give the unaligned ends back.
    const size_t length = rounded(size);
    void* mapped =
        mmap(nullptr, length + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
      throw UserError(
          fmt::format("out of memory: the system does not give {:.1f} MiB more; use a smaller batch",
                      static_cast<double>(length) / (1 << 20)));
    }
    const auto start = reinterpret_cast<uintptr_t>(mapped);
    const uintptr_t aligned = (start + huge_page - 1) / huge_page * huge_page;
    if (aligned > start) munmap(mapped, aligned - start);
    const size_t tail = start + huge_page - aligned;
    if (tail > 0) munmap(reinterpret_cast<void*>(aligned + length), tail);
    madvise(reinterpret_cast<void*>(aligned), length, MADV_HUGEPAGE);
    return reinterpret_cast<std::byte*>(aligned);
  }
  void free(std::byte* block, Bytes size) override { munmap(block, rounded(size)); }

  HostQueue queue_;
};

}  // namespace

// Never destroyed: static objects may own its memory.
DeviceRuntime& host() {
  static DeviceRuntime& device = *new HostRuntime;
  return device;
}

}  // namespace cortado::device
