#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <string>
#include <thread>

namespace cortado {

// Writes one snapshot at a time on a thread of its own, while the training goes on.
class SnapshotWriter {
 public:
  SnapshotWriter() = default;
  ~SnapshotWriter() { wait(); }
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  // Begins: `write` returns the file to resume from. The one before has been finished.
  void begin(std::function<std::string()> write);
  // Whether there is one that was begun and not finished.
  bool has_one() const { return has_one_; }
  // Whether finish() would not wait, and whether it would throw.
  bool is_done() const { return done_; }
  bool has_failed() const { return done_ && error_; }
  // Waits until it is written.
  void wait();
  // The same; returns its file, or throws what writing it threw. Empty where there is none.
  std::string finish();

 private:
  std::thread writer_;
  bool has_one_ = false;
  std::atomic<bool> done_ = false;  // what follows is complete
  std::string path_;
  std::exception_ptr error_;
};

}  // namespace cortado
