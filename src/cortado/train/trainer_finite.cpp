// What a training does about values that are infinite or not a number.
#include <cmath>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/train/gather.h"
#include "cortado/train/trainer.h"

namespace cortado {
namespace {

// Returns the first value that is not finite on any rank: of those in the earliest iteration, one in a
// gradient before one elsewhere, then the one in the parameter nearest the loss. All ranks call it; a
// parameter of the training net has the same number on all of them.
Optimizer::NonFinite first_of(Communicator* communicator, const Optimizer::NonFinite& mine) {
  constexpr int64_t gradient = int64_t{1} << 24, iteration = int64_t{1} << 25, last = int64_t{1} << 32;
  int64_t rank_of = 0;  // the larger, the earlier met
  if (mine.entry)
    rank_of = (last - mine.iteration) * iteration + (mine.gradient ? gradient : 0) + mine.entry.value() + 1;
  rank_of = largest_of_ranks(communicator, {rank_of}).front();
  if (rank_of == 0) return {};
  return {EntryIndex(rank_of % gradient - 1), rank_of % iteration >= gradient, last - rank_of / iteration};
}

}  // namespace

void require_finite(Executor& executor, double loss, const std::string& what) {
  if (executor.all_finite(loss)) return;
  const std::string where = executor.first_non_finite();
  throw UserError(
      fmt::format("{}: the first value that is not finite is in {}; check the weights and the data", what,
                  where.empty() ? "the sum of the losses" : where));
}

// Does the late updates. Ends the training where an update on any rank has met what is not finite.
void Trainer::settle() {
  train_executor_->settle();
  if (first_of(communicator_, optimizer_->non_finite()).entry) refuse_values();
}

// All ranks call it. The job may go on without this training, so none of its messages may be left under way.
void Trainer::refuse(int64_t iteration, const std::string& what) {
  train_executor_->settle();
  end_writing();
  std::string kept = "no snapshot was made yet";
  if (!started_from_.empty()) kept = "no snapshot was made since the training went on from " + started_from_;
  if (!last_snapshot_.empty()) kept = "the last snapshot is " + last_snapshot_;
  throw UserError(fmt::format("iteration {}: {}; {}; lower base_lr, or set warmup_iter or clip_gradients",
                              iteration, what, kept));
}

// Late updates of the iteration before may have met it first.
void Trainer::refuse_loss(double loss) {
  if (first_of(communicator_, optimizer_->non_finite()).entry) refuse_values();
  const std::string where = train_executor_->first_non_finite();
  // The sign of what is not a number may differ among the ranks.
  refuse(iteration_, fmt::format("the loss is {}; the first value that is not finite is in {}",
                                 std::isnan(loss) ? std::abs(loss) : loss,
                                 where.empty() ? "the sum of the losses" : where));
}

// All ranks call it; what any of them has met nearest the loss counts.
void Trainer::refuse_values() {
  const Optimizer::NonFinite first = first_of(communicator_, optimizer_->non_finite());
  if (!first.entry) {
    const std::string where = train_executor_->first_non_finite();
    refuse(iteration_, "the first value that is not finite is in " + where);
  }
  const auto& entry = parameters_.entries()[first.entry];
  refuse(first.iteration,
         fmt::format("the first value that is not finite is in {} parameter '{}'",
                     first.gradient ? "the gradient of" : "the updated weights or the solver's history of",
                     entry.name));
}

}  // namespace cortado
