#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "cortado/program/passes.h"

namespace cortado {
namespace {

bool has(std::span<const ParameterIndex> list, ParameterIndex item) {
  return std::ranges::find(list, item) != list.end();
}
bool common(std::span<const ParameterIndex> one, std::span<const ParameterIndex> other) {
  return std::ranges::any_of(one, [&](ParameterIndex item) { return has(other, item); });
}
bool common(const std::vector<View>& one, const std::vector<View>& other) {
  return std::ranges::any_of(one, [&](const View& view) {
    return std::ranges::any_of(other, [&](const View& another) { return overlap(view, another); });
  });
}

// Marks the steps that may still be under way in the next iteration (Step::carried) and those done there
// (Step::late), and moves the late steps.
class Delayer {
 public:
  explicit Delayer(Program& program) : program_(program) {}

  void run() {
    for (Step& step : program_.steps) {
      std::visit(
          Overloaded{[&](const steps::SumGradient& sum) {
                       step.carried = true;
                       std::ranges::copy(sum.parameters, std::back_inserter(delayed_));
                     },
                     [&](const steps::ScatterGradient& scatter) { owned_.push_back(scatter.parameter); },
                     [&](const steps::GatherParameter& gather) { step.carried = !gather.served; },
                     [](const OneOf<steps::Exchange, steps::SumStatistics> auto&) {},
                     [](const steps::Local auto&) {}},
          step.action);
    }
    for (Step& step : program_.steps)
      if (is_replicated(step)) delay_replicated(step);
    for (Step& step : program_.steps)
      if (const auto* update = step.as<steps::Update>()) step.late |= may_wait(update->parameter);
    move();
  }

 private:
  // Updates wait for gradients that are complete only in the next iteration. In a job other updates may wait,
  // too: they are computed while the layer's inputs are under way. An owner's update may not: other ranks
  // wait for it.
  bool may_wait(ParameterIndex parameter) const {
    return has(delayed_, parameter) || (program_.placement->ranks > 1 && !has(owned_, parameter));
  }

  const Work& work_of(const Step& step) const { return program_.works[step.work()]; }
  bool is_replicated(const Step& step) const {
    return step.runs(Pass::backward_weights) && work_of(step).backward_only;
  }

  // Computes a whole gradient late where gathers alone bring all that it needs, into memory of its own. These
  // gathers may then still be under way in the next iteration.
  void delay_replicated(Step& step) {
    std::vector<Step*> gathers;
    for (const View& view : step.reads) {
      Step* gather = only_writer(view);
      if (!gather || !gather->is<steps::Exchange>()) return;
      gathers.push_back(gather);
    }
    step.late = true;
    for (Step* gather : gathers) gather->carried = nobody_after(*gather);
    std::ranges::copy(work_of(step).parameters, std::back_inserter(delayed_));
  }

  Step* only_writer(const View& view) {
    Step* writer = nullptr;
    for (Step& step : program_.steps) {
      if (!common(step.writes, {view})) continue;
      if (writer) return nullptr;
      writer = &step;
    }
    return writer;
  }

  // True when no later step would have to wait for `gather`, save those that compute whole gradients.
  bool nobody_after(const Step& gather) const {
    const auto same = [&](const Step& step) { return &step == &gather; };
    const auto place = std::ranges::find_if(program_.steps, same);
    return std::all_of(std::next(place), program_.steps.end(), [&](const Step& step) {
      return is_replicated(step) ||
             (!common(step.writes, gather.reads) && !common(step.writes, gather.writes) &&
              !common(step.reads, gather.writes));
    });
  }

  // The step of the forward pass before which a late one goes: the first that uses its parameters or writes
  // what it reads.
  StepIndex place_of(const Step& late) const {
    const StepIndex end(program_.forward_end);
    for (StepIndex s(0); s < end; ++s) {
      const Step& step = program_.steps[s];
      if (common(step.writes, late.reads)) return s;
      if (step.lane != Lane::compute || !step.work()) continue;
      const std::span<const ParameterIndex> parameters =
          late.work() ? std::span<const ParameterIndex>(work_of(late).parameters) : late.parameters();
      if (common(work_of(step).parameters, parameters)) return s;
    }
    return end;
  }

  // An update follows the step that computes its gradient.
  void move() {
    std::map<ParameterIndex, StepIndex> place_of_parameter;  // of replicated ones
    for (const Step& step : program_.steps) {
      if (!step.late || !step.work()) continue;
      for (ParameterIndex parameter : work_of(step).parameters)
        place_of_parameter[parameter] = place_of(step);
    }
    std::multimap<StepIndex, Step> late;  // by the step that they go before
    IndexedVector<StepIndex, Step> others;
    for (Step& step : program_.steps) {
      if (!step.late) {
        others.push_back(step);
        continue;
      }
      const auto known =
          step.work() ? place_of_parameter.end() : place_of_parameter.find(step.parameters()[0]);
      late.emplace(known == place_of_parameter.end() ? place_of(step) : known->second, step);
    }
    program_.steps.clear();
    for (StepIndex s : indices(others)) {
      const auto [begin, end] = late.equal_range(s);
      for (auto one = begin; one != end; ++one) program_.steps.push_back(std::move(one->second));
      program_.steps.push_back(std::move(others[s]));
    }
    program_.forward_end += static_cast<int>(late.size());
  }

  Program& program_;
  std::vector<ParameterIndex> delayed_;  // parameters whose gradients are complete in the next iteration
  std::vector<ParameterIndex> owned_;    // parameters that each rank updates a share of
};

}  // namespace

void delay_updates(Program& program) { Delayer(program).run(); }

}  // namespace cortado
