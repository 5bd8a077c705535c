#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cortado/train/data_network.h"
#include "cortado/train/iteration_keeper.h"
#include "cortado/train/load_weights.h"
#include "cortado/train/observer.h"
#include "cortado/train/open_net.h"
#include "cortado/train/optimizer.h"
#include "cortado/train/prefix_lock.h"
#include "cortado/train/snapshot.h"
#include "cortado/train/snapshot_writer.h"
#include "cortado/train/solver_nets.h"
#include "cortado/train/solver_options.h"
#include "cortado/train/stop_flags.h"

namespace cortado {

// After a run of a net that is tested, which gave `loss`: throws UserError, beginning with `what`, where its
// outputs are infinite or not a number. All ranks call it.
void require_finite(Executor& executor, double loss, const std::string& what);

// Trains a network by a solver file.
class Trainer {
 public:
  struct Options {
    std::string kernels;
    int reader_threads = 1;
    std::string strategy = "single";          // how layers are cut over the ranks; its name in errors
    Communicator* communicator = nullptr;     // must outlive the trainer; null: one rank
    device::DeviceRuntime* device = nullptr;  // of this rank; the same; null: the host
    // What that name stands for; null: what load_strategy() knows.
    std::function<Strategy(const Network&)> find_strategy{};
    // Says which kernels run a network that is compiled so; null: `kernels`.
    std::function<KernelChoice(const Network&, const CompileOptions&)> select_kernels{};
    OpenReader open_reader{};   // null: what the net's files name
    Notices notice{};           // what a user should know, though the work goes on; any thread
    bool keep_tensors = false;  // of the training net (CompileOptions::keep_tensors)
    bool restores = false;      // restore() comes next: no weights are made that it replaces
    bool open_nets = false;     // open_net() is there: one rank, all tensors kept, no layers fused
  };
  // All ranks of a job make and call their trainers in the same order. Throws UserError where there is
  // nothing to learn (train/trainable.h).
  Trainer(SolverOptions solver, const SolverNets& nets, const Options& options);

  void watch(TrainingObserver& observer) { observers_.push_back(&observer); }

  PassedOver load_weights(const std::string& path);
  // Goes on from a snapshot; where it is damaged, from an earlier one (read_sound_snapshot), with a notice at
  // rank 0. Where none is sound, throws DamagedFile or, if it `may_begin_again`, leaves the training as it
  // is, with a notice and no path.
  struct Restored {
    std::string path, fault;
  };
  Restored restore(const std::string& snapshot, bool may_begin_again = false);

  // Trains so many iterations, whatever max_iter is, or until `flags` ask to stop: false. Tests and snapshots
  // on the way are those of the solver file. Throws UserError, on all ranks, in the iteration in which
  // something is infinite or not a number for the first time: a sample, an output, a gradient, a weight;
  // naming the layer. Snapshots are written while the training goes on; all are complete when it returns.
  bool step(int64_t iterations, StopFlags& flags);
  // Trains from the iteration at hand to max_iter in the same way, with the last test and snapshot. A
  // snapshot is written where `flags` ask to stop, too.
  bool run(StopFlags& flags);
  // Tests each test net.
  std::vector<TestReport> test();
  // Returns the file to resume from, at every rank.
  std::string save_snapshot(const std::string& prefix);

  // From now on, another thread can have this rank's part of the last complete iteration, also while the
  // training's thread is stuck between its ranks. All ranks call it, on several ranks, once the training is
  // where it begins. It costs the memory of weights and history once more. Where none can be kept:
  // why_not_kept() says why.
  void keep_iterations();
  const std::string& why_not_kept() const { return none_kept_; }
  // Any thread. From now on this training changes nothing that is kept, and does not end; nothing where none
  // is kept.
  std::optional<IterationKeeper::Held> hold_still() const;
  // After that: writes this rank's part of a held iteration, where these ranks are left. Returns its file;
  // empty where the others have all that this rank has. Throws UserError: a full disk, slices that none of
  // these ranks has.
  std::string write_kept(int64_t iteration, const std::vector<int>& ranks) const;

  const SolverOptions& solver() const { return solver_; }
  const Strategy& strategy() const { return strategy_; }  // of the training net
  int64_t iteration() const { return iteration_; }
  // Does the updates of the last iteration that run late, under the next one. Before it, what parameter()
  // returns within a run may lack them. All ranks call it.
  void settle();
  // A parameter of the training net by its place there, whole and in canonical order, at rank 0; empty
  // elsewhere. All ranks call it, as they do set_parameter(), which takes it out of the whole.
  std::vector<float> parameter(ParameterIndex index) const;
  void set_parameter(ParameterIndex index, std::span<const float> whole);
  const Executor& executor() const { return *train_executor_; }
  // Whether its bits are those of any number of ranks and threads.
  bool reproducible() const { return train_executor_->program().placement->reproducible; }
  // The training net, or a test net, to be run part by part between the calls of this trainer.
  OpenNet& open_net() { return *train_open_.net; }
  OpenNet& open_test_net(size_t net) { return *tests_.at(net).open.net; }
  size_t test_nets() const { return tests_.size(); }
  const DataNetwork& test_net(size_t net) const { return *tests_.at(net).data; }
  // Updates the parameters by the gradients that open_net() has, as an iteration ends, and counts none.
  void update();
  const DataNetwork& train_net() const { return *train_; }
  int64_t skipped_records() const;  // broken records passed over so far, by any rank; all ranks call it

 private:
  // Null where nets are not open.
  struct Opened {
    std::unique_ptr<OpenSources> sources;
    std::unique_ptr<OpenNet> net;
  };
  struct TestNet {
    std::unique_ptr<DataNetwork> data;
    Opened open;
    std::unique_ptr<Executor> executor;
    int64_t batches = 0;  // run so far
  };

  // What is asked for at any rank.
  struct Wishes {
    bool stop = false, snapshot = false;
    bool refuse = false;  // of a rank that has met what is not finite, or could not write a snapshot
  };
  Wishes wishes(StopFlags& flags) const;
  // Makes the executor of the training net or of a test net; from then on the net's readers read only this
  // rank's samples.
  std::unique_ptr<Executor> executor_of(DataNetwork& net, Opened& open, const Options& options,
                                        NodeStrategies strategies, const Schedule& schedule);
  bool gradients_pass() const;
  ParameterCut parameter_cut() const;
  IterationReport train_iteration();
  std::vector<TestReport> test_all(StopFlags& flags);
  std::optional<TestReport> test(size_t net, StopFlags& flags);
  void closing_look();
  bool train(int64_t iterations, StopFlags& flags);
  void save();
  void announce_snapshot();
  void end_writing();
  void lock_prefix();
  void expect_snapshots();
  void copy_state(Snapshot& to) const;  // all ranks call it; whole at rank 0
  void describe_state(Snapshot& to, int64_t iteration) const;
  std::string why_none_is_kept() const;
  std::map<std::string, int64_t> own_positions() const;
  std::map<std::string, int64_t> reader_positions() const;
  void notify_user(const std::string& text) const;
  void begin();
  void take(const Snapshot& snapshot);
  double smoothed(double loss);
  bool due(int64_t interval) const { return interval > 0 && iteration_ % interval == 0; }
  double run_batch(const Optimizer::Batch& batch);
  void update_all(const Optimizer::Batch& batch);
  void take_gradients(const Optimizer::Batch& batch);
  [[noreturn]] void refuse(int64_t iteration, const std::string& what);
  [[noreturn]] void refuse_loss(double loss);
  [[noreturn]] void refuse_values();
  void notify_observers(const std::function<void(TrainingObserver&)>& event) const;

  SolverOptions solver_;
  Strategy strategy_;
  Notices notice_;
  Communicator* communicator_ = nullptr;
  std::unique_ptr<DataNetwork> train_;
  ParameterStore parameters_;
  Opened train_open_;
  std::unique_ptr<Executor> train_executor_;
  bool results_finite_ = true;  // of the iteration
  std::vector<TestNet> tests_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<IterationKeeper> keeper_;  // null: none is kept
  std::string none_kept_;                    // why; empty: nobody asked for it
  std::vector<TrainingObserver*> observers_;
  int64_t iteration_ = 0;
  std::deque<double> recent_losses_;
  bool expects_snapshots_ = false;    // of this run
  bool began_ = true;                 // the training net's parameters have values
  std::unique_ptr<PrefixLock> lock_;  // of rank 0, from when snapshots are to be expected
  std::string started_from_;          // a snapshot; empty: none
  std::string last_snapshot_;         // of this run
  int64_t last_snapshot_iteration_ = -1;
  Snapshot written_;       // what is being written; its memory is used again for the next one
  SnapshotWriter writer_;  // of rank 0; ends before what it reads
};

}  // namespace cortado
