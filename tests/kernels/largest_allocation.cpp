#include "tests/kernels/largest_allocation.h"

#include <cstdlib>
#include <new>

namespace cortado::check {

std::atomic<size_t> largest_allocation = 0;

}  // namespace cortado::check

void* operator new(size_t size) {
  size_t most = cortado::check::largest_allocation;
  while (most < size && !cortado::check::largest_allocation.compare_exchange_weak(most, size)) {
  }
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
