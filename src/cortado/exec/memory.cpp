#include "cortado/exec/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <utility>

#include "cortado/base/error.h"

namespace cortado {
namespace {

constexpr size_t huge_page = size_t{2} << 20;

size_t rounded(Bytes size) {
  return (static_cast<size_t>(size.count) + huge_page - 1) / huge_page * huge_page;
}

}  // namespace

Memory::Memory(Bytes size) : size_(size) {
  if (size.count == 0) return;
  // Map one page more than needed and give the unaligned ends back.
  size_t length = rounded(size);
  void* mapped =
      mmap(nullptr, length + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    throw UserError(fmt::format("the system does not give {:.2f} GiB of memory; use a smaller batch",
                                static_cast<double>(length) / (1 << 30)));
  }
  auto start = reinterpret_cast<uintptr_t>(mapped);
  uintptr_t aligned = (start + huge_page - 1) / huge_page * huge_page;
  if (aligned > start) munmap(mapped, aligned - start);
  size_t tail = start + huge_page - aligned;
  if (tail > 0) munmap(reinterpret_cast<void*>(aligned + length), tail);
  data_ = reinterpret_cast<std::byte*>(aligned);
  madvise(data_, length, MADV_HUGEPAGE);
}

Memory::~Memory() {
  if (data_ != nullptr) munmap(data_, rounded(size_));
}

Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, Bytes{})) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace cortado
