#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cortado/base/element_type.h"
#include "cortado/exec/parameters.h"
#include "cortado/train/iteration_keeper.h"
#include "cortado/train/parameter_cut.h"
#include "cortado/train/solver_options.h"

namespace cortado {

// The solver at work on the parameters of one net, or on the elements of them that this rank updates: their
// history, and how a gradient becomes an update. Where nothing needs all gradients together, a parameter is
// updated as soon as its gradient is there. Norms (clip_gradients, LARS) are those of whole parameters: where
// the ranks hold slices, their squares are summed over the ranks, once an iteration.
class Optimizer {
 public:
  // `entries`: the train net's parameters in `parameters`, which must outlive the optimizer; all whole.
  Optimizer(const SolverOptions& options, ParameterStore& parameters, const ParameterEntries& entries)
      : Optimizer(options, parameters, ParameterCut(parameters, entries)) {}
  // All ranks make it. Throws UserError when the solver is LARS and a parameter has several owners.
  Optimizer(const SolverOptions& options, ParameterStore& parameters, ParameterCut cut);

  // Says which gradient it is: of a batch (0 to iter_size - 1) of an iteration with its learning rate.
  struct Batch {
    int64_t iteration = 0;
    double rate = 0;
    int number = 0;
  };
  // Call take_gradient(), for each batch of an iteration, once per parameter that wants one and is held here;
  // then end_iteration() with the last batch, at the same time on all ranks.
  void take_gradient(EntryIndex entry, const Batch& batch);
  void end_iteration(const Batch& batch);
  // True when weights change in end_iteration() alone, once all gradients are there. Else take_gradient()
  // changes them, and may be late: after end_iteration().
  bool defers_updates() const { return options_.clip_gradients >= 0 || sums_norms_; }

  // True when norms are sums over ranks, in an order that depends on how many there are.
  bool sums_over_ranks() const { return sum_over_ranks_ != nullptr; }

  // The parameter whose update was the first to meet what is not finite: of all whose gradient is not, the
  // last in the net's order, where the backward pass begins; else the first whose weights or history are not.
  struct NonFinite {
    EntryIndex entry{};      // nowhere: all that was updated here is finite
    bool gradient = false;   // it is in the gradient
    int64_t iteration = -1;  // of the gradient
  };
  const NonFinite& non_finite();

  // On the host: lets `keeper` keep what each update replaces. It must outlive the updates.
  void keep_with(IterationKeeper* keeper) { keeper_ = keeper; }

  // History of the elements of a parameter that this rank updates, in its memory order; null when it has none
  // (not trained, or not held).
  float* history(EntryIndex entry, int round) const;
  int rounds() const;  // tensors of history a trained parameter has
  const ParameterCut& cut() const { return cut_; }

 private:
  struct Slot {
    EntryIndex entry{};
    Range updates;       // elements of its memory
    bool counts = true;  // they are added here to sums over all ranks
    int squares = -1;    // LARS: where in squares_ the weights' sum is, the gradient's after it; -1: all here
    float* history[2] = {nullptr, nullptr};
    float* sum = nullptr;  // of the gradients of iter_size batches; null when iter_size is 1
    int64_t bytes() const { return (bytes_of(updates.size(), ElementType::f32).count + 63) / 64 * 64; }
  };

  const ParameterStore::Entry& entry_of(const Slot& slot) const;
  void make_slots();
  void allocate();
  void* stream() const { return parameters_.device().queue().stream(); }
  template <typename T>
  T* reached(T* memory) const {  // by what is launched
    return parameters_.device().for_kernels(memory);
  }
  const float* gradient_of(const Slot& slot) const;
  void update(const Slot& slot, const Batch& batch, double gradient_scale);
  void note_non_finite(const Slot& slot, const Batch& batch, bool in_gradient);
  void add_gradient(const Slot& slot, const Batch& batch);
  void square_there();
  void square_own(std::span<const double> there);
  void sum_squares();
  double clip_factor() const;

  SolverOptions options_;
  ParameterStore& parameters_;
  ParameterCut cut_;
  std::vector<Slot> slots_;
  IndexedVector<EntryIndex, int> slot_of_entry_;  // -1: not trained here
  device::Memory memory_;
  NonFinite non_finite_;
  IterationKeeper* keeper_ = nullptr;  // null: nothing is kept
  // Of a GPU: per slot, in `memory_`, whether an update met what is not finite, and two sums of squares; the
  // memory that sums need; and the last update's batch.
  float* met_ = nullptr;
  std::byte *squares_there_ = nullptr, *scratch_ = nullptr;
  std::vector<Batch> last_;
  bool sums_norms_ = false;      // LARS needs sums over the ranks
  std::vector<double> squares_;  // [0]: of all gradients; then of each parameter that LARS needs summed
  std::unique_ptr<Transmission> sum_over_ranks_;  // of squares_; null when all is whole everywhere
};

}  // namespace cortado
