// The Executor's part in a job of several ranks: its communication steps.
#include <algorithm>

#include "cortado/base/activity.h"
#include "cortado/base/error.h"
#include "cortado/comm/tree_sum.h"
#include "cortado/exec/bound_exchange.h"
#include "cortado/exec/executor.h"
#include "cortado/exec/executor_bound.h"
#include "cortado/exec/lane_thread.h"
#include "cortado/exec/staging.h"
#include "cortado/program/tags.h"

namespace cortado {

// All ranks ask each other for their devices, and those with links make their groups.
void Executor::meet_links() {
  if (communicator_.size() == 1) return;
  ways_ = ways_of(communicator_, device_);
  std::vector<std::vector<int>> groups;
  for (const Step& step : program_.steps)
    if (!step.group().empty() && ways_->of(step.group()) == Way::link) groups.push_back(step.group());
  links_ = make_links(communicator_, device_, staging_ ? staging_->queue_of_messages(true) : queue_, *ways_,
                      groups);
}

void Executor::bind_messages() {
  messages_.resize(program_.steps.size());
  for (StepIndex s : indices(program_.steps)) {
    std::visit(Overloaded{[&](const steps::Exchange& exchange) { bind_exchange(s, exchange); },
                          [&](const steps::OfGroup auto&) { bind_transmission(s); },
                          [](const steps::Local auto&) {}},
               program_.steps[s].action);
  }
}

// True when the source lies in a reader's memory, which is known only when a batch is there.
bool Executor::reads_batch(const steps::Exchange& exchange) const {
  return !staging_ && exchange.from && program_.buffers[exchange.from.buffer].kind == Buffer::Kind::batch;
}

void Executor::bind_exchange(StepIndex index, const steps::Exchange& exchange) {
  if (reads_batch(exchange)) return;
  const Movement movement = program_.movement_of(program_.steps[index]);
  if (staging_ && !(movement.sums && movement.in_tree)) return bind_on_device(index, exchange, movement);
  messages_[index].exchange = std::make_unique<BoundExchange>(
      movement, message_pointer(exchange.from, index), message_pointer(exchange.to, index),
      message_pointer(exchange.staging, index), host_carriers(), communicator_.rank(), exchange.tag);
  if (staging_) staging_->bind_on_host(index);
}

// Whether all that it says to others goes by links.
bool Executor::goes_by_links(const Movement& movement) const {
  if (!links_ || !movement.talks()) return false;
  if (!movement.group.empty()) return ways_->of(movement.group) == Way::link;
  const auto linked = [&](const Movement::Part& part) { return ways_->with(part.peer) == Way::link; };
  return std::ranges::all_of(movement.sends, linked) && std::ranges::all_of(movement.receives, linked);
}

std::vector<Carrier> Executor::host_carriers() const { return {{&communicator_, {}, {}}}; }

void Executor::bind_on_device(StepIndex index, const steps::Exchange& exchange, const Movement& movement) {
  const bool by_links = goes_by_links(movement);
  std::vector<Carrier> carriers;
  const auto carry = [&](Way way, Communicator* by) {
    carriers.push_back(
        {by, {}, [this, way](int peer) { return ways_->with(peer) == way; }, way == Way::link});
  };
  if (movement.group.empty() && ways_) {
    if (links_) carry(Way::link, links_.get());
    carry(Way::device_mpi, &communicator_);
  } else if (by_links) {
    carriers.push_back({links_.get(), {}, {}, true});
  }
  carriers.push_back({&communicator_, [this](std::byte* memory) { return staging_->host(memory); }, {}});
  messages_[index].exchange = std::make_unique<BoundExchange>(
      movement, bytes(exchange.from, index), bytes(exchange.to, index), bytes(exchange.staging, index),
      std::move(carriers), communicator_.rank(), exchange.tag, &staging_->queue_of_messages(by_links));
  staging_->bind(index, *messages_[index].exchange, by_links);
}

void Executor::bind_transmission(StepIndex index) {
  const bool by_links =
      links_ && !program_.placement->reproducible && ways_->of(program_.steps[index].group()) == Way::link;
  messages_[index].transmission = transmission_of(index, by_links);
  if (by_links) staging_->bind(index, *messages_[index].transmission);
}

// Makes the transmission of a step that sums or gathers over its group, bound to the step's memory.
std::unique_ptr<Transmission> Executor::transmission_of(StepIndex index, bool by_links) {
  const Step& step = program_.steps[index];
  Communicator& by = by_links ? *links_ : communicator_;
  const std::vector<int>& group = step.group();
  if (const auto* statistics = step.as<steps::SumStatistics>()) {
    const View& sums = statistics->sums;
    return sum_over(
        step,
        {by_links ? bytes(sums, index) : message_pointer(sums, index), program_.buffers[sums.buffer].type},
        elements_of(sums), by);
  }
  const auto& entry = parameters_.entries()[entries_[step.parameters()[0]]];
  float* const own = device_.for_kernels(step.facts().values != Use::none ? entry.value : entry.gradient);
  float* const data = staging_ && !by_links ? staging_->host_parameters(index) : own;
  std::vector<int64_t> shares;
  const int members = static_cast<int>(group.size());
  for (int i = 0; i < members; ++i) shares.push_back(block_of(entry.elements, members, i).size());
  switch (program_.collective_of(step)) {
    case Collective::allreduce:
      return sum_over(step, data, chunk_elements(step), by);
    case Collective::reduce_scatter:
    case Collective::push:
      return by.reduce_scatter(group, data, std::move(shares));
    case Collective::allgather:
    case Collective::pull:
      return by.allgather(group, data, std::move(shares));
  }
  throw InternalError("a group does something that is no collective");
}

// Sums over the group of a step.
std::unique_ptr<Transmission> Executor::sum_over(const Step& step, ElementPointer values, int64_t count,
                                                 Communicator& by) {
  const Placement& placement = *program_.placement;
  if (!placement.reproducible) return by.allreduce(step.group(), values, count);
  const MessageTags tags(placement);
  const auto* statistics = step.as<steps::SumStatistics>();
  const int tag = statistics
                      ? tags.statistics(program_.works[statistics->work].operations[0], statistics->backward)
                      : tags.gradients(step.parameters()[0]);
  return make_tree_sum(by, step.group(), values, count, tag);
}

// Gradients of a chunk lie one after the other (parameter order in ParameterStore::add).
int64_t Executor::chunk_elements(const Step& sum) const {
  const auto chunk = sum.parameters();
  const auto& first = parameters_.entries()[entries_[chunk.front()]];
  const auto& last = parameters_.entries()[entries_[chunk.back()]];
  const int64_t elements = last.gradient + last.elements - first.gradient;
  int64_t least = 0;
  for (ParameterIndex parameter : chunk) least += parameters_.entries()[entries_[parameter]].elements;
  ensure(elements >= least && elements <= least + 16 * std::ssize(chunk),
         "gradients of a chunk lie together");
  return elements;
}

void Executor::start_message(StepIndex index) {
  log_->begun[index] = std::chrono::steady_clock::now();
  if (staging_)
    staging_->begin(index);
  else
    begin_message(index);
}

void Executor::begin_message(StepIndex index) {
  const Step& step = program_.steps[index];
  BoundMessage& message = messages_[index];
  std::visit(Overloaded{[&](const steps::Load&) {
                          if (keeps_batch_)
                            brought_.erase(index);
                          else
                            load(index);
                        },
                        [&](const steps::Exchange& exchange) {
                          bind_batch(index, exchange);
                          message.exchange->by_device() ? message.exchange->send(false)
                                                        : message.exchange->start();
                        },
                        [&](const steps::OfGroup auto&) { message.transmission->start(); },
                        [](const steps::Local auto&) {}},
             step.action);
}

bool Executor::message_arrived(StepIndex index, bool first) {
  if (staging_) {
    for (StepIndex out = staging_->next_out(); out; out = staging_->next_out()) begin_message(out);
    if (!staging_->is_out(index)) return false;
  }
  if (!message_done(index, first)) return false;
  if (staging_ && staging_->by_links(index)) {
    if (!staging_->is_in(index)) return false;
  } else if (staging_) {
    staging_->begin_copy_in(index, batches_, brought_.erase(index) > 0);
  }
  count_progress();
  std::lock_guard lock(log_->mutex);
  log_->last[index] = {log_->begun[index], std::chrono::steady_clock::now()};
  return true;
}

bool Executor::message_done(StepIndex index, bool first) {
  BoundMessage& message = messages_[index];
  if (message.exchange) message.exchange->give_way(!first);
  if (message.transmission) message.transmission->give_way(!first);
  if (BoundExchange* exchange = message.exchange.get()) {
    const bool done = exchange->by_device() ? exchange->arrived() : exchange->test();
    if (!done) return false;
  }
  return !message.transmission || message.transmission->test();
}

// Another thread calls this while both lanes run.
Activity Executor::activity() const {
  const StepIndex waited_for = communication_->waited_for();
  if (!waited_for)
    return {.text = "computing " + spoken(program_, network_, program_.steps[computing_.load()])};
  const Step& step = program_.steps[waited_for];
  Activity activity{.waits = step.communicates(), .text = spoken(program_, network_, step)};
  if (step.is<steps::Exchange>() && step.group().empty()) {
    const Movement movement = program_.movement_of(step);
    for (const auto* parts : {&movement.receives, &movement.sends})
      for (const Movement::Part& part : *parts) activity.ranks.push_back(part.peer);
  } else if (std::ssize(step.group()) < communicator_.size()) {
    activity.ranks = step.group();
  }
  std::ranges::sort(activity.ranks);
  const auto doubles = std::ranges::unique(activity.ranks);
  activity.ranks.erase(doubles.begin(), doubles.end());
  std::erase(activity.ranks, communicator_.rank());
  return activity;
}

// Binds a copy out of a reader's memory, which changes with each batch. Ranks read what they need, so nothing
// travels.
void Executor::bind_batch(StepIndex index, const steps::Exchange& exchange) {
  if (!reads_batch(exchange)) return;
  const Movement& movement = program_.works[exchange.work].movement;
  auto* from = reinterpret_cast<std::byte*>(batch_pointer(exchange.from.buffer));
  messages_[index].exchange =
      std::make_unique<BoundExchange>(movement, from, message_pointer(exchange.to, index), nullptr,
                                      host_carriers(), communicator_.rank(), exchange.tag);
}

Range Executor::updated_elements(ParameterIndex parameter) const {
  return program_.updated_elements(parameter, parameters_.entries()[entries_[parameter]].elements);
}

}  // namespace cortado
