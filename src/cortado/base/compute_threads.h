#pragma once

namespace cortado {

// Number of compute threads (OpenMP's, or those of the thread's ThreadTeam) of the calling thread; scopes may
// change it.
int compute_threads();
void set_compute_threads(int threads);

// Lets the calling thread compute with another number of threads while it lives.
class ComputeThreads {
 public:
  explicit ComputeThreads(int threads) : before_(compute_threads()) { set_compute_threads(threads); }
  ~ComputeThreads() { set_compute_threads(before_); }
  ComputeThreads(const ComputeThreads&) = delete;
  ComputeThreads& operator=(const ComputeThreads&) = delete;

 private:
  const int before_;
};

// Throws UserError with the system's reason unless this process may run so many threads at once: OpenMP would
// end it without a word of ours.
void require_threads(int threads);

}  // namespace cortado
