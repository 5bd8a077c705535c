// How a training writes snapshots and goes on from them.
#include <fmt/format.h>

#include "cortado/base/command_files.h"
#include "cortado/base/error.h"
#include "cortado/kernels/update.h"
#include "cortado/train/gather.h"
#include "cortado/train/learning_rate.h"
#include "cortado/train/trainer.h"

namespace cortado {

void Trainer::expect_snapshots() {
  if (expects_snapshots_) return;
  at_first_rank(communicator_, [&] {
    lock_prefix();
    return std::string();
  });
  expects_snapshots_ = true;
}

Snapshot Trainer::snapshot() const {
  Snapshot snapshot{.iteration = iteration_,
                    .learning_rate_step = learning_rate_step(solver_.learning_rate, iteration_),
                    .solver = solver_name(solver_.update.solver),
                    .seed = solver_.seed,
                    .reproducible = reproducible(),
                    .has_positions = true,
                    .positions = reader_positions()};
  snapshot.history.resize(static_cast<size_t>(optimizer_->rounds()));
  const ParameterCut& cut = optimizer_->cut();
  for (ParameterIndex p : indices(cut.entries())) {
    const auto& entry = parameters_.entries()[cut.entries()[p]];
    snapshot.parameters.push_back({entry.spec.shape, gather_parameter(cut, parameters_, p)});
    for (int round = 0; round < optimizer_->rounds(); ++round) {
      Blob blob;
      if (entry.wants_gradient) {
        const float* own = optimizer_->history(cut.entries()[p], round);
        blob = {entry.spec.shape, gather_history(cut, parameters_, p, own)};
      }
      snapshot.history[static_cast<size_t>(round)].push_back(std::move(blob));
    }
  }
  return snapshot;
}

std::map<std::string, int64_t> Trainer::reader_positions() const {
  std::map<std::string, int64_t> positions;
  for (const auto& [layer, position] : train_->positions()) positions["train/" + layer] = position;
  for (size_t net = 0; net < tests_.size(); ++net) {
    for (const auto& [layer, position] : tests_[net].data->positions()) {
      positions[fmt::format("test{}/{}", net, layer)] = position;
    }
  }
  std::vector<int64_t> values;
  for (const auto& [name, position] : positions) values.push_back(position);
  values = largest_of_ranks(communicator_, std::move(values));
  auto value = values.begin();
  for (auto& [name, position] : positions) position = *value++;
  return positions;
}

void Trainer::save() {
  // A snapshot may be asked for where none was to be expected.
  last_snapshot_ = write(solver_.snapshot_prefix, [&] { lock_prefix(); });
  last_snapshot_iteration_ = iteration_;
}

std::string Trainer::save_snapshot(const std::string& prefix) {
  std::unique_ptr<PrefixLock> lock;
  return write(prefix, [&] {
    check_folder_of("snapshot " + prefix, prefix);
    if (prefix == solver_.snapshot_prefix) return lock_prefix();
    lock = std::make_unique<PrefixLock>(prefix, notice_);
  });
}

std::string Trainer::write(const std::string& prefix, const std::function<void()>& lock) {
  settle();
  Snapshot whole = snapshot();
  return at_first_rank(communicator_, [&] {
    lock();
    std::string path = write_snapshot(prefix, solver_.snapshot_format, train_->loaded(), whole);
    notify_observers(
        [&](TrainingObserver& o) { o.snapshot(iteration_, path); });  // before any rank can be lost again
    return path;
  });
}

void Trainer::lock_prefix() {
  if (!lock_) lock_ = std::make_unique<PrefixLock>(solver_.snapshot_prefix, notice_);
}

Trainer::Restored Trainer::restore(const std::string& asked_for) {
  const auto [snapshot, path, fault] = read_sound_snapshot(
      asked_for, train_->network(), solver_name(solver_.update.solver), optimizer_->rounds());
  if (snapshot.has_positions && snapshot.seed != solver_.seed) {
    throw UserError(fmt::format("{}: was made with random_seed {}, the solver says {}; set random_seed to {}",
                                path, snapshot.seed, solver_.seed, snapshot.seed));
  }
  if (notice_ && snapshot.has_positions && snapshot.reproducible != reproducible())
    notice_(
        fmt::format("{}: was {}trained reproducibly, this training {}: from here on the weights are of "
                    "no other run",
                    path, snapshot.reproducible ? "" : "not ", reproducible() ? "is" : "is not"));
  iteration_ = last_snapshot_iteration_ = snapshot.iteration;
  started_from_ = path;
  const ParameterCut& cut = optimizer_->cut();
  for (ParameterIndex p : indices(snapshot.parameters)) {
    const EntryIndex entry = cut.entries()[p];
    parameters_.set_from_whole(entry, snapshot.parameters[p].values);
    for (int round = 0; round < optimizer_->rounds(); ++round) {
      const Blob& blob = snapshot.history[static_cast<size_t>(round)][p];
      if (blob.values.empty()) continue;
      take_history(cut, parameters_, p, blob.values, optimizer_->history(entry, round));
    }
  }
  parameters_.refresh();
  auto positions_of = [&](const std::string& prefix) {
    std::map<std::string, int64_t> positions;
    for (const auto& [name, position] : snapshot.positions) {
      if (name.starts_with(prefix)) positions[name.substr(prefix.size())] = position;
    }
    return positions;
  };
  train_->seek(positions_of("train/"), iteration_ * solver_.iter_size);
  for (size_t net = 0; net < tests_.size(); ++net)
    tests_[net].data->seek(positions_of(fmt::format("test{}/", net)), 0);
  return {path, fault};
}

}  // namespace cortado
