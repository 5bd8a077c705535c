#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cortado/net/network.h"
#include "cortado/net/weights.h"

namespace cortado {

// Everything a training needs to go on as if it had never stopped. Tensors are global and in the file's
// order.
struct Snapshot {
  int64_t iteration = 0;       // iterations done
  int learning_rate_step = 0;  // Caffe's current_step
  std::string solver = "SGD";
  uint64_t seed = 1;
  bool reproducible = false;                 // trained so up to here; Caffe's files do not say it
  bool has_positions = false;                // false: Caffe's files, which do not keep them
  std::map<std::string, int64_t> positions;  // "train/data", "test0/data": next sample of each reader
  IndexedVector<ParameterIndex, Blob> parameters;
  std::vector<IndexedVector<ParameterIndex, Blob>> history;  // per round; empty blobs where not trained
};

}  // namespace cortado
