#include "cortado/train/parameter_cut.h"

#include <algorithm>
#include <cstring>

#include "cortado/base/error.h"

namespace cortado {
namespace {

// What one rank sends the others about one parameter.
struct Holding {
  Box slice;
  int64_t elements = 0;
  Range updates;
};

// Per parameter: elements, updates, axes of the slice (-1: not held) and their ranges.
std::vector<int64_t> describe(const ParameterStore& parameters, const ParameterEntries& entries,
                              const ParameterCut::Updates& updates) {
  std::vector<int64_t> words;
  for (ParameterIndex p : indices(entries)) {
    const auto& entry = parameters.entries()[entries[p]];
    bool part = p < updates.end_index() && updates[p];
    Range own = part ? *updates[p] : Range{0, entry.elements};
    words.insert(words.end(), {entry.elements, own.begin, own.end, entry.held ? entry.slice.rank() : -1});
    for (int axis = 0; entry.held && axis < entry.slice.rank(); ++axis) {
      words.insert(words.end(), {entry.slice[axis].begin, entry.slice[axis].end});
    }
  }
  return words;
}

// The next parameter of a rank's words; nothing where the rank holds none of it.
std::optional<Holding> next_holding(const int64_t*& word, const Shape& shape) {
  Holding holding{Box::whole(shape), word[0], {word[1], word[2]}};
  const int64_t axes = word[3];
  word += 4;
  if (axes < 0) return std::nullopt;
  ensure(axes == shape.rank(), "ranks disagree about a parameter's shape");
  for (int axis = 0; axis < axes; ++axis, word += 2) holding.slice[axis] = {word[0], word[1]};
  if (holding.slice.empty()) return std::nullopt;
  return holding;
}

void add_holding(std::vector<ParameterCut::Piece>& pieces, int rank, const Holding& holding) {
  auto same = [&](const ParameterCut::Piece& piece) { return piece.slice == holding.slice; };
  auto piece = std::find_if(pieces.begin(), pieces.end(), same);
  if (piece == pieces.end()) piece = pieces.insert(piece, {holding.slice, holding.elements, {}});
  ensure(piece->elements == holding.elements, "replicas of a slice lie in memory in different formats");
  piece->holders.push_back({rank, holding.updates});
}

}  // namespace

bool ParameterCut::Piece::owned() const {
  return std::any_of(holders.begin(), holders.end(), [&](const Holder& holder) {
    return holder.updates != Range{0, elements};
  });
}

ParameterCut::ParameterCut(const ParameterStore& parameters, ParameterEntries entries)
    : entries_(std::move(entries)) {
  for (ParameterIndex p : indices(entries_)) {
    const auto& entry = parameters.entries()[entries_[p]];
    pieces_.push_back({{entry.slice, entry.elements, {{0, {0, entry.elements}}}}});
    check(p, entry);
  }
}

ParameterCut::ParameterCut(Communicator& communicator, const ParameterStore& parameters,
                           ParameterEntries entries, const Updates& updates)
    : communicator_(&communicator), entries_(std::move(entries)), pieces_(entries_.size()) {
  const std::vector<int64_t> mine = describe(parameters, entries_, updates);
  const auto all = communicator.all_to_all_bytes(std::as_bytes(std::span(mine)));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    std::vector<int64_t> words(all[rank].size() / sizeof(int64_t));
    if (!words.empty()) std::memcpy(words.data(), all[rank].data(), all[rank].size());
    const int64_t* word = words.data();
    for (ParameterIndex p : indices(entries_)) {
      const Shape& shape = parameters.entries()[entries_[p]].spec.shape;
      if (auto holding = next_holding(word, shape)) add_holding(pieces_[p], static_cast<int>(rank), *holding);
    }
  }
  for (ParameterIndex p : indices(entries_)) check(p, parameters.entries()[entries_[p]]);
}

// The pieces tile the parameter, and the updates of each the piece.
void ParameterCut::check(ParameterIndex p, const ParameterStore::Entry& entry) const {
  int64_t total = 0;
  for (const Piece& piece : pieces_[p]) {
    total += piece.slice.shape().size();
    for (const Piece& other : pieces_[p])
      ensure(&piece == &other || piece.slice.intersect(other.slice).empty(), "slices of a parameter overlap");
    if (!piece.owned()) continue;
    std::vector<Range> ranges;
    for (const Holder& holder : piece.holders)
      if (holder.updates.size() > 0) ranges.push_back(holder.updates);
    std::sort(ranges.begin(), ranges.end(), [](Range a, Range b) { return a.begin < b.begin; });
    int64_t end = 0;
    for (Range range : ranges) {
      ensure(range.begin == end, "the owners of a parameter's elements do not tile it");
      end = range.end;
    }
    ensure(end == piece.elements, "the owners of a parameter's elements do not tile it");
  }
  ensure(total == entry.spec.shape.size(), "the slices of a parameter do not tile it");
}

const ParameterCut::Piece* ParameterCut::own_piece(ParameterIndex p) const {
  for (const Piece& piece : pieces_[p])
    for (const Holder& holder : piece.holders)
      if (holder.rank == rank()) return &piece;
  return nullptr;
}

Range ParameterCut::updates(ParameterIndex p) const {
  if (const Piece* piece = own_piece(p)) {
    for (const Holder& holder : piece->holders)
      if (holder.rank == rank()) return holder.updates;
  }
  return {};
}

bool ParameterCut::whole_everywhere(ParameterIndex p) const {
  if (!communicator_) return true;
  return pieces_[p].size() == 1 && !pieces_[p][0].owned() &&
         static_cast<int>(pieces_[p][0].holders.size()) == communicator_->size();
}

bool ParameterCut::counts(ParameterIndex p) const {
  const Piece* piece = own_piece(p);
  return piece && (piece->owned() || piece->holders.front().rank == rank());
}

ParameterCut parameter_cut_of(const Executor& executor, Communicator* communicator) {
  const ParameterStore& parameters = executor.parameters();
  const ParameterEntries& entries = executor.parameter_entries();
  if (!communicator) return ParameterCut(parameters, entries);
  ParameterCut::Updates updates(entries.size());
  for (ParameterIndex p : indices(entries)) {
    const Range range = executor.updated_elements(p);
    if (range.size() != parameters.entries()[entries[p]].elements) updates[p] = range;
  }
  return ParameterCut(*communicator, parameters, entries, updates);
}

}  // namespace cortado
