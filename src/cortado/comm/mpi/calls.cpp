#include "cortado/comm/mpi/calls.h"

#include <chrono>
#include <string>
#include <thread>

#include "cortado/base/error.h"
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

namespace cortado {

void check_mpi(int code) {
  if (code == MPI_SUCCESS) return;
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  text.resize(static_cast<size_t>(length));
  throw PeerError("a peer failed: " + text);
}

void wait_for(MPI_Request& request) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds polled{100}, pause{50};
  const auto begin = Clock::now();
  for (int complete = 0;;) {
    check_mpi(MPI_Test(&request, &complete, MPI_STATUS_IGNORE));
    if (complete != 0) return;
    if (Clock::now() - begin < polled) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(pause);
    }
  }
}

MPI_Datatype mpi_type(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return MPI_FLOAT;
    case ElementType::f64:
      return MPI_DOUBLE;
    case ElementType::bf16:
      return MPI_UINT16_T;  // moved, never summed
  }
  throw InternalError("an element type that is none");
}

// Both MPIs have a question of their own: Open MPI manual, "MPIX_Query_cuda_support"; MPICH 4 manual,
// "MPIX_GPU_query_support". No GPU has answered it yet.
bool mpi_reads_device_memory() {
#if defined(MPIX_GPU_SUPPORT_CUDA)
  int supported = 0;
  return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &supported) == MPI_SUCCESS && supported != 0;
#elif defined(MPIX_CUDA_AWARE_SUPPORT)
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

}  // namespace cortado
