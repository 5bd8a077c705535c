// How a training writes snapshots and goes on from them.
#include <fmt/format.h>

#include "cortado/base/command_files.h"
#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/kernels/update.h"
#include "cortado/train/gather.h"
#include "cortado/train/learning_rate.h"
#include "cortado/train/snapshot_names.h"
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

// All but tensors and positions.
void Trainer::describe_state(Snapshot& to, int64_t iteration) const {
  to.iteration = iteration;
  to.learning_rate_step = learning_rate_step(solver_.learning_rate, iteration);
  to.solver = solver_name(solver_.update.solver);
  to.seed = solver_.seed;
  to.reproducible = reproducible();
  to.has_positions = true;
}

void Trainer::copy_state(Snapshot& to) const {
  describe_state(to, iteration_);
  to.positions = reader_positions();
  const ParameterCut& cut = optimizer_->cut();
  const size_t count = cut.entries().size();
  to.parameters.resize(count);
  to.history.resize(static_cast<size_t>(optimizer_->rounds()));
  for (auto& round : to.history) round.resize(count);
  for (ParameterIndex p : indices(cut.entries())) {
    const auto& entry = parameters_.entries()[cut.entries()[p]];
    Blob& weights = to.parameters[p];
    weights = {entry.spec.shape, gather_parameter(cut, parameters_, p, std::move(weights.values))};
    for (int round = 0; round < optimizer_->rounds(); ++round) {
      if (!entry.wants_gradient) continue;
      Blob& history = to.history[static_cast<size_t>(round)][p];
      const float* own = optimizer_->history(cut.entries()[p], round);
      history = {entry.spec.shape, gather_history(cut, parameters_, p, own, std::move(history.values))};
    }
  }
}

std::map<std::string, int64_t> Trainer::own_positions() const {
  std::map<std::string, int64_t> positions;
  for (const auto& [layer, position] : train_->positions()) positions["train/" + layer] = position;
  for (size_t net = 0; net < tests_.size(); ++net) {
    for (const auto& [layer, position] : tests_[net].data->positions()) {
      positions[fmt::format("test{}/{}", net, layer)] = position;
    }
  }
  return positions;
}

std::map<std::string, int64_t> Trainer::reader_positions() const {
  std::map<std::string, int64_t> positions = own_positions();
  std::vector<int64_t> values;
  for (const auto& [name, position] : positions) values.push_back(position);
  values = largest_of_ranks(communicator_, std::move(values));
  auto value = values.begin();
  for (auto& [name, position] : positions) position = *value++;
  return positions;
}

// Waits for the snapshot before, takes a copy of the state, and goes on while that is written.
void Trainer::save() {
  end_writing();
  settle();
  copy_state(written_);
  at_first_rank(communicator_, [&] {
    lock_prefix();  // a snapshot may be asked for where none was to be expected
    writer_.begin([this] {
      std::string path =
          write_snapshot(solver_.snapshot_prefix, solver_.snapshot_format, train_->loaded(), written_);
      notify_observers([&](TrainingObserver& o) { o.snapshot_complete(path); });
      return path;
    });
    return std::string();
  });
  last_snapshot_iteration_ = iteration_;
}

// Throws what writing threw.
void Trainer::announce_snapshot() {
  last_snapshot_ = writer_.finish();
  const std::optional<SnapshotName> name = parse_snapshot_name(last_snapshot_);
  ensure(name.has_value(), "a snapshot is named by its iteration");
  notify_observers([&](TrainingObserver& o) { o.snapshot(name->iteration, last_snapshot_); });
}

// Waits for the snapshot that is being written, if there is one, and throws what writing it threw. All ranks
// call it; they know the last snapshot from then on.
void Trainer::end_writing() {
  last_snapshot_ = at_first_rank(communicator_, [&] {
    if (writer_.has_one()) announce_snapshot();
    return last_snapshot_;
  });
}

std::string Trainer::save_snapshot(const std::string& prefix) {
  settle();
  Snapshot whole;
  copy_state(whole);
  return at_first_rank(communicator_, [&] {
    check_folder_of("snapshot " + prefix, prefix);
    std::unique_ptr<PrefixLock> lock;
    if (prefix == solver_.snapshot_prefix)
      lock_prefix();
    else
      lock = std::make_unique<PrefixLock>(prefix, notice_);
    std::string path = write_snapshot(prefix, solver_.snapshot_format, train_->loaded(), whole);
    notify_observers([&](TrainingObserver& o) { o.snapshot(iteration_, path); });
    return path;
  });
}

void Trainer::lock_prefix() {
  if (!lock_) lock_ = std::make_unique<PrefixLock>(solver_.snapshot_prefix, notice_);
}

// At the first rank alone.
void Trainer::notify_user(const std::string& text) const {
  if (notice_ && (!communicator_ || communicator_->rank() == 0)) notice_(text);
}

Trainer::Restored Trainer::restore(const std::string& asked_for, bool may_begin_again) {
  FoundSnapshot found;
  try {
    found = read_sound_snapshot(asked_for, train_->network(), solver_name(solver_.update.solver),
                                optimizer_->rounds());
  } catch (const DamagedFile& error) {
    if (!may_begin_again) throw;
    notify_user(fmt::format("warning: {}; beginning again", error.what()));
    begin();
    return {"", error.what()};
  }
  const auto& [snapshot, path, fault] = found;
  if (!fault.empty())
    notify_user(fmt::format("warning: {}; going on from {}, the newest sound one before it",
                            fault.substr(0, fault.find(';')), path));
  if (snapshot.has_positions && snapshot.seed != solver_.seed) {
    throw UserError(fmt::format("{}: was made with random_seed {}, the solver says {}; set random_seed to {}",
                                path, snapshot.seed, solver_.seed, snapshot.seed));
  }
  if (notice_ && snapshot.has_positions && snapshot.reproducible != reproducible())
    notice_(
        fmt::format("{}: was {}trained reproducibly, this training {}: from here on the weights are of "
                    "no other run",
                    path, snapshot.reproducible ? "" : "not ", reproducible() ? "is" : "is not"));
  started_from_ = path;
  take(snapshot);
  return {path, fault};
}

// Where the weights were left to a snapshot that is none.
void Trainer::begin() {
  if (!began_) parameters_.begin(train_->network(), train_executor_->parameter_entries(), solver_.seed);
  began_ = true;
}

void Trainer::take(const Snapshot& snapshot) {
  began_ = true;
  iteration_ = last_snapshot_iteration_ = snapshot.iteration;
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
}

}  // namespace cortado
