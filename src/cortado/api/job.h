#pragma once

#include <functional>
#include <memory>

namespace cortado::api {

// The ranks that share a training: processes that an MPI launcher started, or this process alone. Copies are
// the same job.
class Job {
 public:
  Job();  // one rank: this process
  // The ranks that the launcher of this process (mpiexec, mpirun, srun) started; one rank where none did. MPI
  // begins here and ends with the last copy, unless the program has begun it: then it ends MPI itself, after
  // the last copy. At most one job at a time in a process. Throws UserError: this build has no MPI, or MPI
  // has ended.
  static Job launched();
  // `ranks` threads of this process, for tests: calls `body` on each and returns when all have ended.
  // Rethrows what the first to fail threw; the others get PeerError.
  static void local(int ranks, const std::function<void(Job&)>& body);

  int rank() const;
  int size() const;

  struct Impl;
  explicit Job(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  Impl& impl() const { return *impl_; }  // for Cortado's own sources

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace cortado::api
