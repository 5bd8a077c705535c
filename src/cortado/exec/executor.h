#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cortado/base/activity.h"
#include "cortado/base/core_sharing.h"
#include "cortado/comm/communicator.h"
#include "cortado/comm/links.h"
#include "cortado/compile/compile.h"
#include "cortado/device/memory.h"
#include "cortado/exec/batch_source.h"
#include "cortado/exec/modelled_clock.h"
#include "cortado/exec/parameters.h"
#include "cortado/kernels/kernel.h"
#include "cortado/program/timeline.h"

namespace cortado {

class BoundExchange;
struct Carrier;
class LaneThread;
class Staging;
class StepClock;
class StepGraphs;

struct ExecutorOptions {
  uint64_t seed = 1;
  bool begins = true;  // false: somebody gives the net's parameters their first values before it runs
  Communicator* communicator = nullptr;  // of the job; must outlive the executor; null: one rank
};

// Runs this rank's Program of one net. Compute steps run in order on the calling thread (kernels use the
// compute threads inside), communication steps on a thread of their own. A step starts when what it waits for
// has ended (docs/explanation/lanes.md). Kernels are launched on the queue of the store's device; run() and
// settle() return when it has done them. All ranks make their executors, and run them, in the same order.
class Executor {
 public:
  // Called with a parameter's entry once all that completes its gradient, and all of this iteration that
  // reads the weights, is launched; or, where the schedule says so, before their first use in the next
  // iteration. It launches the update.
  using Update = std::function<void(EntryIndex entry)>;

  // `compiled` is made of this network for this rank of the job. `sources`: per source node name, what brings
  // in the parts of Program::samples(). The network and the store must outlive the executor.
  Executor(const Network& network, Compiled compiled, ParameterStore& parameters,
           std::map<std::string, BatchSource> sources, ExecutorOptions options = {});
  ~Executor();

  // One iteration: forward and, for a train net, backward. Returns the loss (the sum of loss_weight *
  // output). A loss that is not finite stops before the backward pass: see first_non_finite(). `update` may
  // be empty: then all gradients, save those that pass, are complete when run() returns. Else it is kept for
  // late updates, which the next run() or settle() does.
  double run(uint64_t iteration, const Update& update = {});

  // Ends what the last run left to the next one: sums of gradients, late updates, parameters on their way
  // from their owners. Call it before looking at parameters. All ranks call it.
  void settle();

  // Runs these steps of the program one after another, on the calling thread and on one rank, over what lies
  // in memory: parts of an iteration. Loads ask their source for a batch, updates do nothing. The program
  // keeps its tensors (CompileOptions::keep_tensors). `iteration` counts for random numbers; none: that of
  // the last run.
  void run_steps(std::span<const StepIndex> steps, std::optional<uint64_t> iteration = {});
  // Copies values into a tensor that a layer computes, or into its gradient, in spoken order. On one rank,
  // f32, in memory of the host.
  void set_tensor(TensorIndex tensor, std::span<const float> values);
  void set_gradient(TensorIndex tensor, std::span<const float> values);
  void clear_gradients();  // of tensors: zeros

  // Whether the results of the last run on this rank are finite, apart from the loss: the outputs (at the
  // first rank) and the parameters that a forward pass in training writes.
  bool results_finite() const;
  // The same for all ranks together, and for `loss`. All ranks call it.
  bool all_finite(double loss) const;

  // Looks at the parameters and at the batch in hand, runs the forward pass again over it, and names the
  // first thing that is not finite: a parameter, a sample of a source ("layer 'data' (lenet.prototxt:3),
  // sample 5 of 'data'") or a layer's output ("layer 'conv1' (lenet.prototxt:12), output 'conv1'"); empty
  // when all are finite. All ranks call it.
  std::string first_non_finite();

  const Network& network() const { return network_; }
  const Program& program() const { return compiled_.program; }
  const ParameterStore& parameters() const { return parameters_; }
  const ParameterEntries& parameter_entries() const { return entries_; }

  // This rank's part (tensor_box) of a tensor after run(), channels last. Without keep_tensors only outputs
  // and losses are there. Losses are whole on every rank, outputs on rank 0. From another device than the
  // host, and of another type than f32, it is a copy, which the next call for the same tensor makes anew.
  std::span<const float> tensor(TensorIndex tensor) const;
  std::span<const float> gradient(TensorIndex tensor) const;  // of the part that is this rank's own
  std::optional<Box> tensor_box(TensorIndex tensor) const { return program_.tensor_box(tensor); }
  std::optional<Box> gradient_box(TensorIndex tensor) const;
  // A tensor in spoken (row-major) order.
  std::vector<float> canonical_tensor(TensorIndex tensor) const;
  std::vector<float> canonical_gradient(TensorIndex tensor) const;

  // Program::updated_elements() of a parameter's memory here.
  Range updated_elements(ParameterIndex parameter) const;

  const Timeline& timeline() const { return timeline_; }  // of the last run
  // Where the device works after it is told: whether the timeline says when the device did the steps, each
  // launched by itself and not in a graph, in place of when it was told to. False: it always says so.
  bool time_steps(bool on);
  Seconds data_wait() const { return data_wait_; }            // compute lane waiting for batches, last run
  Seconds exposed_communication() const { return exposed_; }  // waiting for other ranks, last run
  Bytes arena() const { return program_.arena; }

  // Lines for --verbose, one per task: its kernel, and why faster ones refused.
  std::vector<std::string> kernel_report() const;
  // The same for what a device does without the host: graphs, and the ways of messages. None for the host.
  std::vector<std::string> device_report() const;

 private:
  struct Bound;         // a work's kernel and arguments
  struct BoundMessage;  // a communication step's state machine
  struct MessageLog;    // when messages began and arrived

  ParameterSlices parameter_slices() const;
  void bind();
  std::vector<ParameterIndex> gradient_order() const;
  std::vector<ParameterIndex> passing_gradients() const;
  void place_passing_gradients();
  int64_t chunk_elements(const Step& sum) const;
  void meet_links();
  void bind_transmission(StepIndex step);
  std::unique_ptr<Transmission> transmission_of(StepIndex step, bool by_links);
  std::unique_ptr<Transmission> sum_over(const Step& step, ElementPointer values, int64_t count,
                                         Communicator& by);
  void bind_messages();
  bool reads_batch(const steps::Exchange& exchange) const;
  void bind_exchange(StepIndex step, const steps::Exchange& exchange);
  void bind_on_device(StepIndex step, const steps::Exchange& exchange, const Movement& movement);
  bool goes_by_links(const Movement& movement) const;
  std::vector<Carrier> host_carriers() const;
  void start_lane();
  void run_step(StepIndex index, const Update& update);
  void bind_work(const Work& work, StepIndex step, Arguments& arguments) const;
  void set_values(BufferIndex buffer, const Shape& shape, std::span<const float> values);
  void start_message(StepIndex index);
  void begin_message(StepIndex index);
  bool message_done(StepIndex index, bool first);
  bool message_arrived(StepIndex index, bool first);  // first: no other under way is needed sooner
  void bind_batch(StepIndex step, const steps::Exchange& exchange);
  void run_late(StepIndex index);
  void note_messages();
  void run_work(StepIndex index);
  void compute(StepIndex index, uint64_t iteration);
  bool replays(StepIndex index);
  void drain();
  const BatchSource& source_of(const Work& load) const;
  void load(StepIndex step);
  void look_ahead();
  void accumulate(StepIndex index) const;
  // `compute`: runs a step of the compute lane; false: the last one.
  void run_lanes(const std::function<bool(StepIndex step)>& compute);
  Activity activity() const;
  void wait_for(StepIndex step);
  double loss() const;
  struct Finding;  // what is not finite, and where in the order of works
  Finding non_finite_parameter() const;
  Finding non_finite_output(const Work& work) const;
  // The memory of a buffer for launched functions, and where the samples of a work begin in it. Elements of
  // another type lie there, too (kernels/kernel.h).
  // Where it lies at that step; at none: at the end of the iteration.
  float* pointer(const View& view, StepIndex step) const;
  std::byte* bytes(const View& view, StepIndex step) const {
    return reinterpret_cast<std::byte*>(pointer(view, step));
  }
  int64_t offset_of(const View& view, StepIndex step) const;
  float* pointer(BufferIndex buffer, int64_t offset) const;
  // The same for messages, in memory of the host.
  std::byte* message_pointer(const View& view, StepIndex step) const;
  float* batch_pointer(BufferIndex buffer) const;
  std::span<const float> values(const View& view) const;
  int64_t elements_of(const View& view) const;
  int64_t first_in(const ParameterStore::Entry& entry) const;

  const Network& network_;
  ParameterStore& parameters_;
  device::DeviceRuntime& device_;
  device::Queue& queue_;
  std::unique_ptr<Communicator> alone_;  // when there is no job
  Communicator& communicator_;
  std::map<std::string, BatchSource> sources_;
  ExecutorOptions options_;
  Compiled compiled_;
  const Program& program_;  // the compiled one
  ParameterEntries entries_;
  device::Memory arena_;
  mutable std::map<BufferIndex, std::vector<float>> widened_;  // of those not f32: what was asked for last
  IndexedVector<BufferIndex, const float*> batches_;           // of those of kind batch
  IndexedVector<StepIndex, Bound> bound_;
  IndexedVector<StepIndex, BoundMessage> messages_;
  std::optional<Ways> ways_;               // with staging_
  std::unique_ptr<Communicator> links_;    // null: there are none; used by messages_
  std::unique_ptr<Staging> staging_;       // null: the host touches the device's memory
  std::unique_ptr<StepGraphs> graphs_;     // null: the device makes none
  std::unique_ptr<StepClock> step_clock_;  // null: nobody wants to know
  std::atomic<StepIndex> computing_ = StepIndex(0);
  Timeline timeline_;
  Update late_update_;                  // of the last run
  IndexedVector<StepIndex, bool> due_;  // late, and still to be done
  std::unique_ptr<MessageLog> log_;
  Seconds data_wait_, exposed_;
  ModelledClock modelled_clock_;  // of modelled computing
  CoreSharing core_sharing_;
  bool keeps_batch_ = false;  // run again over the batch in hand
  // Per step that loads, with staging_: the number of the batch that lies in pinned memory already.
  std::map<StepIndex, int64_t> brought_;
  uint64_t iteration_ = 0;
  std::chrono::steady_clock::time_point iteration_start_;
  // The last member: its thread, which ends first, touches the others.
  std::unique_ptr<LaneThread> communication_;
};

}  // namespace cortado
