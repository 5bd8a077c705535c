#pragma once

#include <map>
#include <string>
#include <vector>

#include "cortado/app/common.h"
#include "cortado/exec/executor.h"
#include "cortado/net/net_file.h"

namespace cortado {

// The network that the options name, its data replaced: shapes of source layers come from the layer's own
// options, else from --input-shape, else from its database or list, else (no such file) from its crop size.
// Throws UserError when none of them tells.
LoadedNetwork load_without_data(const ModelOptions& options, Phase otherwise);

// A batch for each source layer that stays in memory: uniform numbers in [-1, 1) and, in labels, whole
// numbers below the number of classes of the layer that reads them.
class ResidentData {
 public:
  explicit ResidentData(const Network& network);
  std::map<std::string, BatchSource> sources() const;  // must not outlive this object

 private:
  std::map<std::string, std::vector<std::vector<float>>> batches_;
};

}  // namespace cortado
