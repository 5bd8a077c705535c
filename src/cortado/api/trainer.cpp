#include "cortado/api/trainer.h"

#include <cstring>
#include <fmt/format.h>

#include "cortado/api/impl/job.h"
#include "cortado/api/impl/net.h"
#include "cortado/api/impl/network.h"
#include "cortado/api/impl/solver.h"
#include "cortado/api/impl/strategy.h"
#include "cortado/api/impl/trainer.h"
#include "cortado/auto/job_cut.h"
#include "cortado/auto/recompute.h"
#include "cortado/base/compute_threads.h"
#include "cortado/base/element_type.h"
#include "cortado/base/error.h"
#include "cortado/base/spoken_order.h"

namespace cortado::api {
namespace {

std::vector<Output> outputs_of(const std::vector<OutputValue>& values) {
  std::vector<Output> outputs;
  for (const OutputValue& value : values) outputs.push_back({value.name, value.value, value.loss_weight});
  return outputs;
}

TestResult test_of(const TestReport& report) {
  return {.iteration = report.iteration,
          .net = report.net,
          .outputs = outputs_of(report.outputs),
          .loss = report.loss,
          .seconds = report.duration.count};
}

Iteration iteration_of(const IterationReport& report) {
  return {.number = report.iteration,
          .loss = report.loss,
          .smoothed_loss = report.smoothed_loss,
          .learning_rate = report.learning_rate,
          .samples = report.images,
          .seconds = report.duration.count,
          .data_wait = report.data_wait.count,
          .exposed_communication = report.exposed_communication.count,
          .communication = report.communication.count,
          .display = report.display,
          .updated = report.updated,
          .outputs = outputs_of(report.outputs)};
}

// Without the schedules of the strategy, which may be several.
JobCut cut_of(const TrainerOptions& options) {
  return {.strategy = options.strategy.impl().name,
          .kernels = options.kernels,
          .fast_math = options.fast_math,
          .reproducible = options.reproducible,
          .schedule = {}};
}

TrainerOptions checked(TrainerOptions options) {
  check_kernels(cut_of(options), as_field);
  if (options.threads < 0)
    throw UserError(fmt::format("threads {}: give 1 or more; 0: as many as OpenMP gives", options.threads));
  if (options.open_nets && options.device != "cpu")
    throw UserError(
        fmt::format("open_nets: values are open on the CPU alone, not on device {}", options.device));
  if (options.open_nets && options.job.size() > 1)
    throw UserError(
        fmt::format("open_nets: a net is open on one rank alone; the job has {}", options.job.size()));
  if (options.threads == 0) options.threads = compute_threads();
  return options;
}

// Returns a rank's part of a tensor as bytes: the ends of its box, then its values in spoken order.
std::string part_bytes(const Box& box, const std::vector<float>& values) {
  std::vector<int64_t> ends;
  for (int axis = 0; axis < box.rank(); ++axis) ends.insert(ends.end(), {box[axis].begin, box[axis].end});
  std::string bytes(ends.size() * sizeof(int64_t) + values.size() * sizeof values[0], '\0');
  if (!ends.empty()) std::memcpy(bytes.data(), ends.data(), ends.size() * sizeof(int64_t));
  std::memcpy(bytes.data() + ends.size() * sizeof(int64_t), values.data(), values.size() * sizeof values[0]);
  return bytes;
}

void take_part(const std::vector<std::byte>& bytes, const Box& whole, float* values) {
  Box box = whole;
  const std::byte* at = bytes.data();
  for (int axis = 0; axis < box.rank(); ++axis) {
    std::memcpy(&box[axis].begin, at, sizeof(int64_t));
    std::memcpy(&box[axis].end, at + sizeof(int64_t), sizeof(int64_t));
    at += 2 * sizeof(int64_t);
  }
  std::vector<float> part(static_cast<size_t>(box.shape().size()));
  std::memcpy(part.data(), at, part.size() * sizeof part[0]);
  copy_common(box, part.data(), whole, values);
}

}  // namespace

void check_device(const std::string& device) {
  devices_of({.device = device, .devices = {}, .gpu = {}}, as_field);
}

StopToken::StopToken() : impl_(std::make_shared<Impl>()) {}
void StopToken::request_stop() const noexcept { impl_->flags.stop = true; }
void StopToken::request_snapshot() const noexcept { impl_->flags.snapshot = true; }
bool StopToken::stop_requested() const noexcept { return impl_->flags.stop; }
void StopToken::reset() const noexcept { impl_->flags.stop = impl_->flags.snapshot = false; }

void Observers::iteration_begins(int64_t iteration) {
  for (Observer* observer : observers_) observer->iteration_begins(iteration);
}
void Observers::gradients(int64_t iteration) {
  for (Observer* observer : observers_) observer->gradients(iteration);
}
void Observers::iteration(const IterationReport& report) {
  if (report.updated) last_loss_ = report.loss;
  const Iteration iteration = iteration_of(report);
  for (Observer* observer : observers_) observer->iteration(iteration);
}
void Observers::test_begins(int64_t iteration, int net) {
  for (Observer* observer : observers_) observer->test_begins(iteration, net);
}
void Observers::test(const TestReport& report) {
  const TestResult test = test_of(report);
  for (Observer* observer : observers_) observer->test(test);
}
void Observers::snapshot(int64_t iteration, const std::string& path) {
  for (Observer* observer : observers_) observer->snapshot(iteration, path);
}

Trainer::Impl::Impl(const Solver& solver, const Data& data, const TrainerOptions& said)
    : options(checked(said)),
      device(open_rank_device({.device = options.device, .devices = {}, .gpu = {}}, ranks(), as_field)),
      readers(data),
      trainer(make(solver)),
      network(std::make_shared<const Network::Impl>(trainer->train_net().loaded())) {
  readers.check_used();
  trainer->watch(observers);
}

JobCut Trainer::Impl::cut() const {
  JobCut cut = cut_of(options);
  cut.device = device.runtime.get();
  cut.mixed_devices = device.mixed();
  return cut;
}

std::unique_ptr<cortado::Trainer> Trainer::Impl::make(const Solver& solver) {
  const ComputeThreads threads(options.threads);
  const auto select = [this](const cortado::Network& net, const CompileOptions& compiled) {
    return select_kernels(cut(), net, ranks(), compiled, options.notice);
  };
  SolverNets nets = solver.impl().nets();
  if (options.user_layers) {
    nets.train.file.user_layers = options.user_layers;
    for (SolverNet& test : nets.tests) test.file.user_layers = options.user_layers;
  }
  return std::make_unique<cortado::Trainer>(
      solver.impl().options(), nets,
      cortado::Trainer::Options{
          .reader_threads = options.reader_threads,
          .strategy = strategy_name(cut(), ranks().size()),
          .communicator = &ranks(),
          .device = device.runtime.get(),
          .find_strategy = [this, history = history_tensors(solver.impl().options())](
                               const cortado::Network& net) { return strategy_for(net, history); },
          .select_kernels = select,
          .open_reader = readers.opener(),
          .notice = options.notice,
          .keep_tensors = options.keep_tensors,
          .open_nets = options.open_nets});
}

Communicator& Trainer::Impl::ranks() const { return options.job.impl().communicator; }

cortado::Strategy Trainer::Impl::strategy_for(const cortado::Network& net, int history) const {
  const Strategy::Impl& asked = options.strategy.impl();
  cortado::Strategy strategy =
      asked.parsed ? *asked.parsed
                   : strategy_of(cut(), net, ranks(), history, {.notice = options.notice, .on_choice = {}});
  asked.apply_schedules(net, strategy);
  for (const Schedule& said : asked.schedules)
    recompute_on_job(changes_of(said), net, ranks(), kernels_of(cut()), history, strategy, as_field,
                     options.notice, *device.runtime);
  return strategy;
}

// `own`: this rank's box of the tensor, channels last; empty where it has none.
Tensor Trainer::Impl::whole(const std::string& name, std::span<const float> own,
                            const std::optional<Box>& box) const {
  const cortado::Network& net = trainer->train_net().network();
  const cortado::Shape& shape = net.tensors()[tensor_named(net, name)].shape;
  std::string mine;
  if (!own.empty() && box && !box->empty()) {
    std::vector<float> spoken(own.size());
    to_spoken(box->shape(), own.data(), spoken.data());
    mine = part_bytes(*box, spoken);
  }
  Tensor tensor{shape_of(shape), std::vector<float>(static_cast<size_t>(shape.size()))};
  bool kept = false;
  for (const auto& bytes : ranks().all_to_all_bytes(std::as_bytes(std::span(mine)))) {
    if (bytes.empty()) continue;
    take_part(bytes, Box::whole(shape), tensor.values.data());
    kept = true;
  }
  if (!kept) refuse(name);
  return tensor;
}

void Trainer::Impl::refuse(const std::string& tensor) const {
  throw UserError(
      fmt::format("net '{}': tensor '{}' is not kept, or has no gradient; set keep_tensors to read what is "
                  "neither a loss nor an output",
                  trainer->train_net().network().name(), tensor));
}

void Trainer::Impl::require_open_nets() const {
  if (!options.open_nets)
    throw UserError("the trainer's nets are not open; make it with TrainerOptions::open_nets");
}

Trainer::Trainer(const Solver& solver, const Data& data, const TrainerOptions& options)
    : impl_(std::make_unique<Impl>(solver, data, options)) {}
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

bool Trainer::step(int64_t iterations, const StopToken& stop) {
  const ComputeThreads threads(impl_->options.threads);
  return impl_->trainer->step(iterations, stop.impl().flags);
}

bool Trainer::run(const StopToken& stop) {
  const ComputeThreads threads(impl_->options.threads);
  return impl_->trainer->run(stop.impl().flags);
}

std::vector<TestResult> Trainer::test() {
  const ComputeThreads threads(impl_->options.threads);
  std::vector<TestResult> tests;
  for (const TestReport& report : impl_->trainer->test()) tests.push_back(test_of(report));
  return tests;
}

void Trainer::observe(Observer& observer) { impl_->observers.add(observer); }

int64_t Trainer::iteration() const { return impl_->trainer->iteration(); }
double Trainer::loss() const { return impl_->observers.last_loss(); }
const Network& Trainer::network() const { return impl_->network; }

Tensor Trainer::tensor(const std::string& name) const {
  const Executor& executor = impl_->trainer->executor();
  const TensorIndex index = tensor_named(executor.network(), name);
  const bool reported = static_cast<bool>(executor.program().placement->report_values[index]);
  if (!reported && !impl_->keeps_tensors()) impl_->refuse(name);
  return impl_->whole(name, executor.tensor(index), executor.tensor_box(index));
}

Tensor Trainer::gradient(const std::string& name) const {
  const Executor& executor = impl_->trainer->executor();
  const TensorIndex index = tensor_named(executor.network(), name);
  if (!impl_->keeps_tensors()) impl_->refuse(name);
  return impl_->whole(name, executor.gradient(index), executor.gradient_box(index));
}

Tensor Trainer::parameter(const std::string& name) const {
  const cortado::Network& net = impl_->trainer->train_net().network();
  const ParameterIndex index = parameter_named(net, name);
  const std::vector<float> own = impl_->trainer->parameter(index);
  const auto all = impl_->ranks().all_to_all_bytes(std::as_bytes(std::span(own)));
  Tensor tensor{shape_of(net.parameters()[index].spec.shape),
                std::vector<float>(static_cast<size_t>(elements_in({std::ssize(all[0])}, ElementType::f32)))};
  if (!all[0].empty()) std::memcpy(tensor.values.data(), all[0].data(), all[0].size());
  return tensor;
}

void Trainer::set_parameter(const std::string& name, const std::vector<float>& values) {
  const cortado::Network& net = impl_->trainer->train_net().network();
  const ParameterIndex index = parameter_named(net, name);
  const int64_t wanted = net.parameters()[index].spec.shape.size();
  if (std::ssize(values) != wanted)
    throw UserError(fmt::format("net '{}': parameter '{}' has {} values; given {}", net.name(), name, wanted,
                                values.size()));
  impl_->trainer->set_parameter(index, values);
}

PassedOver Trainer::load_weights(const std::string& path) {
  const cortado::PassedOver passed = impl_->trainer->load_weights(path);
  return {passed.of_network, passed.of_file};
}

std::string Trainer::snapshot() { return snapshot(impl_->trainer->solver().snapshot_prefix); }
std::string Trainer::snapshot(const std::string& prefix) {
  const ComputeThreads threads(impl_->options.threads);
  return impl_->trainer->save_snapshot(prefix);
}

Trainer::Restored Trainer::restore(const std::string& snapshot) {
  const auto [path, fault] = impl_->trainer->restore(snapshot);
  return {path, fault};
}

Net Trainer::net() {
  impl_->require_open_nets();
  return Net(std::make_unique<Net::Impl>(impl_->trainer->open_net(), impl_->trainer->train_net().loaded(),
                                         Phase::train, impl_->options.threads));
}

int Trainer::test_nets() const { return static_cast<int>(impl_->trainer->test_nets()); }

Net Trainer::test_net(int index) {
  impl_->require_open_nets();
  if (index < 0 || index >= test_nets())
    throw UserError(fmt::format("there is no test net {}; the solver has {}", index, test_nets()));
  const auto number = static_cast<size_t>(index);
  return Net(std::make_unique<Net::Impl>(impl_->trainer->open_test_net(number),
                                         impl_->trainer->test_net(number).loaded(), Phase::test,
                                         impl_->options.threads));
}

void Trainer::update() {
  impl_->require_open_nets();
  const ComputeThreads threads(impl_->options.threads);
  impl_->trainer->update();
}

int64_t Trainer::skipped_records() const { return impl_->trainer->skipped_records(); }

}  // namespace cortado::api
