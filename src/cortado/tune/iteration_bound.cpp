#include "cortado/tune/iteration_bound.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "cortado/cost/analytic.h"
#include "cortado/parallel/config_fit.h"

namespace cortado {
namespace {

// One device of each kind.
std::vector<int> kinds_of(const DeviceGraph& machine) {
  std::vector<int> kinds;
  for (int device = 0; device < machine.devices(); ++device) {
    const bool known = std::ranges::any_of(
        kinds, [&](int other) { return machine.device(other) == machine.device(device); });
    if (!known) kinds.push_back(device);
  }
  return kinds;
}

// The task with inputs no larger than all of its parts together read: windows that leave gaps let parts skip
// what the whole counts.
Task without_gaps(Task task) {
  const Box whole = task.domain_box;
  for (size_t i = 0; i < task.input_boxes.size(); ++i) {
    Box& box = task.input_boxes[i];
    if (box.rank() != whole.rank()) continue;
    for (int axis = 2; axis < whole.rank(); ++axis) {
      if (whole[axis].size() < 2) continue;
      const auto read_by = [&](int64_t place) {
        Box one = whole;
        one[axis] = {place, place + 1};
        return task.layer().input_box(task.inputs, static_cast<int>(i), 0, one)[axis];
      };
      const int64_t middle = whole[axis].size() / 2;
      const Range before = read_by(middle - 1), after = read_by(middle);
      if (after.begin <= before.end) continue;
      const int64_t least = std::min(box[axis].size(), after.size() * whole[axis].size());
      box[axis] = {box[axis].begin, box[axis].begin + least};
    }
  }
  return task;
}

// The smallest share of a layer that one of at most `parts` parts can be.
double smallest_share(const Degrees& most, int parts) {
  constexpr int Degrees::*dimensions[] = {&Degrees::n, &Degrees::c, &Degrees::d,
                                          &Degrees::h, &Degrees::w, &Degrees::r};
  // By the parts that are left for dimensions; of these only parts / 1, parts / 2, ... are asked for.
  std::vector<double> share(static_cast<size_t>(parts) + 1, 1);
  for (auto dimension : dimensions) {
    const int extent = most.*dimension;
    std::vector<double> smaller = share;
    for (int all = parts; all > 1; all = parts / (parts / all + 1)) {
      double& least = smaller[static_cast<size_t>(all)];
      for (int degree = 2; degree <= std::min(extent, all); ++degree) {
        const int smallest = extent / degree;  // of the parts along it
        least = std::min(least, share[static_cast<size_t>(all / degree)] * smallest / extent);
      }
    }
    share = std::move(smaller);
  }
  return share.back();
}

class Bound {
 public:
  Bound(const Network& network, const SimulatedMachine& machine)
      : network_(network), machine_(machine), kinds_(kinds_of(machine.graph)) {
    program_ = std::move(compile_job(network, {}, machine.kernels)[0]);
  }

  Seconds seconds() {
    double work = 0;
    for (const Work& one : program_.works) {
      TaskTime least;
      if (one.is_layer()) least = least_time(without_gaps(one.task));
      work += least.total().count;
      path_.push_back(part_of(one, least));
    }
    for (const Step& step : program_.steps)
      if (const auto* update = step.as<steps::Update>()) work += least_update(update->parameter);
    return {std::max(work / machine_.graph.devices(), longest_path())};
  }

 private:
  TaskTime least_time(const Task& task) const {
    TaskTime least = machine_.costs.measure(task, kinds_[0]);
    for (int kind : kinds_) {
      const TaskTime time = machine_.costs.measure(task, kind);
      least.forward = std::min(least.forward, time.forward);
      least.backward_weights = std::min(least.backward_weights, time.backward_weights);
      least.backward = std::min(least.backward, time.backward);
    }
    return least;
  }

  double least_update(ParameterIndex parameter) const {
    const Bytes bytes =
        bytes_of(network_.parameters()[parameter].spec.shape, program_.placement->parameter_types[parameter]);
    Seconds least = machine_.costs.update(bytes, kinds_[0]);
    for (int kind : kinds_) least = std::min(least, machine_.costs.update(bytes, kind));
    return least.count;
  }

  // What the smallest part of a work takes at least: the overhead of a task whole, the rest by its share.
  TaskTime part_of(const Work& work, TaskTime whole) const {
    if (!work.is_layer()) return {};
    const Network::Node& node = network_.nodes()[work.nodes[0]];
    double share = 0;  // where devices have weights, any part may be small
    if (machine_.graph.weights().empty()) {
      const int parts = 2 * machine_.graph.devices();  // Schedule::halves makes two of each device's
      share = smallest_share(
          most_degrees(*node.layer, network_.shapes_of(node.inputs), network_.shapes_of(node.outputs)),
          parts);
    }
    double overhead = std::numeric_limits<double>::infinity();
    for (int kind : kinds_) overhead = std::min(overhead, machine_.graph.device(kind).task_overhead.count);
    const auto part = [&](Seconds all, TaskPass pass) -> Seconds {
      const double fixed = overhead * machine_.graph.calibration().correction.at(kind_of(work.task), pass);
      return all.count > 0 ? Seconds{fixed + share * (all.count - fixed)} : Seconds{};
    };
    return {part(whole.forward, TaskPass::forward), part(whole.backward_weights, TaskPass::backward_weights),
            part(whole.backward, TaskPass::backward)};
  }

  // Of works in their order, from the last: what follows on one of them before its own gradient is there.
  double longest_path() const {
    IndexedVector<TensorIndex, double> after(network_.tensors().size(), 0);  // of the tensor's consumers
    double longest = 0;
    for (size_t w = program_.works.size(); w-- > 0;) {
      const Work& work = program_.works[WorkIndex(w)];
      if (!work.is_layer()) continue;
      const TaskTime& part = path_[w];
      double following = 0;
      for (TensorIndex output : network_.nodes()[work.nodes.back()].outputs)
        following = std::max(following, after[output]);
      const double forward = part.forward.count + following;
      const bool weights = any_wanted(work.task.parameter_gradients);
      const double own = part.backward_weights.count > 0 ? part.backward_weights.count : part.backward.count;
      if (weights || !network_.learns()) longest = std::max(longest, forward + (weights ? own : 0));
      const Network::Node& first = network_.nodes()[work.nodes[0]];
      for (size_t i = 0; i < first.inputs.size(); ++i) {
        const TensorIndex input = first.inputs[i];
        const bool back = first.propagate_down[i] && network_.tensors()[input].needs_gradient;
        if (back || !network_.learns())
          after[input] = std::max(after[input], forward + (back ? part.backward.count : 0));
      }
    }
    return longest;
  }

  const Network& network_;
  const SimulatedMachine& machine_;
  const std::vector<int> kinds_;
  Program program_;             // on one device
  std::vector<TaskTime> path_;  // per work: of its smallest part
};

}  // namespace

Seconds least_iteration(const Network& network, const SimulatedMachine& machine) {
  return Bound(network, machine).seconds();
}

}  // namespace cortado
