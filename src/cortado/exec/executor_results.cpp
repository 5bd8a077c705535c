// What the last run of an Executor left: its loss, tensors and gradients, and the kernels that made them.
#include <concepts>
#include <fmt/format.h>

#include "cortado/base/spoken_order.h"
#include "cortado/exec/executor.h"
#include "cortado/exec/staging.h"
#include "cortado/exec/step_graphs.h"
#include "cortado/kernels/arrays.h"
#include "cortado/kernels/tensor_type.h"

namespace cortado {

double Executor::loss() const {
  double total = 0;
  for (const auto& node : network_.nodes()) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.loss_weights[i] == 0) continue;
      double sum = 0;
      for (float value : tensor(node.outputs[i])) sum += value;
      total += node.loss_weights[i] * sum;
    }
  }
  return total;
}

std::span<const float> Executor::tensor(TensorIndex tensor) const {
  return values(program_.whole(program_.tensor_buffer(tensor)));
}

std::span<const float> Executor::gradient(TensorIndex tensor) const {
  return values(program_.whole(program_.gradient_buffer(tensor)));
}

// Returns the elements of a view as floats in memory of the host; empty where the view has no memory.
std::span<const float> Executor::values(const View& view) const {
  if (!view) return {};
  const Buffer& of = program_.buffers[view.buffer];
  const std::byte* memory = staging_ && of.kind != Buffer::Kind::batch && of.offset >= 0
                                ? staging_->values(view)
                                : message_pointer(view, {});
  if (!memory) return {};
  const int64_t count = elements_of(view);
  return with_tensor_type(of.type, [&]<typename E>() -> std::span<const float> {
    const E* values = reinterpret_cast<const E*>(memory);
    if constexpr (std::same_as<E, float>) {
      return {values, static_cast<size_t>(count)};
    } else {
      std::vector<float>& floats = widened_[view.buffer];
      floats.resize(static_cast<size_t>(count));
      arrays::convert(values, floats.data(), count);
      return floats;
    }
  });
}

std::optional<Box> Executor::gradient_box(TensorIndex tensor) const {
  if (!program_.gradient_buffer(tensor)) return std::nullopt;
  return program_.placement->values[program_.placement->tensor_values[tensor]].layout[communicator_.rank()];
}

std::vector<float> Executor::canonical_tensor(TensorIndex tensor) const {
  const std::span<const float> own = this->tensor(tensor);
  if (own.empty()) return {};
  std::vector<float> values(own.size());
  to_spoken(tensor_box(tensor)->shape(), own.data(), values.data());
  return values;
}

std::vector<float> Executor::canonical_gradient(TensorIndex tensor) const {
  const std::span<const float> own = gradient(tensor);
  if (own.empty()) return {};
  std::vector<float> values(own.size());
  to_spoken(gradient_box(tensor)->shape(), own.data(), values.data());
  return values;
}

std::vector<std::string> Executor::kernel_report() const {
  std::vector<std::string> lines;
  for (const Work& work : program_.works) {
    if (work.facts.kernel < 0) continue;
    const Selection& selection = compiled_.kernels[work.facts.kernel];
    std::string line = fmt::format("{:28} {}", name_of(work, network_), selection.kernel->name());
    for (const std::string& refusal : selection.refusals) line += "; not " + refusal;
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> Executor::device_report() const {
  if (!staging_) return {};
  std::vector<std::string> lines = {"graphs: " + (graphs_ ? graphs_->text() : "none: they are off")};
  if (ways_) std::ranges::copy(ways_->text(), std::back_inserter(lines));
  return lines;
}

}  // namespace cortado
