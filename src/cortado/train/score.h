#pragma once

#include <functional>
#include <vector>

#include "cortado/exec/executor.h"
#include "cortado/train/observer.h"

namespace cortado {

// What a net gives over many batches. Means; `seconds` of all of them.
struct Score {
  std::vector<OutputValue> outputs;
  double loss = 0;
  double seconds = 0;
};

// Runs that many batches and calls `each` with the outputs of every one. Throws UserError where the loss of
// one is not finite. All ranks call it.
Score score(Executor& executor, int batches,
            const std::function<void(int batch, const std::vector<OutputValue>&)>& each);

// {"iterations": 50, "loss": ..., "outputs": [{"name": ..., "value": ...}], "seconds": ...,
// "images_per_second": ...}, as text.
std::string score_json(const Score& score, int batches, double images_per_second);

}  // namespace cortado
