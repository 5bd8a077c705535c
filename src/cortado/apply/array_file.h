#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cortado/apply/feature_array.h"

namespace cortado {

// Where the values of arrays lie in a file, and what comes before them.
struct ArrayLayout {
  std::string head;             // the file's first bytes; empty: they are written
  std::vector<int64_t> begins;  // per array
};

// One array in NumPy's format, version 1.0.
ArrayLayout npy_layout(const std::string& path, const std::string& temporary,
                       const std::vector<FeatureArray>& arrays);
// Makes of the empty file `temporary` an HDF5 file of datasets without values, named as the blobs; a '/' in a
// name makes groups. Throws UserError naming `path`.
ArrayLayout hdf5_layout(const std::string& path, const std::string& temporary,
                        const std::vector<FeatureArray>& arrays);

// A file of float arrays whose extents are known from the start, written under a temporary name beside it.
class ArrayFile {
 public:
  using LayOut = ArrayLayout (*)(const std::string& path, const std::string& temporary,
                                 const std::vector<FeatureArray>& arrays);

  // Throws UserError: `path` is there, unless `replace`, or is a folder; it cannot be made.
  ArrayFile(const std::string& path, bool replace, LayOut lay_out, const std::vector<FeatureArray>& arrays);
  ~ArrayFile();
  ArrayFile(const ArrayFile&) = delete;

  // Throw UserError naming the file.
  void add(size_t array, std::span<const float> rows);
  void finish();

 private:
  [[noreturn]] void fail() const;  // says why, by errno
  void check_room(const std::vector<FeatureArray>& arrays);
  void write(int64_t offset, std::string_view bytes);

  std::string path_, temporary_, head_;
  int descriptor_ = -1;
  std::vector<int64_t> next_;  // per array: byte of the file
};

}  // namespace cortado
