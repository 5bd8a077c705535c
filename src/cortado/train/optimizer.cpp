#include "cortado/train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <mutex>
#include <numeric>
#include <thread>

#include "cortado/base/activity.h"
#include "cortado/base/denormals.h"
#include "cortado/base/error.h"
#include "cortado/device/host_view.h"
#include "cortado/kernels/arrays.h"
#include "cortado/kernels/gpu/passes.h"
#include "cortado/kernels/update.h"

namespace cortado {
namespace {

bool layer_wise(const ParameterStore::Entry& entry) { return entry.spec.shape.rank() > 1; }

}  // namespace

Optimizer::Optimizer(const SolverOptions& options, ParameterStore& parameters, ParameterCut cut)
    : options_(options),
      parameters_(parameters),
      cut_(std::move(cut)),
      slot_of_entry_(parameters.entries().size(), -1),
      squares_(1) {
  make_slots();
  allocate();
}

const ParameterStore::Entry& Optimizer::entry_of(const Slot& slot) const {
  return parameters_.entries()[slot.entry];
}

// Goes through the same parameters on every rank. Makes slots only for those that this rank holds.
void Optimizer::make_slots() {
  const bool lars = options_.update.solver == UpdateOptions::Solver::lars;
  bool sums = false;
  for (ParameterIndex p : indices(cut_.entries())) {
    const EntryIndex index = cut_.entries()[p];
    const auto& entry = parameters_.entries()[index];
    int& number = slot_of_entry_[index];
    if (!entry.wants_gradient || number >= 0) continue;
    Slot slot{.entry = index, .updates = cut_.updates(p), .counts = cut_.counts(p)};
    if (!cut_.whole_everywhere(p)) {
      sums = true;
      if (lars && layer_wise(entry)) {
        for (const auto& piece : cut_.pieces(p)) {
          if (!piece.owned()) continue;
          throw UserError(
              fmt::format("parameter {}: the LARS solver needs the norm of its whole gradient, which no rank "
                          "has where the "
                          "gradient sum is 'owner'; choose 'allreduce' for this layer, or another solver",
                          entry.name));
        }
        slot.squares = static_cast<int>(squares_.size());
        squares_.resize(squares_.size() + 2);
        sums_norms_ = true;
      }
    }
    if (!entry.held) continue;
    number = static_cast<int>(slots_.size());
    slots_.push_back(slot);
  }
  if (!sums)
    for (Slot& slot : slots_) slot.counts = true;
  if (!sums || !defers_updates()) return;
  std::vector<int> everyone(static_cast<size_t>(cut_.communicator()->size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  sum_over_ranks_ = cut_.communicator()->allreduce(everyone, squares_.data(), std::ssize(squares_));
}

void Optimizer::allocate() {
  const int tensors = history_tensors(options_);
  Bytes total;
  for (const Slot& slot : slots_) total.count += tensors * slot.bytes();
  const Bytes flags = bytes_of(std::ssize(slots_), ElementType::f32);
  const int64_t at_doubles = total.count + (flags.count + 63) / 64 * 64;
  const int64_t squares = 2 * std::ssize(slots_) * int64_t{sizeof(double)};
  if (parameters_.device().runs_gpu_work()) total = Bytes{at_doubles + squares} + gpu::update_scratch();
  memory_ = device::Memory(total, parameters_.device());
  int64_t offset = 0;
  for (Slot& slot : slots_) {
    for (int round = 0; round < rounds(); ++round)
      slot.history[round] = memory_.floats(offset + round * slot.bytes());
    if (options_.iter_size > 1) slot.sum = memory_.floats(offset + rounds() * slot.bytes());
    offset += tensors * slot.bytes();
  }
  if (!parameters_.device().runs_gpu_work()) return;
  met_ = memory_.floats(offset);
  squares_there_ = memory_.data() + at_doubles;
  scratch_ = squares_there_ + squares;
  last_.resize(slots_.size());
}

int Optimizer::rounds() const { return history_count(options_.update.solver); }

float* Optimizer::history(EntryIndex entry, int round) const {
  int slot = slot_of_entry_[entry];
  return slot < 0 ? nullptr : slots_[static_cast<size_t>(slot)].history[round];
}

// Returns the gradient, summed over iter_size batches, of the elements that this rank updates.
const float* Optimizer::gradient_of(const Slot& slot) const {
  return reached(slot.sum ? slot.sum : entry_of(slot).gradient + slot.updates.begin);
}

void Optimizer::take_gradient(EntryIndex index, const Batch& batch) {
  const FlushedDenormals no_denormals;
  const Slot& slot = slots_[static_cast<size_t>(slot_of_entry_[index])];
  if (met_) last_[static_cast<size_t>(slot_of_entry_[index])] = batch;
  parameters_.device().queue().launch([this, &slot, batch] { add_gradient(slot, batch); });
}

void Optimizer::add_gradient(const Slot& slot, const Batch& batch) {
  const float* gradient = reached(entry_of(slot).gradient + slot.updates.begin);
  float* const sum = reached(slot.sum);
  if (sum && met_) {
    const float* const both[] = {sum, gradient};  // of a first batch the gradient alone
    gpu::sum(stream(), sum, std::span(both).subspan(batch.number == 0 ? 1 : 0), slot.updates.size());
  } else if (sum && batch.number == 0) {
    arrays::copy(sum, gradient, slot.updates.size());
  } else if (sum) {
    arrays::add(sum, sum, gradient, slot.updates.size());
  }
  if (batch.number + 1 == options_.iter_size && !defers_updates()) update(slot, batch, 1);
}

// Starts the sums of squares of every slot's gradient and weights on a GPU.
void Optimizer::square_there() {
  auto* squares = reinterpret_cast<double*>(reached(squares_there_));
  for (const Slot& slot : slots_) {
    const int64_t count = slot.updates.size();
    gpu::sum_of_squares(stream(), gradient_of(slot), count, reached(scratch_), squares++);
    const float* weights = reached(entry_of(slot).value + slot.updates.begin);
    if (slot.squares >= 0) gpu::sum_of_squares(stream(), weights, count, reached(scratch_), squares);
    ++squares;
  }
}

// Sets `squares_` to this rank's addends: the sums over the slots that count here. `there`: those of
// square_there(); else they are computed here.
void Optimizer::square_own(std::span<const double> there) {
  std::fill(squares_.begin(), squares_.end(), 0.0);
  for (size_t s = 0; s < slots_.size(); ++s) {
    const Slot& slot = slots_[s];
    if (!slot.counts) continue;
    const int64_t count = slot.updates.size();
    const double gradient = there.empty() ? arrays::sum_of_squares(gradient_of(slot), count) : there[2 * s];
    squares_[0] += gradient;
    if (slot.squares < 0) continue;
    const float* weights = reached(entry_of(slot).value + slot.updates.begin);
    squares_[static_cast<size_t>(slot.squares)] =
        there.empty() ? arrays::sum_of_squares(weights, count) : there[2 * s + 1];
    squares_[static_cast<size_t>(slot.squares) + 1] = gradient;
  }
}

// Sets `squares_` to the sums over the slots of all ranks. All ranks call it.
void Optimizer::sum_squares() {
  device::Queue& queue = parameters_.device().queue();
  std::vector<double> there(met_ ? 2 * slots_.size() : 0);
  if (there.empty()) {
    queue.launch([this] { square_own({}); });
  } else {
    queue.launch([this] { square_there(); });
    queue.copy_out(reinterpret_cast<std::byte*>(there.data()), squares_there_,
                   {std::ssize(there) * int64_t{sizeof(double)}});
  }
  queue.finish();
  if (!there.empty()) square_own(there);
  if (!sum_over_ranks_) return;
  const ActivityScope waiting("the sum of squares over all ranks");
  sum_over_ranks_->start();
  while (!sum_over_ranks_->test()) std::this_thread::yield();
}

// Caffe clips the sum of the gradients, before it is divided by iter_size.
double Optimizer::clip_factor() const {
  if (options_.clip_gradients < 0) return 1;
  double norm = std::sqrt(squares_[0]);
  return norm > options_.clip_gradients ? options_.clip_gradients / norm : 1;
}

void Optimizer::end_iteration(const Batch& batch) {
  if (!defers_updates()) return;
  const FlushedDenormals no_denormals;
  sum_squares();
  double factor = clip_factor();
  device::Queue& queue = parameters_.device().queue();
  for (const Slot& slot : slots_) queue.launch([this, &slot, batch, factor] { update(slot, batch, factor); });
  queue.finish();
}

void Optimizer::update(const Slot& slot, const Batch& batch, double gradient_scale) {
  std::unique_lock<std::mutex> changing;
  if (keeper_) changing = keeper_->before_update(slot.entry, batch.iteration);
  const auto& entry = entry_of(slot);
  UpdateArguments arguments{reached(entry.value + slot.updates.begin),
                            gradient_of(slot),
                            {reached(slot.history[0]), reached(slot.history[1])},
                            slot.updates.size()};
  UpdateStep step{.rate = batch.rate * entry.lr_mult,
                  .decay = options_.update.weight_decay * entry.decay_mult,
                  .gradient_scale = gradient_scale / options_.iter_size,
                  .iteration = batch.iteration,
                  .layer_wise = layer_wise(entry)};
  if (slot.squares >= 0) {
    const double* sums = &squares_[static_cast<size_t>(slot.squares)];
    step.squares = SquareSums{sums[0], sums[1]};
  }
  if (met_)
    gpu::update_parameter(stream(), options_.update, arguments, step, reached(met_ + (&slot - slots_.data())),
                          reached(scratch_));
  else if (!update_parameter(options_.update, arguments, step))
    note_non_finite(slot, batch, arrays::first_non_finite(gradient_of(slot), slot.updates.size()) >= 0);
}

const Optimizer::NonFinite& Optimizer::non_finite() {
  if (!met_ || slots_.empty()) return non_finite_;
  device::DeviceRuntime& device = parameters_.device();
  const device::HostView met(device, met_, std::ssize(slots_));
  for (size_t s = 0; s < slots_.size(); ++s) {
    if (met.values()[s] == 0) continue;
    const Slot& slot = slots_[s];
    float* const own = slot.sum ? slot.sum : entry_of(slot).gradient + slot.updates.begin;
    const device::HostView gradient(device, own, slot.updates.size());
    note_non_finite(slot, last_[s],
                    arrays::first_non_finite(gradient.values().data(), slot.updates.size()) >= 0);
  }
  return non_finite_;
}

void Optimizer::note_non_finite(const Slot& slot, const Batch& batch, bool gradient) {
  const NonFinite& known = non_finite_;
  const bool nearer_the_loss = gradient && (!known.gradient || slot.entry > known.entry);
  if (known.entry && (known.iteration < batch.iteration || !nearer_the_loss)) return;
  non_finite_ = {slot.entry, gradient, batch.iteration};
}

}  // namespace cortado
