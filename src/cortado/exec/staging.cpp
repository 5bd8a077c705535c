#include "cortado/exec/staging.h"

#include <algorithm>

#include "cortado/base/error.h"

namespace cortado {
namespace {

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
      copies_(device_.make_queue()) {
  pinned_.push_back(device_.pin(mirror_.data(), mirror_.size()));
  for (BufferIndex b : indices(program.buffers)) {
    const Buffer& buffer = program.buffers[b];
    if (buffer.kind == Buffer::Kind::batch) batches_.emplace(b, device::Memory(buffer.size, device_));
  }
  for (StepIndex s : indices(program.steps)) {
    const Step& step = program.steps[s];
    if (step.lane != Lane::communication) continue;
    Message& message = messages_[s];
    message.out = device_.make_event();
    message.in = device_.make_event();
    for (StepIndex other : step.waits)
      if (!computed_[other] && program.steps[other].lane == Lane::compute)
        computed_[other] = device_.make_event();
    std::visit(
        Overloaded{
            [&](const steps::Exchange& exchange) { plan_exchange(exchange, message); },
            [&](const steps::SumStatistics& sum) { message.reads = message.writes = {copy_of(sum.sums)}; },
            [&](const steps::MovesParameters auto&) {
              plan_parameters(step, message);
              pinned_.push_back(device_.pin(message.parameters.data(), message.parameters.size()));
            },
            [](const steps::Local auto&) {}},
        step.action);
  }
}

Staging::Copy Staging::copy_of(const View& view) const {
  const int64_t offset = program_.buffers[view.buffer].offset;
  ensure(offset >= 0, "what is communicated lies in the arena");
  const int64_t begin = offset + view.bytes.begin;
  return {arena_.data() + begin, mirror_.data() + begin, {view.bytes.size()}};
}

void Staging::plan_exchange(const steps::Exchange& exchange, Message& message) const {
  const View &from = exchange.from, &to = exchange.to;
  if (from && program_.buffers[from.buffer].kind != Buffer::Kind::batch) message.reads = {copy_of(from)};
  if (to) message.writes = {copy_of(to)};
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

std::byte* Staging::host(const View& view) const {
  return mirror_.data() + program_.buffers[view.buffer].offset + view.bytes.begin;
}
float* Staging::host_parameters(StepIndex step) const { return messages_[step].parameters.floats(); }
float* Staging::batch(BufferIndex buffer) const { return batches_.at(buffer).floats(); }

void Staging::begin_copy_out(StepIndex step) {
  const Message& message = messages_[step];
  for (StepIndex other : program_.steps[step].waits)
    if (computed_[other]) copies_->wait(*computed_[other]);
  for (const Copy& copy : message.reads) copies_->copy_out(copy.host, copy.device, copy.size);
  copies_->record(*message.out);
  going_out_.push_back(step);
}

StepIndex Staging::next_out() {
  if (going_out_.empty() || !messages_[going_out_.front()].out->reached()) return {};
  const StepIndex step = going_out_.front();
  going_out_.pop_front();
  return step;
}

bool Staging::is_out(StepIndex step) const { return std::ranges::find(going_out_, step) == going_out_.end(); }

void Staging::begin_copy_in(StepIndex index, const IndexedVector<BufferIndex, const float*>& batches) {
  const Step& step = program_.steps[index];
  if (const auto* load = step.as<steps::Load>()) {
    for (const View& view : program_.works[load->work].outputs) {
      if (!view) continue;
      const device::Memory& memory = batches_.at(view.buffer);
      copies_->copy_in(memory.data(), reinterpret_cast<const std::byte*>(batches[view.buffer]),
                       memory.size());
    }
  }
  for (const Copy& copy : messages_[index].writes) copies_->copy_in(copy.device, copy.host, copy.size);
  copies_->record(*messages_[index].in);
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
  device::HostView copy(device_, arena_.floats(program_.buffers[view.buffer].offset + view.bytes.begin),
                        (view.bytes.size() + 3) / 4);
  const auto& kept = values_.insert_or_assign(view.buffer, std::move(copy)).first->second;
  return reinterpret_cast<const std::byte*>(kept.values().data());
}

void Staging::restart() { going_out_.clear(); }

}  // namespace cortado
