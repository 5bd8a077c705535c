#include "cortado/tune/place_branches.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "cortado/tune/transposed_grids.h"
#include "cortado/tune/tune_strategy.h"

namespace cortado {
namespace {

// Beyond so many ways to give the branches to blocks only that is looked at which evens out their work.
constexpr double most_assignments = 256;

using Assignment = std::vector<size_t>;  // block per branch

// Branches with most work first, each to the block that has least for its size.
Assignment even(const std::vector<DeviceBlock>& blocks, const std::vector<double>& work) {
  std::vector<size_t> order(work.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return work[a] > work[b]; });
  Assignment assignment(work.size());
  std::vector<double> taken(blocks.size());
  std::vector<bool> idle(blocks.size(), true);
  size_t left = work.size();
  for (size_t branch : order) {
    const bool fill = static_cast<size_t>(std::ranges::count(idle, true)) == left--;
    std::optional<size_t> best;
    for (size_t b = 0; b < blocks.size(); ++b) {
      const auto then = [&](size_t i) { return (taken[i] + work[branch]) / blocks[i].count; };
      if ((!fill || idle[b]) && (!best || then(b) < then(*best))) best = b;
    }
    assignment[branch] = *best;
    taken[*best] += work[branch];
    idle[*best] = false;
  }
  return assignment;
}

std::vector<Assignment> assignments(const std::vector<DeviceBlock>& blocks, const std::vector<double>& work) {
  if (std::pow(blocks.size(), work.size()) > most_assignments) return {even(blocks, work)};
  std::vector<Assignment> all;
  Assignment one(work.size(), 0);
  while (true) {
    std::vector<bool> used(blocks.size());
    for (size_t block : one) used[block] = true;
    if (std::ranges::find(used, false) == used.end()) all.push_back(one);
    size_t branch = 0;
    while (branch < one.size() && ++one[branch] == blocks.size()) one[branch++] = 0;
    if (branch == one.size()) return all;
  }
}

bool contains(const BranchSet& outer, const BranchSet& inner) {
  const auto& first = inner.branches[0][0];
  return std::ranges::any_of(
      outer.branches, [&](const auto& branch) { return std::ranges::find(branch, first) != branch.end(); });
}

class Placer {
 public:
  Placer(const Strategy& start, const Network& network, const DeviceGraph& machine,
         const StrategyCosts& costs, const PlaceOptions& options)
      : network_(network),
        machine_(machine),
        costs_(costs),
        options_(options),
        start_(with_all_rules(start, network)),
        sets_(branch_sets(network)),
        chosen_(sets_.size()) {
    best_.strategy = start_;
    best_.seconds = best_.before = costs.iteration(start_);
    best_.tried = 1;
    best_.all_sets = static_cast<int>(sets_.size());
    known_.insert(strategy_text(start_));
  }

  PlacedStrategy run() {
    if (machine_.devices() < 2 || !machine_.weights().empty()) return std::move(best_);
    if (!sets_.empty() && options_.most_tried > 1) place_sets();
    transpose();
    return std::move(best_);
  }

 private:
  using Loads = std::vector<double>;           // seconds of computing per device
  using Choice = std::optional<BranchPlaces>;  // nothing: as at the start

  DeviceBlock whole() const { return {0, machine_.devices()}; }

  void place_sets() {
    loads_ = costs_.devices(start_);
    for (size_t s = 0; s < sets_.size(); ++s) choices_.push_back(choices_of(s, whole()));
    if (!search_all()) {
      place_all_alike();
      for (bool better = true; better && best_.tried < options_.most_tried;) {
        better = false;
        for (size_t s = 0; s < sets_.size(); ++s) better |= place_anew(s);
      }
    }
    for (size_t s = 0; s < sets_.size(); ++s)
      if (chosen_[s]) best_.sets.push_back({sets_[s], *chosen_[s]});
  }

  // One grid after the other, until none is better.
  void transpose() {
    for (bool better = true; better;) {
      better = false;
      for (Strategy& other : transposed_grids(best_.strategy, network_))
        if (try_out(std::move(other))) {
          better = true;
          break;
        }
    }
  }

  // Seconds that the first device of a block of `size` computes of each node, with all branches cut like
  // that.
  const DeviceParts& first_of_block(BlockCut cut, int size) {
    auto& known = first_[{cut, size}];
    if (known.nodes.empty()) {
      Strategy all = start_;
      for (const BranchSet& set : sets_)
        all = placed(std::move(all), start_, network_, set,
                     {std::vector<DeviceBlock>(set.branches.size(), {0, size}), cut, false}, whole());
      known = costs_.devices(all)[0];
    }
    return known;
  }

  double work_of(const std::vector<NodeIndex>& nodes, BlockCut cut, int size) {
    const DeviceParts& first = first_of_block(cut, size);
    double sum = 0;
    for (NodeIndex node : nodes) sum += first.nodes[node].total().count;
    return sum;
  }

  std::vector<BranchPlaces> choices_of(size_t set, DeviceBlock whole) {
    std::vector<double> work;
    for (const auto& branch : sets_[set].branches) work.push_back(work_of(branch, BlockCut::single, 1));
    const NodeIndex join = sets_[set].join;
    return places_of(sets_[set], machine_, whole, work, join && network_.nodes()[join].parameters.empty());
  }

  // What each device computes at least of a set's branches.
  Loads load_of(size_t set, const Choice& choice) {
    Loads loads(static_cast<size_t>(machine_.devices()));
    for (size_t b = 0; b < sets_[set].branches.size(); ++b) {
      const auto& branch = sets_[set].branches[b];
      if (choice) {
        const DeviceBlock block = choice->blocks[b];
        loads[static_cast<size_t>(block.first)] += work_of(branch, choice->cut, block.count);
        continue;
      }
      for (size_t device = 0; device < loads.size(); ++device)
        for (NodeIndex node : branch) loads[device] += loads_[device].nodes[node].total().count;
    }
    return loads;
  }

  // What each device computes of all that the choices for these sets leave as it is.
  Loads load_beside(const std::vector<size_t>& sets) const {
    std::set<NodeIndex> changed;
    for (size_t set : sets) {
      for (const auto& branch : sets_[set].branches) changed.insert(branch.begin(), branch.end());
      if (sets_[set].join) changed.insert(sets_[set].join);
    }
    Loads loads(static_cast<size_t>(machine_.devices()));
    for (size_t device = 0; device < loads.size(); ++device)
      for (NodeIndex node : indices(network_.nodes()))
        if (!changed.contains(node)) loads[device] += loads_[device].nodes[node].total().count;
    return loads;
  }

  static double most_of(const Loads& one, const Loads& other) {
    double most = 0;
    for (size_t device = 0; device < one.size(); ++device) most = std::max(most, one[device] + other[device]);
    return most;
  }

  // Simulates a strategy; takes it if it is better.
  bool try_out(Strategy other) {
    if (best_.tried >= options_.most_tried || !known_.insert(strategy_text(other)).second) return false;
    ++best_.tried;
    const Seconds found = costs_.iteration(other);
    if (!(found.count < (1 - least_gain) * best_.seconds.count)) return false;
    best_.strategy = std::move(other);
    best_.seconds = found;
    return true;
  }

  struct Bounded {
    double bound;
    std::vector<Choice> choices;  // per set
  };

  // Of choices in their order that equal blocks alone tell apart the first.
  static void drop_symmetric(std::vector<Bounded>& all) {
    std::set<std::vector<int64_t>> known;
    std::erase_if(all, [&](const Bounded& one) { return !known.insert(kind_of(one)).second; });
  }

  // What two choices have in common that differ by equal blocks alone.
  static std::vector<int64_t> kind_of(const Bounded& one) {
    std::vector<int64_t> kind{std::llround(one.bound * 1e12)};
    for (const Choice& choice : one.choices) {
      kind.push_back(-1);
      if (!choice) continue;
      kind.insert(kind.end(), {static_cast<int64_t>(choice->cut), choice->join});
      for (const DeviceBlock& block : choice->blocks) {
        const auto same = std::ranges::find(choice->blocks, block);
        kind.insert(kind.end(), {block.count, same - choice->blocks.begin()});
      }
    }
    return kind;
  }

  // Searches the choices of all sets together, if there are few. False: there are too many.
  bool search_all() {
    double together = 1;
    for (const auto& choices : choices_) together *= static_cast<double>(choices.size() + 1);
    if (together > options_.most_together) return false;
    for (size_t a = 0; a < sets_.size(); ++a)
      for (size_t b = 0; b < sets_.size(); ++b)
        if (a != b && contains(sets_[a], sets_[b])) return false;
    std::vector<size_t> every;
    for (size_t s = 0; s < sets_.size(); ++s) every.push_back(s);
    std::vector<Bounded> all;
    std::vector<Choice> choices(sets_.size());
    add_from(0, load_beside(every), choices, all);
    std::ranges::stable_sort(all, {}, &Bounded::bound);
    for (const Bounded& one : all) {
      if (one.bound >= (1 - least_gain) * best_.seconds.count) break;
      if (try_out(with(one.choices))) chosen_ = one.choices;
    }
    return true;
  }

  void add_from(size_t set, const Loads& loads, std::vector<Choice>& choices, std::vector<Bounded>& all) {
    if (set == sets_.size()) {
      all.push_back({std::ranges::max(loads), choices});
      return;
    }
    const auto add = [&](const Choice& choice) {
      choices[set] = choice;
      Loads more = load_of(set, choice);
      for (size_t device = 0; device < more.size(); ++device) more[device] += loads[device];
      add_from(set + 1, more, choices, all);
    };
    add({});
    for (const BranchPlaces& places : choices_[set]) add(places);
  }

  Strategy with(const std::vector<Choice>& choices) const {
    Strategy strategy = start_;
    for (size_t s = 0; s < sets_.size(); ++s)
      if (choices[s])
        strategy = placed(std::move(strategy), start_, network_, sets_[s], *choices[s], scope_of(s, choices));
    return strategy;
  }

  // Where the set's branches may lie: in the block of the branch that they are part of, if that is placed.
  DeviceBlock scope_of(size_t set, const std::vector<Choice>& choices) const {
    DeviceBlock scope = whole();
    for (size_t outer = 0; outer < set; ++outer) {
      if (!choices[outer]) continue;
      for (size_t b = 0; b < sets_[outer].branches.size(); ++b) {
        const auto& branch = sets_[outer].branches[b];
        if (std::ranges::find(branch, sets_[set].branches[0][0]) != branch.end())
          scope = choices[outer]->blocks[b];
      }
    }
    return scope;
  }

  bool is_inner(size_t set) const {
    for (size_t outer = 0; outer < set; ++outer)
      if (contains(sets_[outer], sets_[set])) return true;
    return false;
  }

  // True if no branch has nearly all of the work: the others could not fill devices meanwhile.
  bool balanced(size_t set) {
    constexpr double nearly_all = 0.8;
    double most = 0, sum = 0;
    for (const auto& branch : sets_[set].branches) {
      const double work = work_of(branch, BlockCut::single, 1);
      most = std::max(most, work);
      sum += work;
    }
    return most <= nearly_all * sum;
  }

  // All sets in as many blocks, cut along the same, at once: one set alone may gain nothing.
  void place_all_alike() {
    std::vector<size_t> sets;
    size_t most_branches = 0;
    for (size_t s = 0; s < sets_.size(); ++s) {
      if (is_inner(s) || !balanced(s)) continue;
      sets.push_back(s);
      most_branches = std::max(most_branches, sets_[s].branches.size());
    }
    for (size_t blocks = 2; blocks <= most_branches; ++blocks)
      for (BlockCut cut : block_cuts)
        for (bool join : {false, true}) {
          std::vector<Choice> choices(sets_.size());
          for (size_t s : sets) choices[s] = least_loaded(s, blocks, cut, join);
          if (try_out(with(choices))) chosen_ = choices;
        }
    loads_ = costs_.devices(best_.strategy);
  }

  // The places in at most so many blocks of which the busiest device computes least; nothing: there are none.
  Choice least_loaded(size_t set, size_t most_blocks, BlockCut cut, bool join) {
    Choice best;
    double least = 0;
    for (const BranchPlaces& places : choices_[set]) {
      if (places.cut != cut || places.join != join) continue;
      std::set<int> blocks;
      for (const DeviceBlock& block : places.blocks) blocks.insert(block.first);
      if (blocks.size() > most_blocks) continue;
      const double load = std::ranges::max(load_of(set, places));
      if (best && load >= least) continue;
      best = places;
      least = load;
    }
    return best;
  }

  bool place_anew(size_t set) {
    const DeviceBlock scope = scope_of(set, chosen_);
    const Loads beside = load_beside({set});
    std::vector<Bounded> all{{0, {Choice{}}}};
    for (const BranchPlaces& places : scope == whole() ? choices_[set] : choices_of(set, scope))
      all.push_back({most_of(beside, load_of(set, places)), {places}});
    std::ranges::stable_sort(all, {}, &Bounded::bound);
    drop_symmetric(all);
    bool better = false;
    int failed = 0;
    for (const Bounded& one : all) {
      if (one.bound >= (1 - least_gain) * best_.seconds.count || failed >= options_.patience) break;
      std::vector<Choice> choices = chosen_;
      choices[set] = one.choices[0];
      for (size_t inner = set + 1; inner < sets_.size(); ++inner)
        if (contains(sets_[set], sets_[inner])) choices[inner].reset();
      const int tried = best_.tried;
      if (try_out(with(choices))) {
        chosen_ = choices;
        better = true;
        failed = 0;
      } else {
        failed += best_.tried - tried;
      }
    }
    if (better) loads_ = costs_.devices(best_.strategy);
    return better;
  }

  const Network& network_;
  const DeviceGraph& machine_;
  const StrategyCosts& costs_;
  const PlaceOptions& options_;
  const Strategy start_;
  const std::vector<BranchSet> sets_;
  std::vector<std::vector<BranchPlaces>> choices_;  // per set, on all devices
  std::vector<Choice> chosen_;                      // per set, of the best strategy
  std::vector<DeviceParts> loads_;                  // per device, of the best strategy
  std::map<std::pair<BlockCut, int>, DeviceParts> first_;
  std::set<std::string> known_;  // texts of what was tried
  PlacedStrategy best_;
};

}  // namespace

std::vector<BranchPlaces> places_of(const BranchSet& set, const DeviceGraph& machine, DeviceBlock whole,
                                    const std::vector<double>& work, bool with_join) {
  const auto branches = static_cast<int>(set.branches.size());
  std::vector<std::pair<std::vector<DeviceBlock>, Assignment>> pairs;
  const auto add = [&](const std::vector<DeviceBlock>& blocks, const Assignment& assignment) {
    if (std::pair one{blocks, assignment}; std::ranges::find(pairs, one) == pairs.end())
      pairs.push_back(std::move(one));
  };
  for (const auto& blocks : divisions(machine, whole, branches))
    for (const Assignment& assignment : assignments(blocks, work)) add(blocks, assignment);
  if (std::ranges::all_of(work, [](double one) { return one > 0; })) {
    Assignment own(work.size());
    for (size_t b = 0; b < own.size(); ++b) own[b] = b;
    if (const auto blocks = in_proportion(whole, work); !blocks.empty()) add(blocks, own);
  }
  std::vector<BranchPlaces> all;
  for (const auto& [blocks, assignment] : pairs) {
    BranchPlaces places;
    for (size_t block : assignment) places.blocks.push_back(blocks[block]);
    const bool cuts = std::ranges::any_of(places.blocks, [](const auto& block) { return block.count > 1; });
    for (BlockCut cut : block_cuts) {
      for (bool join : {false, true}) {
        if (join && (!with_join || cut == BlockCut::scaled || cut == BlockCut::single)) continue;
        if (!cuts && !join && cut != BlockCut::single) continue;  // on one device there is nothing to cut
        places.cut = cut;
        places.join = join;
        all.push_back(places);
      }
    }
  }
  return all;
}

Strategy placed(Strategy strategy, const Strategy& start, const Network& network, const BranchSet& set,
                const BranchPlaces& places, DeviceBlock whole) {
  std::map<NodeIndex, std::pair<DeviceBlock, BlockCut>> moved;
  for (size_t b = 0; b < set.branches.size(); ++b)
    for (NodeIndex node : set.branches[b]) moved[node] = {places.blocks[b], places.cut};
  if (places.join) moved[set.join] = {whole, places.cut};
  for (size_t rule = 0; rule < strategy.rules.size(); ++rule) {
    const auto found = moved.find(network.node(strategy.rules[rule].pattern));
    if (found == moved.end()) continue;
    const auto& [block, cut] = found->second;
    strategy.rules[rule].layer = cut_in_block(network, found->first, start.rules[rule].layer, block, cut);
  }
  return strategy;
}

PlacedStrategy place_branches(const Strategy& start, const Network& network, const DeviceGraph& machine,
                              const StrategyCosts& costs, const PlaceOptions& options) {
  return Placer(start, network, machine, costs, options).run();
}

}  // namespace cortado
