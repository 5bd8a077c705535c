#include <algorithm>
#include <set>

#include "cortado/program/placement.h"

namespace cortado {
namespace {

using Operation = Placement::Operation;

class RecomputeMarker {
 public:
  explicit RecomputeMarker(Placement& placement) : placement_(placement) {
    for (ValueIndex value : placement.report_values)
      if (value) reported_.insert(value);
  }

  void run() {
    for (OperationIndex index : indices(placement_.operations)) {
      Operation& operation = placement_.operations[index];
      const bool moves = operation.kind == Operation::Kind::copy || operation.kind == Operation::Kind::sum;
      const bool asked = moves ? producer_of(operation, 0).recomputed
                               : operation.kind == Operation::Kind::compute && operation.strategy.recompute;
      operation.recomputed = asked && may_drop(operation);
    }
    for (OperationIndex index(placement_.operations.size() - 1); index; --index)
      if (placement_.operations[index].recomputed) mark_chain(placement_.operations[index]);
  }

 private:
  Operation& producer_of(const Operation& operation, size_t input) {
    return placement_.operations[placement_.values[operation.inputs[input]].producer];
  }

  bool may_drop(const Operation& operation) const {
    if (operation.gradients == Operation::Gradients::only || operation.outputs.empty()) return false;
    if (operation.layer && operation.layer->writes_files()) return false;
    return std::ranges::all_of(operation.outputs, [&](ValueIndex output) {
      const auto& value = placement_.values[output];
      return value.loss_weight == 0 && !reported_.contains(output) &&
             std::ranges::none_of(value.consumers, [&](OperationIndex consumer) {
               return placement_.operations[consumer].gradients == Operation::Gradients::only;
             });
    });
  }

  // A kernel that runs both reads what the first one reads. So all that this needs must be there.
  void mark_chain(const Operation& last) {
    if (last.kind != Operation::Kind::compute || last.inputs.size() != 1) return;
    Operation& before = producer_of(last, 0);
    if (before.kind != Operation::Kind::compute || before.outputs.size() != 1 ||
        placement_.values[last.inputs[0]].consumers.size() != 1 ||
        !before.layer->may_fuse_with(*last.layer) || !may_drop(before))
      return;
    before.recomputed = true;
  }

  Placement& placement_;
  std::set<ValueIndex> reported_;
};

}  // namespace

void mark_recomputed(Placement& placement) { RecomputeMarker(placement).run(); }

}  // namespace cortado
