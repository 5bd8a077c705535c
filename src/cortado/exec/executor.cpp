#include "cortado/exec/executor.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>

#include "cortado/base/denormals.h"
#include "cortado/base/error.h"
#include "cortado/base/seconds_since.h"
#include "cortado/exec/agreement.h"
#include "cortado/exec/executor_bound.h"
#include "cortado/exec/lane_thread.h"
#include "cortado/exec/staging.h"
#include "cortado/exec/step_clock.h"
#include "cortado/exec/step_graphs.h"
#include "cortado/kernels/arrays.h"
#include "cortado/kernels/gpu/passes.h"
#include "cortado/kernels/tensor_type.h"

namespace cortado {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Executor::Executor(const Network& network, Compiled compiled, ParameterStore& parameters,
                   std::map<std::string, BatchSource> sources, ExecutorOptions options)
    : network_(network),
      parameters_(parameters),
      device_(parameters.device()),
      queue_(device_.queue()),
      alone_(options.communicator ? nullptr : make_single_communicator()),
      communicator_(options.communicator ? *options.communicator : *alone_),
      sources_(std::move(sources)),
      options_(std::move(options)),
      compiled_(std::move(compiled)),
      program_(compiled_.program) {
  ensure(program_.rank == communicator_.rank() && program_.placement->ranks == communicator_.size(),
         "the program is of another rank");
  const std::optional<uint64_t> seed = options_.begins ? std::optional(options_.seed) : std::nullopt;
  entries_ = parameters_.add(network_, compiled_.formats, seed, parameter_slices(), gradient_order(),
                             passing_gradients());
  check_memory_orders(network_, program_, parameters_, entries_, communicator_);
  check_replicas(*program_.placement, communicator_);
  arena_ = device::Memory(program_.arena, device_);
  place_passing_gradients();
  batches_.assign(program_.buffers.size(), nullptr);
  timeline_.resize(program_.steps.size());
  due_.assign(program_.steps.size(), false);
  log_ = std::make_unique<MessageLog>(program_.steps.size());
  if (!device_.host_accessible())
    staging_ = std::make_unique<Staging>(program_, parameters_, entries_, arena_);
  if (device_.captures() && compiled_.modelled.empty())
    graphs_ = std::make_unique<StepGraphs>(plan_graphs(program_, network_), program_.steps.size(), queue_);
  bind();
  meet_groups(program_, communicator_);
  meet_links();
  bind_messages();
  start_lane();
}

void Executor::start_lane() {
  LaneThread::Steps steps;
  for (StepIndex s : indices(program_.steps)) {
    const Step& step = program_.steps[s];
    steps.waits.push_back(step.waits);
    steps.waits_before.push_back(step.waits_before);
    steps.carried.push_back(step.carried);
    steps.needed.push_back(step.needed);
    if (step.lane == Lane::communication) steps.order.push_back(s);
  }
  steps.start = [this](StepIndex step) { start_message(step); };
  steps.finished = [this](StepIndex step, bool first) { return message_arrived(step, first); };
  if (staging_) steps.ended = [this] { look_ahead(); };
  communication_ = std::make_unique<LaneThread>(std::move(steps));
}

Executor::~Executor() = default;

// The order of the sums, so that the gradients of a chunk lie together.
std::vector<ParameterIndex> Executor::gradient_order() const {
  std::vector<ParameterIndex> order;
  for (const Step& step : program_.steps)
    if (step.is<steps::SumGradient>()) std::ranges::copy(step.parameters(), std::back_inserter(order));
  return order;
}

// Those whose update reads a buffer.
std::vector<ParameterIndex> Executor::passing_gradients() const {
  std::vector<ParameterIndex> passing;
  for (const Step& step : program_.steps)
    if (const auto* update = step.as<steps::Update>(); update && !step.reads.empty())
      passing.push_back(update->parameter);
  return passing;
}

// A graph would run the updates after all of its steps, when other tensors lie where gradients lay.
void Executor::place_passing_gradients() {
  for (StepIndex s : indices(program_.steps)) {
    const Step& step = program_.steps[s];
    const auto* update = step.as<steps::Update>();
    if (!update || step.reads.empty()) continue;
    ensure(!device_.captures(), "gradients pass on a device that makes graphs");
    parameters_.place_gradient(entries_[update->parameter], arena_.floats(offset_of(step.reads[0], s)));
  }
}

ParameterSlices Executor::parameter_slices() const {
  ParameterSlices slices;
  for (const Layout& layout : program_.placement->slices) slices.push_back(layout[communicator_.rank()]);
  return slices;
}

double Executor::run(uint64_t iteration, const Update& update) {
  const FlushedDenormals no_denormals;
  core_sharing_.look();
  const ThreadTeam::Scope loops(core_sharing_.team());
  iteration_ = iteration;
  iteration_start_ = Clock::now();
  data_wait_ = exposed_ = {};
  if (step_clock_) step_clock_->start();
  run_lanes([&](StepIndex step) {
    if (!replays(step)) run_step(step, update);
    if (step_clock_) step_clock_->after(step);
    // The same on every rank, so all go on or none does.
    return !program_.steps[step].is<steps::Barrier>() || std::isfinite(loss());
  });
  const double total = loss();
  if (std::isfinite(total)) {
    late_update_ = update;
    for (StepIndex s : indices(program_.steps)) {
      const Step& step = program_.steps[s];
      due_[s] = step.late && compiled_.modelled.empty() && (update || !step.is<steps::Update>());
    }
    if (!update) settle();
  }
  note_messages();
  if (step_clock_) step_clock_->write_to(timeline_);
  return total;
}

bool Executor::time_steps(bool on) {
  if (device_.host_accessible() || !compiled_.modelled.empty()) return false;
  step_clock_ = on ? std::make_unique<StepClock>(program_, device_) : nullptr;
  return true;
}

void Executor::settle() {
  const FlushedDenormals no_denormals;
  const ActivityScope doing([this] { return activity(); });
  communication_->settle();
  if (staging_) staging_->wait_for_messages(true);
  for (StepIndex s : indices(program_.steps)) run_late(s);
  queue_.finish();
}

void Executor::run_late(StepIndex index) {
  if (!due_[index]) return;
  due_[index] = false;
  const Step& step = program_.steps[index];
  if (const auto* update = step.as<steps::Update>())
    late_update_(entries_[update->parameter]);
  else
    run_work(index);
}

// For carried steps the timeline has those of the iteration before that have arrived by now.
void Executor::note_messages() {
  std::lock_guard lock(log_->mutex);
  for (StepIndex s : indices(program_.steps)) {
    if (program_.steps[s].lane != Lane::communication) continue;
    const auto& [begin, end] = log_->last[s];
    const bool ran = end > iteration_start_;
    timeline_[static_cast<size_t>(s.value())] = {communicator_.rank(), Lane::communication, s,
                                                 ran ? seconds_since(iteration_start_, begin) : Seconds{},
                                                 ran ? seconds_since(iteration_start_, end) : Seconds{}};
  }
}

// Runs the steps of both lanes to their end.
void Executor::run_lanes(const std::function<bool(StepIndex step)>& compute) {
  const ActivityScope doing([this] { return activity(); });
  communication_->start();
  try {
    for (StepIndex s : indices(program_.steps)) {
      if (program_.steps[s].lane != Lane::compute) continue;
      wait_for(s);
      computing_ = s;
      const bool go_on = compute(s);
      count_progress();
      if (staging_) staging_->computed(s);
      if (!go_on) {
        communication_->leave_rest();
        break;
      }
      communication_->done(s);
    }
    auto start = Clock::now();
    communication_->finish();
    exposed_ += seconds_since(start);
    if (staging_) staging_->wait_for_messages(false);
    queue_.finish();
  } catch (...) {
    communication_->abandon();
    if (staging_) staging_->restart();
    drain();
    throw;
  }
}

// Waits for the queue after a failure, so that the next iteration begins with an empty one. Drops what the
// queue throws: the caller rethrows the first failure.
void Executor::drain() {
  try {
    queue_.finish();
  } catch (const std::exception&) {
  }
}

void Executor::wait_for(StepIndex step) {
  const auto& waits = program_.steps[step].waits;
  if (waits.empty() && program_.steps[step].waits_before.empty()) return;
  auto start = Clock::now();
  communication_->wait_for(step);
  if (staging_) staging_->wait_for(step);
  const bool data =
      std::ranges::any_of(waits, [&](StepIndex other) { return program_.steps[other].is<steps::Load>(); });
  (data ? data_wait_ : exposed_) += seconds_since(start);
}

void Executor::run_step(StepIndex index, const Update& update) {
  const Step& step = program_.steps[index];
  TimelineEntry& entry = timeline_[static_cast<size_t>(index.value())];
  entry = {communicator_.rank(), step.lane, index, seconds_since(iteration_start_), {}};
  if (!compiled_.modelled.empty()) {
    modelled_clock_.take(compiled_.modelled[index]);
    entry.end = seconds_since(iteration_start_);
    return;
  }
  if (step.late) {
    run_late(index);
    entry.end = seconds_since(iteration_start_);
    return;
  }
  std::visit(Overloaded{[&](const steps::Seed& seed) {
                          const View& view = step.writes[0];
                          queue_.fill(arena_.floats(offset_of(view, index) + view.bytes.begin),
                                      static_cast<float>(seed.weight), elements_of(view));
                        },
                        [&](const steps::Update& done) {
                          if (update) update(entries_[done.parameter]);
                        },
                        [&](const OneOf<steps::Accumulate, steps::AccumulateParameter> auto&) {
                          queue_.launch([this, index] { accumulate(index); });
                        },
                        [&](const steps::Compute&) { run_work(index); },
                        [](const steps::Barrier&) {},  // run() looks at the loss
                        [](const steps::Load&) {},     // the other lane's, as are messages
                        [](const steps::Communicates auto&) {}},
             step.action);
  entry.end = seconds_since(iteration_start_);
}

void Executor::run_work(StepIndex index) {
  const Work& work = program_.works[program_.steps[index].work()];
  Bound& bound = bound_[index];
  for (size_t i = 0; i < work.inputs.size(); ++i) bound.arguments.inputs[i] = pointer(work.inputs[i], index);
  queue_.launch([this, index, iteration = iteration_] { compute(index, iteration); });
}

// Whether a graph does the step in this iteration.
bool Executor::replays(StepIndex index) {
  if (!graphs_ || step_clock_ || !graphs_->replays(index, [this](StepIndex step) { run_step(step, {}); }))
    return false;
  const Seconds now = seconds_since(iteration_start_);
  timeline_[static_cast<size_t>(index.value())] = {communicator_.rank(), Lane::compute, index, now, now};
  return true;
}

// A function that is launched. `iteration`: as it was at the launch.
void Executor::compute(StepIndex index, uint64_t iteration) {
  const auto& step = *program_.steps[index].as<steps::Compute>();
  Bound& bound = bound_[index];
  bound.arguments.random.iteration = iteration;
  try {
    switch (step.pass) {
      case Pass::forward:
        bound.kernel->forward(bound.arguments);
        break;
      case Pass::backward_weights:
        bound.kernel->backward_weights(bound.arguments);
        break;
      case Pass::forward_partial:
        bound.kernel->forward_partial(bound.arguments);
        break;
      case Pass::backward_partial:
        bound.kernel->backward_partial(bound.arguments);
        break;
      case Pass::backward:
        bound.kernel->backward(bound.arguments);
        break;
    }
  } catch (const UserError& error) {
    const auto& node = network_.nodes()[program_.works[step.work].nodes.front()];
    throw UserError(fmt::format("{}: layer '{}': {}", node.where.text(), node.name, error.what()));
  }
}

const BatchSource& Executor::source_of(const Work& load) const {
  const auto source = sources_.find(network_.nodes()[load.nodes.front()].name);
  ensure(source != sources_.end(), "a source layer has no reader");
  return source->second;
}

void Executor::load(StepIndex step) {
  const Work& work = program_.works[program_.steps[step].work()];
  const auto& node = network_.nodes()[work.nodes.front()];
  const BatchSource& source = source_of(work);
  if (const auto brought = brought_.find(step); brought != brought_.end()) {
    const auto coming = source.peek();
    if (!coming || coming->number != brought->second) brought_.erase(brought);  // the reader was set back
  }
  BatchSource::Tensors batch;
  try {
    batch = source();
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: layer '{}': {}", node.where.text(), node.name, error.what()));
  }
  ensure(batch.size() == work.outputs.size(), "a reader brings another number of tensors");
  for (size_t i = 0; i < batch.size(); ++i) {
    if (work.outputs[i]) batches_[work.outputs[i].buffer] = batch[i];
  }
}

// While the compute lane is busy: the way to pinned memory is most of a batch's way to the device.
void Executor::look_ahead() {
  for (StepIndex s : indices(program_.steps)) {
    const auto* load = program_.steps[s].as<steps::Load>();
    if (!load) continue;
    const Work& work = program_.works[load->work];
    const auto coming = source_of(work).peek();
    if (!coming) continue;
    staging_->bring_near(s, coming->tensors);
    brought_[s] = coming->number;
  }
}

// A function that is launched.
void Executor::accumulate(StepIndex index) const {
  const Step& step = program_.steps[index];
  const auto* parameter = step.as<steps::AccumulateParameter>();
  float* to = parameter ? device_.for_kernels(parameters_.entries()[entries_[parameter->parameter]].gradient)
                        : pointer(step.writes[0], index);
  const ElementType type = program_.buffers[step.reads[0].buffer].type;
  const int64_t count = elements_of(step.reads[0]);
  with_tensor_type(type, [&]<typename E>() {
    std::vector<const E*> terms;
    for (const View& view : step.reads) terms.push_back(elements<E>(pointer(view, index)));
    if (parameter) terms.push_back(elements<E>(to));
    if (device_.runs_gpu_work())
      gpu::sum<E>(queue_.stream(), elements<E>(to), terms, count);
    else
      arrays::sum(elements<E>(to), terms, count);
  });
}

}  // namespace cortado
