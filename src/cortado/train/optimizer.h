#pragma once

#include <memory>
#include <vector>

#include "cortado/exec/parameters.h"
#include "cortado/train/solver_options.h"

namespace cortado {

// The solver at work on the parameters of one net: their history, and how a gradient becomes an update.
// Where nothing needs all gradients together, a parameter is updated as soon as its gradient is there.
class Optimizer {
 public:
  // `entries`: the train net's parameters in `parameters`, which must outlive the optimizer.
  Optimizer(const SolverOptions& options, ParameterStore& parameters, const std::vector<int>& entries);

  // One iteration: begin, then for each of iter_size batches gradient() once per parameter that wants one,
  // then end.
  void begin(int64_t iteration, double rate);
  void begin_batch(int batch) { batch_ = batch; }
  void gradient(int entry);
  void end();

  // History of a parameter in its memory order; null when it has none (not trained).
  float* history(int entry, int round) const;
  int rounds() const;  // tensors of history a trained parameter has

 private:
  struct Slot {
    int entry = -1;
    float* history[2] = {nullptr, nullptr};
    float* sum = nullptr;  // of the gradients of iter_size batches; null when iter_size is 1
  };

  bool defers_updates() const { return options_.clip_gradients > 0; }
  const float* gradient_of(const Slot& slot) const;
  void update(const Slot& slot, double gradient_scale);
  double clip_factor() const;

  SolverOptions options_;
  ParameterStore& parameters_;
  std::vector<Slot> slots_;
  std::vector<int> slot_of_entry_;  // -1: not trained
  Memory memory_;
  int64_t iteration_ = 0;
  double rate_ = 0;
  int batch_ = 0;
};

}  // namespace cortado
