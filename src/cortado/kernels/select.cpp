#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/kernels/kernel.h"
#include "cortado/kernels/reference/reference.h"

namespace cortado {
namespace {

KernelOffer make_reference(const Task& task) {
  auto kernel = make_reference_kernel<float>(task);
  if (!kernel) return {nullptr, "no reference kernel for " + std::string(task.layer().type())};
  return {std::move(kernel), ""};
}

// Fastest first. The list is the whole policy: the first that accepts a task runs it.
const std::vector<Implementation>& implementations() {
  static const std::vector<Implementation> list = {
      {"reference", make_reference},
  };
  return list;
}

}  // namespace

Selection select_kernel(const Task& task, const std::string& only) {
  Selection selection;
  for (const Implementation& implementation : implementations()) {
    if (!only.empty() && implementation.name != only) continue;
    KernelOffer offer = implementation.make(task);
    if (offer.kernel) {
      selection.kernel = std::move(offer.kernel);
      selection.implementation = implementation.name;
      return selection;
    }
    selection.refusals.push_back(fmt::format("{}: {}", implementation.name, offer.refusal));
  }
  std::string reasons;
  for (const std::string& refusal : selection.refusals) reasons += (reasons.empty() ? "" : "; ") + refusal;
  throw UserError(fmt::format("no kernel for layer type {}: {}", task.layer().type(), reasons));
}

}  // namespace cortado
