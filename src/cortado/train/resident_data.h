#pragma once

#include <map>
#include <string>
#include <vector>

#include "cortado/base/batch_part.h"
#include "cortado/exec/executor.h"

namespace cortado {

// A batch for each source layer that stays in memory: uniform numbers in [-1, 1) and, in labels, whole
// numbers below the number of classes of the layer that reads them. It is drawn when first asked for.
class ResidentData {
 public:
  explicit ResidentData(const Network& network);
  // The same as DataNetwork::sources().
  std::map<std::string, BatchSource> sources(const std::map<std::string, BatchPart>& parts = {});

 private:
  struct Top {
    Shape shape;
    Box box;              // that is drawn
    int64_t classes = 0;  // labels; 0: data
    std::vector<float> values;
  };
  struct LayerBatch {
    std::vector<Top> tops;
    bool drawn = false;
  };
  std::vector<const float*> batch(const std::string& layer);

  std::map<std::string, LayerBatch> layers_;
};

// Makes a value for ComparedTraining::data: batches drawn anew, and the same, for each training of the
// network, which must outlive it.
std::function<std::map<std::string, BatchSource>(const std::map<std::string, BatchPart>& parts)> drawn_anew(
    const Network& network);

}  // namespace cortado
