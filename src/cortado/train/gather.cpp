#include "cortado/train/gather.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <set>

#include "cortado/base/error.h"
#include "cortado/device/host_view.h"

namespace cortado {
namespace {

// Gives a slice in canonical order, in that memory.
using Canonical = std::function<std::vector<float>(std::vector<float> memory)>;

// Puts the slices together at rank 0. `canonical` is called at the first holder of each slice.
std::vector<float> gather_slices(const ParameterCut& cut, const ParameterStore& parameters, ParameterIndex p,
                                 std::vector<float> memory, const Canonical& canonical) {
  if (cut.rank() != 0) {
    const ParameterCut::Piece* own = cut.own_piece(p);
    if (own && own->holders.front().rank == cut.rank()) cut.communicator()->send(0, canonical({}));
    return {};
  }
  const Shape& shape = parameters.entries()[cut.entries()[p]].spec.shape;
  const Box all = Box::whole(shape);
  const bool in_one_piece = cut.pieces(p).size() == 1;
  std::vector<float> whole = in_one_piece ? std::vector<float>() : std::move(memory);
  for (const ParameterCut::Piece& piece : cut.pieces(p)) {
    std::vector<float> values;
    if (piece.holders.front().rank == 0) {
      values = canonical(in_one_piece ? std::move(memory) : std::vector<float>());
    } else {
      values.resize(static_cast<size_t>(piece.slice.shape().size()));
      cut.communicator()->receive(piece.holders.front().rank, values);
    }
    if (piece.slice == all) return values;
    whole.resize(static_cast<size_t>(shape.size()));
    copy_common(piece.slice, values.data(), all, whole.data());
  }
  return whole;
}

// The array of a whole slice, in memory order, at its first holder; its other owners send their elements.
std::vector<float> collect_owned(const ParameterCut& cut, const ParameterCut::Piece& piece, Range updates,
                                 std::span<const float> mine) {
  const int first = piece.holders.front().rank;
  if (cut.rank() != first) {
    if (!mine.empty()) cut.communicator()->send(first, mine);
    return {};
  }
  std::vector<float> all(static_cast<size_t>(piece.elements));
  std::copy(mine.begin(), mine.end(), all.begin() + updates.begin);
  for (const ParameterCut::Holder& holder : piece.holders) {
    if (holder.rank == first || holder.updates.size() == 0) continue;
    cut.communicator()->receive(holder.rank,
                                std::span(all).subspan(static_cast<size_t>(holder.updates.begin),
                                                       static_cast<size_t>(holder.updates.size())));
  }
  return all;
}

}  // namespace

std::vector<float> gather_parameter(const ParameterCut& cut, const ParameterStore& parameters,
                                    ParameterIndex p, std::vector<float> memory) {
  return gather_slices(cut, parameters, p, std::move(memory), [&](std::vector<float> reused) {
    return parameters.canonical(cut.entries()[p], std::move(reused));
  });
}

std::vector<float> gather_history(const ParameterCut& cut, const ParameterStore& parameters, ParameterIndex p,
                                  const float* own, std::vector<float> memory) {
  const ParameterCut::Piece* piece = cut.own_piece(p);
  const device::HostView mine(parameters.device(), own, own ? cut.updates(p).size() : 0);
  std::span<const float> values_here = mine.values();
  std::vector<float> collected;
  if (piece && piece->owned())
    values_here = collected = collect_owned(cut, *piece, cut.updates(p), mine.values());
  return gather_slices(cut, parameters, p, std::move(memory), [&](std::vector<float> values) {
    values.resize(static_cast<size_t>(piece->slice.shape().size()));
    parameters.to_canonical(cut.entries()[p], values_here.data(), values.data());
    return values;
  });
}

void take_history(const ParameterCut& cut, const ParameterStore& parameters, ParameterIndex p,
                  std::span<const float> whole, float* own) {
  const ParameterCut::Piece* piece = cut.own_piece(p);
  if (!piece || !own) return;
  const EntryIndex entry = cut.entries()[p];
  const bool is_whole = parameters.entries()[entry].canonical_size() == std::ssize(whole);
  const std::vector<float> slice = is_whole ? std::vector<float>() : parameters.slice_of(entry, whole);
  std::vector<float> all(static_cast<size_t>(piece->elements));
  parameters.from_canonical(entry, is_whole ? whole.data() : slice.data(), all.data());
  const Range updates = cut.updates(p);
  device::write(
      parameters.device(), own,
      std::span(all).subspan(static_cast<size_t>(updates.begin), static_cast<size_t>(updates.size())));
}

std::string at_first_rank(Communicator* communicator, const std::function<std::string()>& action) {
  if (!communicator) return action();
  enum Outcome : char { done, user_error, other_error };
  std::string message(1, done);
  std::exception_ptr thrown;
  if (communicator->rank() == 0) {
    try {
      message += action();
    } catch (const UserError& error) {
      thrown = std::current_exception();
      message = std::string(1, user_error) + error.what();
    } catch (const std::exception& error) {
      thrown = std::current_exception();
      message = std::string(1, other_error) + error.what();
    }
  }
  const auto all = communicator->all_to_all_bytes(std::as_bytes(std::span(message)));
  if (thrown) std::rethrow_exception(thrown);
  const std::string text(reinterpret_cast<const char*>(all[0].data()), all[0].size());
  if (text[0] == user_error) throw UserError(text.substr(1));
  if (text[0] == other_error) throw PeerError("rank 0: " + text.substr(1));
  return text.substr(1);
}

std::vector<int64_t> largest_of_ranks(Communicator* communicator, std::vector<int64_t> values) {
  if (!communicator) return values;
  for (const auto& bytes : communicator->all_to_all_bytes(std::as_bytes(std::span(values)))) {
    ensure(bytes.size() == values.size() * sizeof(int64_t), "ranks have different numbers of readers");
    std::vector<int64_t> theirs(values.size());
    if (!theirs.empty()) std::memcpy(theirs.data(), bytes.data(), bytes.size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::max(values[i], theirs[i]);
  }
  return values;
}

int64_t count_over_ranks(Communicator* communicator, std::span<const std::pair<int64_t, int64_t>> own) {
  std::vector<int64_t> numbers;
  for (const auto& [first, second] : own) numbers.insert(numbers.end(), {first, second});
  std::vector<std::vector<std::byte>> all;
  const auto bytes = std::as_bytes(std::span<const int64_t>(numbers));
  if (communicator)
    all = communicator->all_to_all_bytes(bytes);
  else
    all.emplace_back(bytes.begin(), bytes.end());
  std::set<std::pair<int64_t, int64_t>> different;
  for (const auto& theirs : all) {
    numbers.resize(theirs.size() / sizeof(int64_t));
    if (!numbers.empty()) std::memcpy(numbers.data(), theirs.data(), theirs.size());
    for (size_t i = 0; i + 1 < numbers.size(); i += 2) different.emplace(numbers[i], numbers[i + 1]);
  }
  return static_cast<int64_t>(different.size());
}

void check_command_files(const CommandFiles& files, Communicator& job) {
  at_first_rank(&job, [&] {
    files.check();
    return std::string();
  });
}

}  // namespace cortado
