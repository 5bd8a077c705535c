#pragma once

#include <functional>
#include <hdf5.h>
#include <string>
#include <string_view>
#include <utility>

#include "cortado/base/crash_guard.h"
#include "cortado/net/blob.h"

namespace cortado {

// An HDF5 identifier that closes itself.
class Hdf5Handle {
 public:
  Hdf5Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Hdf5Handle() {
    if (id_ >= 0) close_(id_);
  }
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Handle(const Hdf5Handle&) = delete;
  Hdf5Handle& operator=(const Hdf5Handle&) = delete;
  hid_t get() const { return id_; }
  bool open() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// Reads values of an HDF5 file by their path inside it ("data/conv1/0"). Throws UserError naming the file;
// whoever has its content checks the seal. Made and used on one thread.
class Hdf5Reader {
 public:
  explicit Hdf5Reader(const std::string& path);

  bool has(const std::string& name) const;
  Blob blob(const std::string& name) const;
  int integer(const std::string& name) const;
  std::string text(const std::string& name) const;

  // Calls visit(path below `group`) for each dataset below it, in the order of names.
  void for_each_dataset(const std::string& group, const std::function<void(const std::string&)>& visit) const;

 private:
  Hdf5Handle dataset(const std::string& name) const;
  [[noreturn]] void fail(const std::string& what) const;

  std::string path_;
  CrashGuard guard_;  // libhdf5 trusts what is in a file
  Hdf5Handle file_;
};

// Collects an HDF5 file in memory, then writes it at once, with a seal (net/seal.h).
class Hdf5Writer {
 public:
  Hdf5Writer();
  // Groups on the way are made.
  void blob(const std::string& name, const Blob& blob);
  void integer(const std::string& name, int value);
  void text(const std::string& name, const std::string& value);
  void group(const std::string& name);
  void write(const std::string& path);

 private:
  Hdf5Handle file_;
  Hdf5Handle with_groups_;    // property: make the groups on the way
  Hdf5Handle without_times_;  // property of datasets
};

// Whether the content of a file is HDF5's.
bool is_hdf5(std::string_view content);

}  // namespace cortado
