#include "cortado/exec/staging.h"

#include <algorithm>

#include "cortado/base/error.h"
#include "cortado/kernels/arrays.h"

namespace cortado {
namespace {

// Of a batch: a piece is copied into pinned memory while the one before is on its way to the device.
constexpr int64_t piece_elements = int64_t{1} << 20;

std::byte* bytes(float* memory) { return reinterpret_cast<std::byte*>(memory); }

}  // namespace

Staging::Staging(const Program& program, const ParameterStore& parameters, const ParameterEntries& entries,
                 const device::Memory& arena)
    : program_(program),
      parameters_(parameters),
      entries_(entries),
      arena_(arena),
      device_(parameters.device()),
      mirror_(arena.size()),
      messages_(program.steps.size()),
      computed_(program.steps.size()),
      copies_(device_.make_queue()),
      links_(device_.make_queue()) {
  const auto pin = [&](const device::Memory& memory) {
    pinned_.push_back(device_.pin(memory.data(), memory.size()));
  };
  pin(mirror_);
  for (BufferIndex b : indices(program.buffers)) {
    const Buffer& buffer = program.buffers[b];
    if (buffer.kind != Buffer::Kind::batch) continue;
    Batch batch{device::Memory(buffer.size, device_), device::Memory(buffer.size)};
    pin(batches_.emplace(b, std::move(batch)).first->second.pinned);
  }
  for (StepIndex s : indices(program.steps)) {
    const Step& step = program.steps[s];
    if (step.lane != Lane::communication) continue;
    Message& message = messages_[s];
    message.queue = copies_.get();
    message.out = device_.make_event();
    message.in = device_.make_event();
    for (StepIndex other : step.waits)
      if (!computed_[other] && program.steps[other].lane == Lane::compute)
        computed_[other] = device_.make_event();
    std::visit(Overloaded{[&](const steps::SumStatistics& sum) {
                            message.reads = message.writes = {copy_of(sum.sums, s)};
                          },
                          [&](const steps::MovesParameters auto&) {
                            plan_parameters(step, message);
                            pin(message.parameters);
                          },
                          [](const steps::Exchange&) {},  // bind() plans it
                          [](const steps::Local auto&) {}},
               step.action);
  }
}

Staging::Copy Staging::copy_of(const View& view, StepIndex step) const {
  const int64_t offset = program_.buffers[view.buffer].offset_at(step);
  ensure(offset >= 0, "what is communicated lies in the arena");
  const int64_t begin = offset + view.bytes.begin;
  return {arena_.data() + begin, mirror_.data() + begin, {view.bytes.size()}};
}

Staging::Copy Staging::copy_of(const BoundExchange::Run& run) const {
  const int64_t begin = run.memory - device_.for_kernels(arena_.data());
  ensure(begin >= 0 && begin + run.size.count <= arena_.size().count, "what travels lies in the arena");
  return {arena_.data() + begin, mirror_.data() + begin, run.size};
}

void Staging::bind(StepIndex step, BoundExchange& exchange, bool by_links) {
  Message& message = messages_[step];
  message.queue = &queue_of_messages(by_links);
  message.exchange = &exchange;
  message.some_by_links = exchange.uses_links();
  for (const auto& run : exchange.sent_elsewhere()) message.reads.push_back(copy_of(run));
  for (const auto& run : exchange.received_elsewhere()) message.writes.push_back(copy_of(run));
}

void Staging::bind_on_host(StepIndex step) {
  const auto& exchange = *program_.steps[step].as<steps::Exchange>();
  if (exchange.from) messages_[step].reads = {copy_of(exchange.from, step)};
  if (exchange.to) messages_[step].writes = {copy_of(exchange.to, step)};
}

void Staging::bind(StepIndex step, Transmission& by_links) {
  Message& message = messages_[step];
  message.queue = links_.get();
  message.by_links = &by_links;
}

// A step's gradients lie one after the other.
void Staging::plan_parameters(const Step& step, Message& message) const {
  const auto& first = parameters_.entries()[entries_[step.parameters().front()]];
  const auto& last = parameters_.entries()[entries_[step.parameters().back()]];
  const bool values = step.facts().values != Use::none;
  float* const begin = values ? first.value : first.gradient;
  float* const end = (values ? last.value : last.gradient) + last.elements;
  const Bytes size{bytes(end) - bytes(begin)};
  message.parameters = device::Memory(size);
  message.reads = message.writes = {{bytes(begin), message.parameters.data(), size}};
}

std::byte* Staging::host(const View& view, int64_t offset) const {
  return mirror_.data() + offset + view.bytes.begin;
}
std::byte* Staging::host(std::byte* in_arena) const { return copy_of({in_arena, {}}).host; }
float* Staging::host_parameters(StepIndex step) const { return messages_[step].parameters.floats(); }
float* Staging::batch(BufferIndex buffer) const { return batches_.at(buffer).memory.floats(); }

// What is given to the queue from now on comes after the steps that `step` waits for.
void Staging::wait_before(const Step& step, device::Queue& queue) const {
  for (const std::vector<StepIndex>* waits : {&step.waits, &step.waits_before})
    for (StepIndex other : *waits) {
      if (computed_[other]) queue.wait(*computed_[other]);
      if (messages_[other].in && messages_[other].queue != &queue) queue.wait(*messages_[other].in);
    }
}

void Staging::begin(StepIndex step) {
  const Message& message = messages_[step];
  device::Queue& queue = *message.queue;
  wait_before(program_.steps[step], queue);
  if (message.exchange) message.exchange->pack();
  if (by_links(step)) {
    if (message.by_links) message.by_links->start();
    if (message.exchange) message.exchange->send(true);
    if (message.exchange) message.exchange->keep_own();
    if (message.exchange) message.exchange->unpack();
    return queue.record(*message.in);
  }
  for (const Copy& copy : message.reads) queue.copy_out(copy.host, copy.device, copy.size);
  queue.record(*message.out);
  if (message.exchange && message.some_by_links) {
    links_->wait(*message.out);
    message.exchange->send(true);  // now: links are used in the order of steps, on all ranks
  }
  if (message.exchange) message.exchange->keep_own();
  going_out_.push_back(step);
}

StepIndex Staging::next_out() {
  if (going_out_.empty() || !messages_[going_out_.front()].out->reached()) return {};
  const StepIndex step = going_out_.front();
  going_out_.pop_front();
  return step;
}

bool Staging::is_out(StepIndex step) const { return std::ranges::find(going_out_, step) == going_out_.end(); }

// The copies of the batch before have ended: an iteration does not end without them.
void Staging::copy_batch(const Batch& batch, const float* values) {
  const int64_t elements = elements_in(batch.pinned.size(), ElementType::f32);
  for (int64_t done = 0; done < elements; done += piece_elements) {
    const int64_t count = std::min(piece_elements, elements - done);
    const int64_t offset = bytes_of(done, ElementType::f32).count;
    arrays::copy(batch.pinned.floats(offset), values + done, count);
    copies_->copy_in(batch.memory.data() + offset, batch.pinned.data() + offset,
                     bytes_of(count, ElementType::f32));
  }
}

void Staging::bring_near(StepIndex step, const std::vector<const float*>& tensors) {
  messages_[step].in->wait();
  for (size_t top = 0; top < tensors.size(); ++top) {
    const View& view = work_of(step).outputs[top];
    if (!view) continue;
    const device::Memory& pinned = batches_.at(view.buffer).pinned;
    arrays::copy(pinned.floats(), tensors[top], elements_in(pinned.size(), ElementType::f32));
  }
}

void Staging::begin_copy_in(StepIndex index, const IndexedVector<BufferIndex, const float*>& batches,
                            bool near) {
  const Message& message = messages_[index];
  if (program_.steps[index].is<steps::Load>()) {
    for (const View& view : work_of(index).outputs) {
      if (!view) continue;
      const Batch& batch = batches_.at(view.buffer);
      if (near)
        copies_->copy_in(batch.memory.data(), batch.pinned.data(), batch.pinned.size());
      else
        copy_batch(batch, batches[view.buffer]);
    }
  }
  for (const Copy& copy : message.writes) copies_->copy_in(copy.device, copy.host, copy.size);
  if (message.exchange) message.exchange->unpack();
  copies_->record(*message.in);
}

void Staging::wait_for(StepIndex index) {
  const Step& step = program_.steps[index];
  for (const std::vector<StepIndex>* waits : {&step.waits, &step.waits_before})
    for (StepIndex other : *waits)
      if (messages_[other].in) device_.queue().wait(*messages_[other].in);
}

void Staging::wait_for_messages(bool carried) {
  for (StepIndex s : indices(messages_))
    if (messages_[s].in && (carried || !program_.steps[s].carried)) device_.queue().wait(*messages_[s].in);
}

void Staging::computed(StepIndex step) {
  if (computed_[step]) device_.queue().record(*computed_[step]);
}

// Stays until something in the same buffer is asked for.
const std::byte* Staging::values(const View& view) {
  device::HostView copy(device_,
                        arena_.floats(program_.buffers[view.buffer].offset_at_end() + view.bytes.begin),
                        (view.bytes.size() + 3) / 4);
  const auto& kept = values_.insert_or_assign(view.buffer, std::move(copy)).first->second;
  return reinterpret_cast<const std::byte*>(kept.values().data());
}

void Staging::restart() { going_out_.clear(); }

}  // namespace cortado
