#include "cortado/train/trainer.h"

#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <set>

#include "cortado/base/command_files.h"
#include "cortado/base/error.h"
#include "cortado/base/seconds_since.h"
#include "cortado/kernels/update.h"
#include "cortado/train/gather.h"
#include "cortado/train/layer_names.h"
#include "cortado/train/learning_rate.h"
#include "cortado/train/snapshot_size.h"
#include "cortado/train/trainable.h"

namespace cortado {
namespace {

using Clock = std::chrono::steady_clock;

// Seconds in which messages of the last iteration were under way, one by one: they may overlap.
Seconds communication_of(const Executor& executor) {
  Seconds sum;
  for (const TimelineEntry& entry : executor.timeline()) {
    const Step& step = executor.program().steps[entry.step];
    if (step.communicates()) sum += entry.end - entry.begin;
  }
  return sum;
}

// Adds the values of one batch to the sums of a test.
void add_values(std::vector<OutputValue>& sums, const std::vector<OutputValue>& values) {
  if (sums.empty()) {
    sums = values;
    return;
  }
  for (size_t i = 0; i < sums.size(); ++i) sums[i].value += values[i].value;
}

}  // namespace

Trainer::Trainer(SolverOptions solver, const SolverNets& nets, const Options& options)
    : solver_(std::move(solver)),
      notice_(options.notice),
      communicator_(options.communicator),
      parameters_(options.device ? *options.device : device::host()) {
  at_first_rank(communicator_, [&] {
    check_folder_of(solver_.file + ": snapshot_prefix", solver_.snapshot_prefix);
    return std::string();
  });
  DataNetwork::Options data{.seed = solver_.seed,
                            .reader_threads = options.reader_threads,
                            .learns = true,
                            .open_reader = options.open_reader,
                            .notice = options.notice};
  const int ranks = communicator_ ? communicator_->size() : 1;
  train_ = std::make_unique<DataNetwork>(nets.train.file, nets.train.state, data);
  check_snapshot_size(solver_, train_->loaded(), history_count(solver_.update.solver));
  const Network& network = train_->network();
  require_trainable(network, nets.train.file.path);
  strategy_ = options.find_strategy ? options.find_strategy(network)
                                    : load_strategy(options.strategy, network, ranks);
  const NodeStrategies strategies = resolve(strategy_, network, ranks, options.strategy);
  train_executor_ = executor_of(*train_, train_open_, options, strategies, strategy_.schedule);
  began_ = !options.restores;
  data.learns = false;
  std::vector<const Network*> test_networks;
  for (const SolverNet& net : nets.tests) {
    tests_.push_back(
        {.data = std::make_unique<DataNetwork>(net.file, net.state, data), .open = {}, .executor = nullptr});
    test_networks.push_back(&tests_.back().data->network());
  }
  check_layer_names(solver_, network, test_networks);
  for (TestNet& test : tests_) {
    const Network& beside = test.data->network();
    test.executor = executor_of(*test.data, test.open, options,
                                resolve_beside(beside, network, strategies, ranks), strategy_.schedule);
  }
  optimizer_ = std::make_unique<Optimizer>(solver_, parameters_, parameter_cut());
  if (reproducible() && optimizer_->sums_over_ranks())
    throw UserError(
        fmt::format("{}: reproducible: clip_gradients and LARS need norms of parameters that ranks hold in "
                    "slices, and would sum them in another order than one rank; cut samples alone",
                    solver_.file));
}

ParameterCut Trainer::parameter_cut() const {
  ParameterCut cut = parameter_cut_of(*train_executor_, communicator_);
  for (ParameterIndex p : indices(cut.entries())) {
    const bool owned = cut.own_piece(p) && cut.own_piece(p)->owned();
    if (!owned || solver_.clip_gradients < 0) continue;
    throw UserError(fmt::format(
        "{}: clip_gradients needs all gradients before an update, \"sync\": \"owner\" and "
        "\"server\" send updates at once; use \"allreduce\" in the strategy, or set clip_gradients to -1",
        solver_.file));
  }
  return cut;
}

// Whether nobody needs a gradient after its update. Norms of all gradients come first, unless the solver
// has sums of them; what updates found on another device is looked at later.
bool Trainer::gradients_pass() const {
  const bool late = solver_.clip_gradients >= 0 && solver_.iter_size == 1;
  return !late && parameters_.device().host_accessible();
}

std::unique_ptr<Executor> Trainer::executor_of(DataNetwork& net, Opened& open, const Options& options,
                                               NodeStrategies strategies, const Schedule& schedule) {
  CompileOptions compiling{.strategies = std::move(strategies),
                           .schedule = schedule,
                           .kernels = {.kernels = options.kernels},
                           .ranks = communicator_ ? communicator_->size() : 1,
                           .rank = communicator_ ? communicator_->rank() : 0,
                           .keep_tensors = options.keep_tensors && net.network().learns(),
                           .passing_gradients = gradients_pass(),
                           .fit_channels = is_built_in(options.strategy)};
  if (options.open_nets) compiling = open_compile_options(std::move(compiling));
  if (options.select_kernels) compiling.kernels = options.select_kernels(net.network(), compiling);
  Compiled compiled = compile(net.network(), std::move(compiling));
  std::map<std::string, BatchSource> sources = net.sources(compiled.program.samples());
  if (options.open_nets) {
    open.sources = std::make_unique<OpenSources>(net);
    sources = open.sources->sources();
  }
  auto executor =
      std::make_unique<Executor>(net.network(), std::move(compiled), parameters_, std::move(sources),
                                 ExecutorOptions{.seed = solver_.seed,
                                                 .begins = !options.restores || &net != train_.get(),
                                                 .communicator = communicator_});
  if (options.open_nets) open.net = std::make_unique<OpenNet>(*executor, parameters_, *open.sources);
  return executor;
}

Trainer::Wishes Trainer::wishes(StopFlags& flags) const {
  const Wishes own{flags.stop, flags.snapshot.exchange(false),
                   !results_finite_ || optimizer_->non_finite().entry || writer_.has_failed()};
  if (!communicator_ || communicator_->size() == 1) return own;
  constexpr double many = 1 << 20;  // more than there are ranks
  const double all =
      communicator_->sum((own.stop ? 1 : 0) + (own.snapshot ? many : 0) + (own.refuse ? many * many : 0));
  return {std::fmod(all, many) > 0, std::fmod(all, many * many) >= many, all >= many * many};
}

void Trainer::notify_observers(const std::function<void(TrainingObserver&)>& event) const {
  for (TrainingObserver* observer : observers_) event(*observer);
}

PassedOver Trainer::load_weights(const std::string& path) {
  return cortado::load_weights(path, *train_executor_, parameters_);
}

// The thread that writes a snapshot notifies the observers, and these may end once this has thrown: waits for
// it.
bool Trainer::step(int64_t iterations, StopFlags& flags) {
  try {
    return train(iterations, flags);
  } catch (...) {
    writer_.wait();
    throw;
  }
}

bool Trainer::train(int64_t iterations, StopFlags& flags) {
  Wishes wished;
  const int64_t end = iteration_ + iterations;
  if (solver_.snapshot > 0 && end / solver_.snapshot > iteration_ / solver_.snapshot) expect_snapshots();
  while (iteration_ < end && !wished.stop) {
    bool wanted = iteration_ > 0 || solver_.test_initialization;
    if (due(solver_.test_interval) && wanted) test_all(flags);
    wished = wishes(flags);
    if (wished.stop) break;
    if (keeper_) keeper_->agree(iteration_);
    const IterationReport report = train_iteration();
    const Wishes later = wishes(flags);
    if (later.refuse) {
      end_writing();  // throws where the snapshot's writing is what failed
      refuse_values();
    }
    notify_observers([&](TrainingObserver& o) { o.iteration(report); });
    ++iteration_;
    if (writer_.is_done() && !writer_.has_failed()) announce_snapshot();
    wished = {later.stop, wished.snapshot || later.snapshot};
    if (wished.snapshot || due(solver_.snapshot)) save();
  }
  settle();
  end_writing();
  return !wished.stop;
}

bool Trainer::run(StopFlags& flags) {
  if (solver_.snapshot_after_train) expect_snapshots();
  const bool ended = step(solver_.max_iterations - iteration_, flags);
  if ((!ended || solver_.snapshot_after_train) && last_snapshot_iteration_ != iteration_) {
    try {
      save();
      end_writing();
    } catch (...) {
      writer_.wait();  // the observers that it notifies must live until then
      throw;
    }
  }
  if (!ended) return false;
  if (due(solver_.display)) closing_look();
  if (due(solver_.test_interval)) test_all(flags);
  return true;
}

double Trainer::smoothed(double loss) {
  recent_losses_.push_back(loss);
  if (recent_losses_.size() > static_cast<size_t>(solver_.average_loss)) recent_losses_.pop_front();
  return std::accumulate(recent_losses_.begin(), recent_losses_.end(), 0.0) /
         static_cast<double>(recent_losses_.size());
}

IterationReport Trainer::train_iteration() {
  notify_observers([&](TrainingObserver& o) { o.iteration_begins(iteration_); });
  auto start = Clock::now();
  IterationReport report{.iteration = iteration_, .max_iterations = solver_.max_iterations};
  report.learning_rate = learning_rate(solver_.learning_rate, iteration_);
  report.images = train_->batch_size() * solver_.iter_size;
  Optimizer::Batch batch{.iteration = iteration_, .rate = report.learning_rate};
  double loss = 0;
  for (batch.number = 0; batch.number < solver_.iter_size; ++batch.number) {
    loss += run_batch(batch);
    report.data_wait += train_executor_->data_wait();
    report.exposed_communication += train_executor_->exposed_communication();
    report.communication += communication_of(*train_executor_);
  }
  if (optimizer_->defers_updates()) train_executor_->settle();
  optimizer_->end_iteration(batch);
  if (keeper_) keeper_->end_iteration(iteration_ + 1, own_positions());
  report.loss = loss / solver_.iter_size;
  report.smoothed_loss = smoothed(report.loss);
  report.display = due(solver_.display);
  if (report.display) report.outputs = output_values(*train_executor_);
  report.duration = seconds_since(start);
  return report;
}

double Trainer::run_batch(const Optimizer::Batch& batch) {
  const auto index = static_cast<uint64_t>(iteration_ * solver_.iter_size + batch.number);
  double loss = 0;
  Executor::Update update;
  if (!train_open_.net) update = [this, batch](EntryIndex entry) { optimizer_->take_gradient(entry, batch); };
  try {
    loss = train_executor_->run(index, update);
  } catch (const UserError& error) {
    throw UserError(fmt::format("iteration {}: {}", iteration_, error.what()));
  }
  if (!std::isfinite(loss)) refuse_loss(loss);
  if (train_open_.net) update_all(batch);
  results_finite_ = results_finite_ && train_executor_->results_finite();
  return loss;
}

// Updates by the gradients of an open net, which are all there once its iteration has run.
void Trainer::update_all(const Optimizer::Batch& batch) {
  OpenNet& net = *train_open_.net;
  net.ran();
  if (batch.number + 1 == solver_.iter_size) {
    notify_observers([&](TrainingObserver& o) { o.gradients(batch.iteration); });
    net.hand_over_gradients();
  }
  take_gradients(batch);
}

void Trainer::take_gradients(const Optimizer::Batch& batch) {
  std::set<EntryIndex> taken;
  for (EntryIndex entry : train_executor_->parameter_entries()) {
    const bool trained = parameters_.entries()[entry].wants_gradient;
    if (trained && taken.insert(entry).second) optimizer_->take_gradient(entry, batch);
  }
  parameters_.device().queue().finish();
}

// The gradients count as the sum over all batches of an iteration.
void Trainer::update() {
  train_open_.net->keep_gradients();
  train_open_.net->hand_over_gradients();
  Optimizer::Batch batch{.iteration = iteration_, .rate = learning_rate(solver_.learning_rate, iteration_)};
  take_gradients(batch);
  if (solver_.iter_size > 1) {
    for (EntryIndex entry : train_executor_->parameter_entries())
      if (const auto& of = parameters_.entries()[entry]; of.gradient)
        std::fill_n(of.gradient, of.elements, 0.F);
    batch.number = solver_.iter_size - 1;
    take_gradients(batch);
  }
  optimizer_->end_iteration(batch);
  parameters_.refresh();
}

// Caffe ends with one more look at the training loss, without an update.
void Trainer::closing_look() {
  IterationReport report{.iteration = iteration_, .max_iterations = solver_.max_iterations};
  report.loss = train_executor_->run(static_cast<uint64_t>(iteration_ * solver_.iter_size));
  if (!train_executor_->all_finite(report.loss)) refuse_loss(report.loss);
  report.smoothed_loss = smoothed(report.loss);
  report.learning_rate = learning_rate(solver_.learning_rate, iteration_);
  report.display = true;
  report.updated = false;
  report.outputs = output_values(*train_executor_);
  notify_observers([&](TrainingObserver& o) { o.iteration(report); });
}

std::vector<TestReport> Trainer::test() {
  StopFlags never;
  return test_all(never);
}

std::vector<TestReport> Trainer::test_all(StopFlags& flags) {
  settle();
  parameters_.refresh();
  std::vector<TestReport> reports;
  for (size_t net = 0; net < tests_.size(); ++net) {
    std::optional<TestReport> report = test(net, flags);
    if (!report) break;
    reports.push_back(std::move(*report));
  }
  return reports;
}

// Nothing where `flags` ask to stop: the test is given up.
std::optional<TestReport> Trainer::test(size_t net, StopFlags& flags) {
  auto start = Clock::now();
  TestNet& test = tests_[net];
  TestReport report{.iteration = iteration_, .net = static_cast<int>(net)};
  notify_observers([&](TrainingObserver& o) { o.test_begins(iteration_, report.net); });
  double loss = 0;
  int count = solver_.test_iterations[net];
  for (int batch = 0; batch < count; ++batch) {
    // Several ranks stop together, after the test.
    if (flags.stop && (!communicator_ || communicator_->size() == 1)) return std::nullopt;
    const double batch_loss = test.executor->run(static_cast<uint64_t>(test.batches++));
    if (test.open.net) test.open.net->ran();
    require_finite(*test.executor, batch_loss,
                   fmt::format("iteration {}: test net #{}, batch {}", iteration_, net, batch));
    loss += batch_loss;
    add_values(report.outputs, output_values(*test.executor));
  }
  for (OutputValue& output : report.outputs) output.value /= count;
  if (solver_.test_compute_loss && count > 0) report.loss = loss / count;
  report.duration = seconds_since(start);
  notify_observers([&](TrainingObserver& o) { o.test(report); });
  return report;
}

std::vector<float> Trainer::parameter(ParameterIndex index) const {
  return gather_parameter(optimizer_->cut(), parameters_, index);
}

void Trainer::set_parameter(ParameterIndex index, std::span<const float> whole) {
  parameters_.set_from_whole(optimizer_->cut().entries()[index], whole);
  parameters_.refresh();
}

int64_t Trainer::skipped_records() const {
  int64_t skipped = count_over_ranks(communicator_, train_->skipped_records());
  for (const TestNet& test : tests_) skipped += count_over_ranks(communicator_, test.data->skipped_records());
  return skipped;
}

}  // namespace cortado
