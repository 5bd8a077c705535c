// Where buffers lie in memory, for kernels and for messages, and the works that are bound to it.
#include "cortado/exec/executor.h"
#include "cortado/exec/executor_bound.h"
#include "cortado/exec/staging.h"

namespace cortado {

float* Executor::batch_pointer(BufferIndex buffer) const { return const_cast<float*>(batches_[buffer]); }

float* Executor::pointer(BufferIndex buffer, int64_t offset) const {
  if (!buffer) return nullptr;
  if (program_.buffers[buffer].kind == Buffer::Kind::batch)
    return staging_ ? device_.for_kernels(staging_->batch(buffer)) : batch_pointer(buffer);
  return offset < 0 ? nullptr : device_.for_kernels(arena_.floats(offset));
}

int64_t Executor::offset_of(const View& view, StepIndex step) const {
  if (!view) return -1;
  const Buffer& buffer = program_.buffers[view.buffer];
  return step ? buffer.offset_at(step) : buffer.offset_at_end();
}

int64_t Executor::elements_of(const View& view) const {
  return elements_in({view.bytes.size()}, program_.buffers[view.buffer].type);
}

float* Executor::pointer(const View& view, StepIndex step) const {
  auto* whole = reinterpret_cast<std::byte*>(pointer(view.buffer, offset_of(view, step)));
  return whole ? reinterpret_cast<float*>(whole + view.bytes.begin) : nullptr;
}

std::byte* Executor::message_pointer(const View& view, StepIndex step) const {
  if (!staging_) return bytes(view, step);
  if (!view) return nullptr;
  const Buffer& buffer = program_.buffers[view.buffer];
  if (buffer.kind == Buffer::Kind::batch)
    return reinterpret_cast<std::byte*>(batch_pointer(view.buffer)) + view.bytes.begin;
  return buffer.offset < 0 ? nullptr : staging_->host(view, offset_of(view, step));
}

void Executor::bind() {
  bound_.resize(program_.steps.size());
  for (StepIndex s : indices(program_.steps)) {
    const auto* step = program_.steps[s].as<steps::Compute>();
    if (!step) continue;
    const Work& work = program_.works[step->work];
    if (work.facts.kernel < 0) continue;
    Bound& bound = bound_[s];
    bound.kernel = compiled_.kernels[work.facts.kernel].kernel.get();
    bind_work(work, s, bound.arguments);
    bound.arguments.stream = queue_.stream();
    bound.arguments.scratch = reinterpret_cast<std::byte*>(pointer(step->scratch, s));
    bound.arguments.sums = reinterpret_cast<double*>(pointer(step->sums, s));
    bound.arguments.again = step->again;
  }
}

void Executor::bind_work(const Work& work, StepIndex step, Arguments& arguments) const {
  for (const View& view : work.inputs) arguments.inputs.push_back(pointer(view, step));
  for (const View& view : work.outputs) arguments.outputs.push_back(pointer(view, step));
  for (const View& view : work.output_gradients) arguments.output_gradients.push_back(pointer(view, step));
  for (const View& view : work.input_gradients) arguments.input_gradients.push_back(pointer(view, step));
  for (size_t p = 0; p < work.parameters.size(); ++p) {
    const auto& entry = parameters_.entries()[entries_[work.parameters[p]]];
    arguments.parameters.push_back(device_.for_kernels(entry.value));
    const View& partial = work.partial_gradients[p];
    float* gradient = partial ? pointer(partial, step) : device_.for_kernels(entry.gradient);
    arguments.parameter_gradients.push_back(work.task.parameter_gradients[p] ? gradient : nullptr);
  }
  arguments.input_gradients_first = work.input_gradients_first;
  arguments.saved = bytes(work.saved, step);
  arguments.random = {options_.seed, 0, RandomStream::owner_of(network_.nodes()[work.nodes.front()].name)};
}

}  // namespace cortado
