#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cortado/comm/communicator.h"
#include "cortado/exec/executor.h"
#include "cortado/exec/parameters.h"

namespace cortado {

// Says which ranks hold which slice of each parameter of the train net, and which elements of its memory each
// of them updates; the same at every rank. Ranks that hold the same slice are its replicas. Either each of
// them updates all of it, or (the parameter server, spread over devices) each its own range.
class ParameterCut {
 public:
  struct Holder {
    int rank = 0;
    Range updates;  // elements of the slice's memory
  };
  struct Piece {
    Box slice;
    int64_t elements = 0;         // in memory, padding included
    std::vector<Holder> holders;  // ascending
    bool owned() const;           // each holder updates a range of its own
  };
  // Per parameter the elements of its memory that this rank updates; nothing: all.
  using Updates = IndexedVector<ParameterIndex, std::optional<Range>>;

  // The only rank; it holds all parameters whole.
  ParameterCut(const ParameterStore& parameters, ParameterEntries entries);
  // `entries`: the train net's parameters in the store, in the net's order. All ranks call it.
  ParameterCut(Communicator& communicator, const ParameterStore& parameters, ParameterEntries entries,
               const Updates& updates = {});

  Communicator* communicator() const { return communicator_; }  // null: the only rank
  int rank() const { return communicator_ ? communicator_->rank() : 0; }
  const ParameterEntries& entries() const { return entries_; }
  // The distinct slices of parameter `p`, which tile it.
  const std::vector<Piece>& pieces(ParameterIndex p) const { return pieces_[p]; }
  // This rank's own slice; null where it holds none.
  const Piece* own_piece(ParameterIndex p) const;
  Range updates(ParameterIndex p) const;  // of this rank
  // True when every rank holds and updates the whole parameter.
  bool whole_everywhere(ParameterIndex p) const;
  // True when this rank adds the elements it updates to sums over all ranks, so that each is added once.
  bool counts(ParameterIndex p) const;

 private:
  void check(ParameterIndex p, const ParameterStore::Entry& entry) const;

  Communicator* communicator_ = nullptr;
  ParameterEntries entries_;
  IndexedVector<ParameterIndex, std::vector<Piece>> pieces_;
};

// How an executor's parameters are cut. `communicator` null: one rank. All ranks call it.
ParameterCut parameter_cut_of(const Executor& executor, Communicator* communicator);

}  // namespace cortado
