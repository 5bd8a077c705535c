#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cortado/apply/feature_array.h"

namespace cortado {

// lmdb: what Caffe's extract_features writes: a Datum of floats per sample, keyed by its number in ten
// digits. hdf5: float datasets, named as the blobs. npy: NumPy's files, float32, row-major.
enum class FeatureFormat { lmdb, hdf5, npy };
// lmdb for any other name than "hdf5" and "npy".
FeatureFormat feature_format_named(std::string_view name);

// Takes features, sample by sample. Nothing has its name before finish(); without it the destructor removes
// what was written.
class FeatureStore {
 public:
  virtual ~FeatureStore() = default;
  // The next samples of an array, row-major. Throws UserError naming the file: disk full.
  virtual void add(size_t array, std::span<const float> rows) = 0;
  // Every array is whole.
  virtual void finish() = 0;
};

// The files for `blobs`: as many names as blobs are taken as they are; one name for several blobs is the HDF5
// file that holds all of them, or the folder of lmdb's or npy's. Throws UserError on another number of names.
std::vector<std::string> feature_paths(FeatureFormat format, const std::vector<std::string>& names,
                                       const std::vector<std::string>& blobs);

// Makes them, with the folder of the first. Throws UserError: a file that exists, unless `replace`; more than
// four axes for lmdb.
std::unique_ptr<FeatureStore> make_feature_store(FeatureFormat format, const std::vector<std::string>& paths,
                                                 const std::vector<FeatureArray>& arrays, bool replace);

}  // namespace cortado
