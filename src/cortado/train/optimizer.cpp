#include "cortado/train/optimizer.h"

#include <algorithm>
#include <cmath>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/native/update.h"
#include "cortado/train/update.h"

namespace cortado {
namespace {

int64_t aligned_bytes(const ParameterStore::Entry& entry) {
  return (entry.elements * static_cast<int64_t>(sizeof(float)) + 63) / 64 * 64;
}

}  // namespace

Optimizer::Optimizer(const SolverOptions& options, ParameterStore& parameters,
                     const std::vector<int>& entries)
    : options_(options), parameters_(parameters), slot_of_entry_(parameters.entries().size(), -1) {
  int tensors = rounds() + (options_.iter_size > 1 ? 1 : 0);
  Bytes total;
  for (int index : entries) {
    const auto& entry = parameters_.entries()[static_cast<size_t>(index)];
    int& slot = slot_of_entry_[static_cast<size_t>(index)];
    if (!entry.wants_gradient || slot >= 0) continue;
    slot = static_cast<int>(slots_.size());
    slots_.push_back({.entry = index});
    total.count += tensors * aligned_bytes(entry);
  }
  memory_ = Memory(total);
  int64_t offset = 0;
  for (Slot& slot : slots_) {
    int64_t bytes = aligned_bytes(parameters_.entries()[static_cast<size_t>(slot.entry)]);
    for (int round = 0; round < rounds(); ++round)
      slot.history[round] = memory_.floats(offset + round * bytes);
    if (options_.iter_size > 1) slot.sum = memory_.floats(offset + rounds() * bytes);
    offset += tensors * bytes;
  }
}

int Optimizer::rounds() const { return history_count(options_.update.solver); }

float* Optimizer::history(int entry, int round) const {
  int slot = slot_of_entry_[static_cast<size_t>(entry)];
  return slot < 0 ? nullptr : slots_[static_cast<size_t>(slot)].history[round];
}

void Optimizer::begin(int64_t iteration, double rate) {
  iteration_ = iteration;
  rate_ = rate;
}

const float* Optimizer::gradient_of(const Slot& slot) const {
  return slot.sum ? slot.sum : parameters_.entries()[static_cast<size_t>(slot.entry)].gradient;
}

void Optimizer::gradient(int index) {
  const Slot& slot = slots_[static_cast<size_t>(slot_of_entry_[static_cast<size_t>(index)])];
  const auto& entry = parameters_.entries()[static_cast<size_t>(index)];
  if (slot.sum && batch_ == 0) {
    parallel_ranges(entry.elements, [&](int64_t begin, int64_t end) {
      std::copy(entry.gradient + begin, entry.gradient + end, slot.sum + begin);
    });
  } else if (slot.sum) {
    native::add(slot.sum, slot.sum, entry.gradient, entry.elements);
  }
  if (batch_ + 1 == options_.iter_size && !defers_updates()) update(slot, 1);
}

// Caffe clips the sum of the gradients, before it is divided by iter_size.
double Optimizer::clip_factor() const {
  double squares = 0;
  for (const Slot& slot : slots_) {
    squares += native::sum_of_squares(gradient_of(slot),
                                      parameters_.entries()[static_cast<size_t>(slot.entry)].elements);
  }
  double norm = std::sqrt(squares);
  return norm > options_.clip_gradients ? options_.clip_gradients / norm : 1;
}

void Optimizer::end() {
  if (!defers_updates()) return;
  double factor = clip_factor();
  for (const Slot& slot : slots_) update(slot, factor);
}

void Optimizer::update(const Slot& slot, double gradient_scale) {
  const auto& entry = parameters_.entries()[static_cast<size_t>(slot.entry)];
  UpdateArguments arguments{
      entry.value, gradient_of(slot), {slot.history[0], slot.history[1]}, entry.elements};
  update_parameter(options_.update, arguments,
                   {.rate = rate_ * entry.lr_mult,
                    .decay = options_.update.weight_decay * entry.decay_mult,
                    .gradient_scale = gradient_scale / options_.iter_size,
                    .iteration = iteration_,
                    .layer_wise = entry.spec.shape.rank() > 1});
}

}  // namespace cortado
