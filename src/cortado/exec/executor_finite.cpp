// How the Executor finds values that are infinite or not a number.
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "cortado/device/host_view.h"
#include "cortado/exec/agreement.h"
#include "cortado/exec/executor.h"
#include "cortado/exec/executor_bound.h"
#include "cortado/kernels/arrays.h"

namespace cortado {
namespace {

int64_t first_in(std::span<const float> values) {
  return arrays::first_non_finite(values.data(), static_cast<int64_t>(values.size()));
}

}  // namespace

int64_t Executor::first_in(const ParameterStore::Entry& entry) const {
  return cortado::first_in(device::HostView(device_, entry.value, entry.elements).values());
}

struct Executor::Finding {
  OperationIndex place{std::numeric_limits<int>::max()};  // nowhere: before all
  std::string what;
};

bool Executor::results_finite() const {
  if (communicator_.rank() == 0) {
    for (TensorIndex output : network_.outputs())
      if (cortado::first_in(tensor(output)) >= 0) return false;
  }
  if (!network_.learns()) return true;
  for (EntryIndex index : entries_) {
    const auto& entry = parameters_.entries()[index];
    if (!entry.held || entry.spec.learnable) continue;
    if (first_in(entry) >= 0) return false;
  }
  return true;
}

bool Executor::all_finite(double loss) const {
  const bool mine = std::isfinite(loss) && results_finite();
  return communicator_.size() == 1 ? mine : communicator_.sum(mine ? 0 : 1) == 0;
}

// Running statistics that the forward pass writes count last, so that the layer that spoiled them is found
// first.
Executor::Finding Executor::non_finite_parameter() const {
  Finding first;
  for (EntryIndex index : entries_) {
    const auto& entry = parameters_.entries()[index];
    const bool written = network_.learns() && !entry.spec.learnable;
    const OperationIndex place(written ? std::numeric_limits<int>::max() - 1 : -1);
    if (!entry.held || place >= first.place) continue;
    if (first_in(entry) >= 0) first = {place, fmt::format("parameter '{}'", entry.name)};
  }
  return first;
}

// Looks at the outputs of a work that has just run, or at the batch of a source.
Executor::Finding Executor::non_finite_output(const Work& work) const {
  const auto& node = network_.nodes()[work.nodes.back()];
  for (size_t i = 0; i < work.outputs.size(); ++i) {
    const std::span<const float> found = values(work.outputs[i]);
    if (found.data() == nullptr) continue;
    const int64_t count = std::ssize(found), at = cortado::first_in(found);
    if (at < 0) continue;
    const std::string& blob = network_.tensors()[node.outputs[i]].name;
    std::string part = fmt::format("output '{}'", blob);
    if (node.layer->is_source()) {
      const Range samples = program_.samples().at(node.name).samples;
      const int64_t row = count / std::max<int64_t>(1, samples.size());
      if (row > 0) part = fmt::format("sample {} of '{}'", samples.begin + at / row, blob);
    }
    return {work.operations.front(),
            fmt::format("layer '{}' ({}), {}", layers_of(work, network_), node.where.text(), part)};
  }
  return {};
}

// Every rank looks at its own part; the first layer that any of them finds counts.
std::string Executor::first_non_finite() {
  Finding first = non_finite_parameter();
  auto look = [&](const Work& work) {
    Finding finding = non_finite_output(work);
    if (finding.place < first.place) first = std::move(finding);
  };
  for (const Step& step : program_.steps)
    if (step.is<steps::Load>()) look(program_.works[step.work()]);
  keeps_batch_ = true;
  run_lanes([&](StepIndex s) {
    run_step(s, {});
    const Step& step = program_.steps[s];
    if (step.runs(Pass::forward)) look(program_.works[step.work()]);
    return !step.is<steps::Barrier>();
  });
  keeps_batch_ = false;
  const auto texts = texts_of_all(communicator_, fmt::format("{:012} {}", first.place, first.what));
  first = {};
  for (const std::string& text : texts) {
    const OperationIndex place(std::stoi(text.substr(0, 12)));
    if (place < first.place) first = {place, text.substr(13)};
  }
  return first.what;
}

}  // namespace cortado
