#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "cortado/kernels/kernel.h"
#include "cortado/kernels/select.h"
#include "cortado/program/program.h"

namespace cortado {

// Says which kernels run the tasks of a network.
struct KernelChoice {
  std::string kernels{};  // as in select_kernel
  // Per task, what it is restricted to ("": nothing), in place of `kernels`; null: `kernels`.
  std::function<std::string(const Task&)> of_task{};
  // Ranks on devices of several kinds share layers: parameters lie in the order of files on all of them, and
  // no layers run as one kernel.
  bool mixed_devices = false;
  bool no_other = false;  // layers that no kernel for GPUs among `kernels` takes are refused

  bool reproducible() const { return kernels == reproducible_kernels; }
  // Without a kernel for a chain that these kernels do not know.
  Selection select(const Task& task) const;
};

// What a Program must know of the kernel that was selected for a task. Nothing for a chain that the reference
// would run layer by layer, where nothing would be gained.
std::optional<TaskFacts> facts_of(const Task& task, const Selection& selection);

// What is known of kernels for Programs that do not run here: asked once for each problem (layers/problem.h).
class KernelProfile {
 public:
  // This process's own, for its kind of processor; they are not kept.
  static KernelProfile here(KernelChoice choice = {});
  // Profile of a machine whose kernels nobody here knows: reference kernels, which take every chain as one. A
  // guess.
  static KernelProfile unknown();
  // Profile of a machine for whose instruction set kernels are compiled (kernels/instruction_set.h): this
  // process's own where it is the same, else a guess.
  static KernelProfile compiled_for(const std::string& instruction_set);
  bool guess() const { return guess_; }

  std::optional<TaskFacts> operator()(const Task& task);

 private:
  KernelProfile(TaskOracle ask, bool guess) : ask_(std::move(ask)), guess_(guess) {}

  TaskOracle ask_;
  bool guess_;
  std::map<std::string, std::optional<TaskFacts>> known_;
};

}  // namespace cortado
