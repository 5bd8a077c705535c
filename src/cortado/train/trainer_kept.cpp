// How a training keeps its last complete iteration, for a job that loses a rank.
#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "cortado/base/error.h"
#include "cortado/train/kept_state.h"
#include "cortado/train/snapshot_tensors.h"
#include "cortado/train/trainer.h"

namespace cortado {
namespace {

// The first of the ranks that holds the piece.
std::optional<int> first_holder(const ParameterCut::Piece& piece, const std::vector<int>& ranks) {
  for (const ParameterCut::Holder& holder : piece.holders)
    if (std::ranges::find(ranks, holder.rank) != ranks.end()) return holder.rank;
  return std::nullopt;
}

// The ranks among `left` that write a part: the first holder of each slice. Throws UserError where a slice
// has none.
std::vector<int> writers(const ParameterCut& cut, const ParameterStore& parameters,
                         const std::vector<int>& left) {
  std::set<int> ranks;
  for (ParameterIndex p : indices(cut.entries()))
    for (const ParameterCut::Piece& piece : cut.pieces(p)) {
      const auto rank = first_holder(piece, left);
      if (!rank)
        throw UserError(fmt::format("none of them has the slice {} of parameter '{}'", piece.slice.text(),
                                    parameters.entries()[cut.entries()[p]].name));
      ranks.insert(*rank);
    }
  return {ranks.begin(), ranks.end()};
}

}  // namespace

// A rank that reads nothing of a data set does not know its position in it.
std::string Trainer::why_none_is_kept() const {
  if (&parameters_.device() != &device::host()) return "they lie in the memory of GPUs";
  const auto reads_all = [](const Executor& executor) {
    return std::ranges::none_of(executor.program().samples(),
                                [](const auto& samples) { return samples.second.size() == 0; });
  };
  bool reads = reads_all(*train_executor_);
  for (const TestNet& test : tests_) reads &= reads_all(*test.executor);
  if (!reads) return "a batch has fewer samples than there are ranks";
  const ParameterCut& cut = optimizer_->cut();
  for (ParameterIndex p : indices(cut.entries()))
    for (const ParameterCut::Piece& piece : cut.pieces(p))
      if (piece.owned() || piece.holders.size() < 2)
        return fmt::format("each has parts of parameter '{}' that no other has",
                           parameters_.entries()[cut.entries()[p]].name);
  return "";
}

void Trainer::keep_iterations() {
  none_kept_ = why_none_is_kept();
  if (communicator_->sum(none_kept_.empty() ? 0 : 1) > 0) {
    if (none_kept_.empty()) none_kept_ = "another rank cannot keep any";
    return;
  }
  std::vector<IterationKeeper::Updated> updated;
  std::vector<IterationKeeper::Written> written;
  for (EntryIndex index : std::set(optimizer_->cut().entries().begin(), optimizer_->cut().entries().end())) {
    const auto& entry = parameters_.entries()[index];
    if (!entry.held) continue;
    if (!entry.spec.learnable) written.push_back({index, entry.value, entry.elements});
    if (!entry.wants_gradient) continue;
    updated.push_back({index, {entry.value}, entry.elements});
    for (int round = 0; round < optimizer_->rounds(); ++round)
      updated.back().arrays.push_back(optimizer_->history(index, round));
  }
  keeper_ =
      std::make_unique<IterationKeeper>(iteration_, std::move(updated), std::move(written), own_positions());
  optimizer_->keep_with(keeper_.get());
}

std::optional<IterationKeeper::Held> Trainer::hold_still() const {
  if (!keeper_) return std::nullopt;
  return keeper_->hold_still();
}

std::string Trainer::write_kept(int64_t iteration, const std::vector<int>& ranks) const {
  const ParameterCut& cut = optimizer_->cut();
  KeptPart part{.rank = cut.rank(), .ranks = writers(cut, parameters_, ranks), .state = {}, .slices = {}};
  if (std::ranges::find(part.ranks, part.rank) == part.ranks.end()) return "";
  describe_state(part.state, iteration);
  part.state.positions = keeper_->positions(iteration);
  for (ParameterIndex p : indices(cut.entries())) {
    const ParameterCut::Piece* piece = cut.own_piece(p);
    if (!piece || first_holder(*piece, ranks) != part.rank) continue;
    const EntryIndex index = cut.entries()[p];
    const auto& entry = parameters_.entries()[index];
    const std::string& name = train_->network().parameters()[p].name;
    const int arrays = 1 + (entry.wants_gradient ? optimizer_->rounds() : 0);
    for (int number = 0; number < arrays; ++number) {
      const float* kept = keeper_->array(index, number, iteration);
      std::vector<float> values(static_cast<size_t>(entry.canonical_size()));
      parameters_.to_canonical(index, kept ? kept : entry.value, values.data());
      part.slices.push_back(
          {number == 0 ? name : history_name(number - 1, name), piece->slice, std::move(values)});
    }
  }
  return write_kept_part(solver_.snapshot_prefix, train_->network(), std::move(part));
}

}  // namespace cortado
