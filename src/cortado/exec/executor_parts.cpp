// Parts of an iteration, on one rank: a few of the Program's steps, over values that the caller may have
// written.
#include <thread>

#include "cortado/base/denormals.h"
#include "cortado/base/error.h"
#include "cortado/base/spoken_order.h"
#include "cortado/exec/executor.h"
#include "cortado/exec/executor_bound.h"

namespace cortado {

void Executor::run_steps(std::span<const StepIndex> steps, std::optional<uint64_t> iteration) {
  const FlushedDenormals no_denormals;
  ensure(communicator_.size() == 1 && !staging_,
         "parts of an iteration run on one rank, in memory of the host");
  iteration_ = iteration.value_or(iteration_);
  iteration_start_ = std::chrono::steady_clock::now();
  try {
    for (const StepIndex s : steps) {
      computing_ = s;
      if (program_.steps[s].lane == Lane::compute) {
        run_step(s, {});
        continue;
      }
      queue_.finish();
      begin_message(s);
      while (!message_done(s, true)) std::this_thread::yield();
    }
    queue_.finish();
  } catch (...) {
    drain();
    throw;
  }
}

void Executor::set_values(BufferIndex buffer, const Shape& shape, std::span<const float> values) {
  ensure(buffer && program_.buffers[buffer].type == ElementType::f32 &&
             std::ssize(values) == elements_of(program_.whole(buffer)),
         "values of another size or type than the tensor");
  from_spoken(shape, values.data(), pointer(program_.whole(buffer), {}));
}

void Executor::set_tensor(TensorIndex tensor, std::span<const float> values) {
  set_values(program_.tensor_buffer(tensor), network_.tensors()[tensor].shape, values);
}

void Executor::set_gradient(TensorIndex tensor, std::span<const float> values) {
  set_values(program_.gradient_buffer(tensor), network_.tensors()[tensor].shape, values);
}

void Executor::clear_gradients() {
  for (const Buffer& buffer : program_.buffers)
    if (buffer.kind == Buffer::Kind::gradient && buffer.offset >= 0)
      queue_.fill(arena_.floats(buffer.offset), 0, elements_in(buffer.size, buffer.type));
  queue_.finish();
}

}  // namespace cortado
