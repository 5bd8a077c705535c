#include "cortado/train/snapshot_writer.h"

#include <utility>

#include "cortado/base/error.h"

namespace cortado {

void SnapshotWriter::begin(std::function<std::string()> write) {
  ensure(!has_one(), "the snapshot before is finished");
  done_ = false;
  has_one_ = true;
  writer_ = std::thread([this, write = std::move(write)] {
    try {
      path_ = write();
    } catch (...) {
      error_ = std::current_exception();
    }
    done_ = true;
  });
}

void SnapshotWriter::wait() {
  if (writer_.joinable()) writer_.join();
}

std::string SnapshotWriter::finish() {
  wait();
  done_ = has_one_ = false;
  if (const std::exception_ptr error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
  return std::exchange(path_, "");
}

}  // namespace cortado
