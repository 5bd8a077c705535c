#include "cortado/compile/kernel_facts.h"

#include "cortado/base/error.h"
#include "cortado/kernels/instruction_set.h"
#include "cortado/kernels/select.h"
#include "cortado/layers/problem.h"

namespace cortado {
namespace {

TaskFacts facts_of(const Kernel& kernel) {
  BackwardReads reads = kernel.backward_reads();
  TaskFacts facts;
  facts.saved = kernel.saved_bytes();
  facts.saved_by_samples = kernel.saves_by_samples();
  facts.scratch = kernel.scratch_bytes();
  facts.backward_reads_inputs = reads.inputs;
  facts.backward_reads_outputs = reads.outputs;
  facts.in_place = kernel.in_place();
  facts.overwrites_output_gradients = kernel.overwrites_output_gradients();
  facts.passes_output_gradient = kernel.passes_output_gradient();
  facts.forward_sums = kernel.forward_sums();
  facts.backward_sums = kernel.backward_sums();
  return facts;
}

}  // namespace

Selection KernelChoice::select(const Task& task) const {
  const std::string named = of_task ? of_task(task) : kernels;
  Task same = task;
  same.canonical_parameters |= mixed_devices;
  Selection selection = select_kernel(same, named);
  if (!no_other || selection.for_gpu) return selection;
  if (task.layers.size() > 1) return {};  // its layers may have kernels one by one
  throw UserError(
      fmt::format("there are no gpu kernels for layers of type {}; give their ranks another device",
                  task.layer().type()));
}

std::optional<TaskFacts> facts_of(const Task& task, const Selection& selection) {
  if (!selection.kernel || (task.layers.size() > 1 && selection.implementation == "reference"))
    return std::nullopt;
  TaskFacts facts = facts_of(*selection.kernel);
  for (size_t p = 0; p < task.parameter_gradients.size(); ++p) {
    const ParameterFormat format = selection.kernel->parameter_format(static_cast<int>(p));
    facts.parameter_order += format.name + "; ";
    facts.parameter_elements.push_back(format.elements);
  }
  return facts;
}

KernelProfile KernelProfile::here(KernelChoice choice) {
  return KernelProfile(
      [choice = std::move(choice)](const Task& task) { return facts_of(task, choice.select(task)); }, false);
}

KernelProfile KernelProfile::unknown() {
  return KernelProfile([](const Task& task) { return facts_of(*select_kernel(task, "reference").kernel); },
                       true);
}

KernelProfile KernelProfile::compiled_for(const std::string& instruction_set) {
  return instruction_set == kernel_instruction_set() ? here() : unknown();
}

std::optional<TaskFacts> KernelProfile::operator()(const Task& task) {
  const std::string problem = problem_of(task);
  if (const auto known = known_.find(problem); known != known_.end()) return known->second;
  return known_[problem] = ask_(task);
}

}  // namespace cortado
