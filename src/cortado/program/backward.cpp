#include <algorithm>
#include <map>

#include "cortado/base/error.h"
#include "cortado/program/passes.h"

namespace cortado {
namespace {

// Builds the backward pass. A tensor's gradient is the sum of the contributions of its consumers (and of the
// loss weight when it is a loss); a contribution is a buffer, which several tensors may share when a layer
// passes its output gradient through (Eltwise sum).
class BackwardBuilder {
 public:
  BackwardBuilder(Program& program, const Network& network)
      : program_(program),
        network_(network),
        contributions_(network.tensors().size()),
        users_left_(network.parameters().size(), 0),
        parameter_written_(network.parameters().size(), false) {
    program.gradient_buffers.assign(network.tensors().size(), -1);
    for (const Work& work : program.works) {
      for (size_t p = 0; p < work.parameters.size(); ++p) {
        if (work.task.parameter_gradients[p]) ++users_left_[work.parameters[p]];
      }
    }
  }

  void run() {
    for (int index = static_cast<int>(program_.works.size()) - 1; index >= 0; --index) {
      const Work& work = program_.works[index];
      if (!work.task.layers.empty() && work.task.has_backward()) place(index);
    }
  }

 private:
  int new_buffer(std::string name, Bytes size) {
    program_.buffers.push_back({std::move(name), Buffer::Kind::gradient, size, -1, -1, -1});
    return static_cast<int>(program_.buffers.size()) - 1;
  }

  int new_gradient(int tensor, std::string_view suffix) {
    const auto& info = network_.tensors()[tensor];
    return new_buffer(info.name + std::string(suffix),
                      {info.shape.size() * static_cast<int64_t>(sizeof(float))});
  }

  bool shared(int buffer) const {
    auto found = references_.find(buffer);
    return found != references_.end() && found->second > 1;
  }

  void contribute(int tensor, int buffer) {
    contributions_[tensor].push_back(buffer);
    ++references_[buffer];
  }

  int seed(int tensor, double value) {
    int buffer = new_gradient(tensor, " loss weight");
    program_.steps.push_back({.kind = Step::Kind::seed, .value = value, .writes = {buffer}});
    return buffer;
  }

  // destination = sum of `parts`; with one part, a copy.
  int accumulate(int tensor, const std::vector<int>& parts, bool fresh) {
    auto own = std::ranges::find_if(parts, [&](int part) { return !shared(part); });
    int destination = fresh || own == parts.end() ? new_gradient(tensor, " gradient") : *own;
    program_.steps.push_back({.kind = Step::Kind::accumulate, .reads = parts, .writes = {destination}});
    return destination;
  }

  // The complete gradient of an output tensor, alone in its buffer when `exclusive`.
  int complete_gradient(int tensor, double loss_weight, bool exclusive) {
    auto& parts = contributions_[tensor];
    if (loss_weight != 0 || parts.empty()) contribute(tensor, seed(tensor, loss_weight));
    int buffer = parts[0];
    if (parts.size() > 1) {
      buffer = accumulate(tensor, parts, false);
    } else if (exclusive && shared(buffer)) {
      buffer = accumulate(tensor, parts, true);
    }
    for (int part : parts) {
      if (part != buffer) --references_[part];
    }
    if (std::ranges::find(parts, buffer) == parts.end()) references_[buffer] = 1;
    return program_.gradient_buffers[tensor] = buffer;
  }

  void place_input_gradients(Work& work) {
    const auto& inputs = network_.nodes()[work.nodes.front()].inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!work.task.input_gradients[i]) {
        work.input_gradients.push_back(-1);
        continue;
      }
      int output = work.output_gradients.empty() ? -1 : work.output_gradients[0];
      bool reuse = work.facts.passes_output_gradient || (work.facts.in_place && i == 0 && !shared(output));
      bool fits = output >= 0 && program_.buffers[output].size == bytes_of_tensor(inputs[i]);
      ensure(fits || !work.facts.passes_output_gradient, "a gradient is passed to an input of another size");
      int buffer = reuse && fits ? output : new_gradient(inputs[i], " gradient");
      work.input_gradients.push_back(buffer);
    }
    for (int buffer : work.output_gradients) --references_[buffer];
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (work.input_gradients[i] >= 0) contribute(inputs[i], work.input_gradients[i]);
    }
  }

  Bytes bytes_of_tensor(int tensor) const {
    return {network_.tensors()[tensor].shape.size() * static_cast<int64_t>(sizeof(float))};
  }

  Step backward_step(const Work& work, int index, Step::Kind kind) {
    Step step{.kind = kind, .work = index, .reads = work.output_gradients};
    auto append = [](std::vector<int>& to, const std::vector<int>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    if (work.facts.backward_reads_inputs) append(step.reads, work.inputs);
    if (work.facts.backward_reads_outputs) append(step.reads, work.outputs);
    if (work.saved >= 0) step.reads.push_back(work.saved);
    if (work.facts.scratch.count > 0) {
      const std::string& name = network_.nodes()[work.nodes.front()].name;
      program_.buffers.push_back({name + " scratch", Buffer::Kind::scratch, work.facts.scratch, -1, -1, -1});
      step.scratch = static_cast<int>(program_.buffers.size()) - 1;
      step.writes.push_back(step.scratch);
    }
    if (work.facts.overwrites_output_gradients) append(step.writes, work.output_gradients);
    return step;
  }

  // Directs each parameter's gradient: the first writer to the parameter's own, later ones to a buffer to
  // add.
  void place_parameter_gradients(Work& work) {
    for (size_t p = 0; p < work.parameters.size(); ++p) {
      int parameter = work.parameters[p];
      if (!work.task.parameter_gradients[p]) continue;
      const auto& info = network_.parameters()[parameter];
      if (parameter_written_[parameter]) {
        work.partial_gradients[p] = new_buffer(
            info.name + " partial gradient", {info.spec.shape.size() * static_cast<int64_t>(sizeof(float))});
      }
      parameter_written_[parameter] = true;
    }
  }

  void place_steps(int index) {
    Work& work = program_.works[index];
    bool split = work.task.layer().splits_backward();
    bool weights =
        std::ranges::find(work.task.parameter_gradients, true) != work.task.parameter_gradients.end();
    bool data = std::ranges::find(work.task.input_gradients, true) != work.task.input_gradients.end();
    auto add_partials = [&](Step& step) {
      for (int buffer : work.partial_gradients)
        if (buffer >= 0) step.writes.push_back(buffer);
    };
    if (split && weights) {
      Step step = backward_step(work, index, Step::Kind::backward_weights);
      add_partials(step);
      program_.steps.push_back(std::move(step));
    }
    if (data || !split) {
      Step step = backward_step(work, index, Step::Kind::backward);
      for (int buffer : work.input_gradients)
        if (buffer >= 0) step.writes.push_back(buffer);
      if (!split) add_partials(step);
      program_.steps.push_back(std::move(step));
    }
  }

  void place_updates(const Work& work) {
    for (size_t p = 0; p < work.parameters.size(); ++p) {
      if (!work.task.parameter_gradients[p]) continue;
      int parameter = work.parameters[p];
      if (work.partial_gradients[p] >= 0) {
        program_.steps.push_back({.kind = Step::Kind::accumulate_parameter,
                                  .parameter = parameter,
                                  .reads = {work.partial_gradients[p]}});
      }
      if (--users_left_[parameter] == 0) {
        program_.steps.push_back({.kind = Step::Kind::update, .parameter = parameter});
      }
    }
  }

  void place(int index) {
    Work& work = program_.works[index];
    const auto& last = network_.nodes()[work.nodes.back()];
    for (size_t i = 0; i < last.outputs.size(); ++i) {
      bool exclusive = work.facts.overwrites_output_gradients;
      work.output_gradients.push_back(complete_gradient(last.outputs[i], last.loss_weights[i], exclusive));
    }
    place_input_gradients(work);
    place_parameter_gradients(work);
    place_steps(index);
    place_updates(work);
  }

  Program& program_;
  const Network& network_;
  std::vector<std::vector<int>> contributions_;  // per tensor
  std::map<int, int> references_;                // per buffer: contributions that will still read it
  std::vector<int> users_left_;                  // per parameter
  std::vector<bool> parameter_written_;          // per parameter
};

}  // namespace

void place_backward(Program& program, const Network& network) { BackwardBuilder(program, network).run(); }

}  // namespace cortado
