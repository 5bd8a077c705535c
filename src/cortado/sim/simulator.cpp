#include "cortado/sim/simulator.h"

#include <algorithm>
#include <map>
#include <memory>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "cortado/base/error.h"
#include "cortado/sim/flows.h"
#include "cortado/sim/ports.h"
#include "cortado/sim/step_seconds.h"

namespace cortado {
namespace {

// Where ranks come together: the message of a tag from one rank to another, or the n-th collective of a
// group, which has a number.
struct Place {
  int from = 0, to = 0;  // -1: a collective, of the group `to`
  int nth = 0;           // the tag
  bool operator==(const Place&) const = default;
};
struct PlaceHash {
  size_t operator()(const Place& place) const {
    size_t hash = 0;
    for (int number : {place.from, place.to, place.nth})
      hash = (hash ^ static_cast<uint32_t>(number)) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
  }
};

// Numbers of groups: equal ones have one.
class GroupNumbers {
 public:
  int of(const RankGroup& group) {
    const auto [known, is_new] = by_list_.try_emplace(&group.ranks());
    if (is_new)
      known->second = by_ranks_.try_emplace(group, static_cast<int>(by_ranks_.size())).first->second;
    return known->second;
  }

 private:
  std::unordered_map<const std::vector<int>*, int> by_list_;  // most groups of a job share theirs
  std::map<RankGroup, int> by_ranks_;
};

struct Participant {
  int rank;
  StepIndex step;
};

// After so many iterations the next one takes what the last one took, carried steps included.
constexpr int settled_iterations = 4;

using Meeting = std::vector<Participant>;  // those who came

// Less computing than this is not worth an event of its own.
constexpr double negligible = 1e-9;  // seconds

class Simulator {
 public:
  Simulator(std::span<const Program> programs, EqualBlocks blocks, CostModel& costs,
            const DeviceGraph& machine)
      : ports_(machine, blocks), flows_(ports_.count()), nodes_(machine.node_of_devices()) {
    const auto known = std::make_shared<StepSeconds::KnownExchanges>();
    for (const Program& program : programs) {
      ensure(program.rank == static_cast<int>(ranks_.size()), "programs are those of all ranks, in order");
      ranks_.emplace_back(program, costs, nodes_, known);
    }
    ensure(std::ssize(ranks_) == blocks.different(), "programs are those of the ranks that differ");
    ensure(blocks.job() <= machine.devices(), "a device runs each rank");
    const bool carries = std::ranges::any_of(
        programs, [](const Program& program) { return std::ranges::any_of(program.steps, &Step::carried); });
    if (carries) iterations_ = settled_iterations;
  }

  Simulation run() {
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) start_what_may(rank);
    while (!computing_.empty() || !flows_.idle()) go_on();
    Simulation simulation;
    Seconds begin, end;
    for (Rank& rank : ranks_) {
      ensure(rank.iteration == iterations_, "no step waits for what never comes");
      begin = std::max(begin, rank.begin);
      end = std::max(end, rank.end);
    }
    for (Rank& rank : ranks_) {
      simulation.ends.push_back(rank.end - begin);
      simulation.computing.push_back(rank.computing_time);
      for (TimelineEntry entry : rank.timeline) {
        entry.begin = entry.begin - begin;
        entry.end = entry.end - begin;
        simulation.timeline.push_back(entry);
      }
    }
    simulation.iteration = end - begin;
    return simulation;
  }

 private:
  struct Rank {
    Rank(const Program& of, CostModel& costs, const std::vector<int>& nodes,
         std::shared_ptr<StepSeconds::KnownExchanges> known)
        : program(of),
          seconds(of, costs, nodes, std::move(known)),
          done(of.steps.size()),
          left(of.steps.size()) {
      for (StepIndex s : indices(of.steps)) {
        lanes[of.steps[s].lane == Lane::compute ? 0 : 1].push_back(s);
        timeline.push_back({of.rank, of.steps[s].lane, s, {}, {}});
        if (!of.steps[s].carried) ++to_end;
      }
    }
    // Whether what the next step of a lane waits for has run. What has, has for good: the next question goes
    // on from there.
    bool ready(int lane) {
      const Step& what = program.steps[lanes[lane][next[lane]]];
      const std::vector<StepIndex>& waits = what.waits;
      const std::vector<StepIndex>& before = what.waits_before;
      size_t& at = waited[lane];
      while (at < waits.size() && done[waits[at]] > iteration) ++at;
      if (at < waits.size()) return false;
      while (at < waits.size() + before.size() && done[before[at - waits.size()]] >= iteration) ++at;
      return at == waits.size() + before.size();
    }
    StepIndex begin_next(int lane) {
      waited[lane] = 0;
      return lanes[lane][next[lane]++];
    }
    // True when the iteration is over, but for carried steps, which have all begun.
    bool over() const { return ended == to_end && next[1] == lanes[1].size(); }
    const Program& program;
    StepSeconds seconds;
    std::vector<StepIndex> lanes[2];  // steps of the compute and of the communication lane
    size_t next[2] = {0, 0};          // of each lane
    size_t waited[2] = {0, 0};        // of what the next step waits for, so many have run
    bool computes = false;            // a step of the compute lane is under way
    int iteration = 0;
    IndexedVector<StepIndex, int> done;     // how often
    IndexedVector<StepIndex, int> left;     // of steps under way: meetings that are not over
    int to_end = 0, ended = 0;              // steps that are not carried: all; by now
    std::unordered_map<int, int> meetings;  // of each group so far, by its number
    struct Overhead {
      int flow;
      double seconds;  // of computing, to the whole of it
    };
    std::vector<Overhead> overheads;  // to flows under way
    double ended_overhead = 0;        // to those that have ended
    double counted = 0;               // of all overheads: what has lengthened a step already, or met none
    Timeline timeline;
    Seconds begin, end, computing_time;  // of the last iteration
  };
  struct Computing {
    double end;
    int rank;
    StepIndex step;
    bool operator>(const Computing& other) const {
      return std::tie(end, rank) > std::tie(other.end, other.rank);
    }
  };

  Rank& rank(int number) { return ranks_[static_cast<size_t>(number)]; }
  bool is_simulated(int number) const { return number < static_cast<int>(ranks_.size()); }

  // Goes to the next event: steps or transfers that end.
  void go_on() {
    // Flows go on by their own time, as the difference of two late times is less exact.
    double passes = flows_.next_end(), next = now_ + passes;
    if (!computing_.empty() && computing_.top().end <= next) {
      next = computing_.top().end;
      passes = std::min(passes, next - now_);
    }
    std::vector<int> moved;  // ranks with something new
    for (int flow : flows_.advance(passes)) {
      for (const Participant& one : under_way_.at(flow)) {
        end_overhead(rank(one.rank), flow);
        if (--rank(one.rank).left[one.step] == 0) ended(one.rank, one.step, next);
        moved.push_back(one.rank);
      }
      under_way_.erase(flow);
    }
    now_ = next;
    while (!computing_.empty() && computing_.top().end <= now_) {
      const Computing one = computing_.top();
      computing_.pop();
      if (lengthened(one)) continue;
      rank(one.rank).computes = false;
      ended(one.rank, one.step, now_);
      moved.push_back(one.rank);
    }
    std::ranges::sort(moved);
    moved.erase(std::ranges::unique(moved).begin(), moved.end());
    for (int number : moved) start_what_may(number);
  }

  // Seconds of computing that a rank has lost to its messages by now.
  double overhead_so_far(const Rank& of) const {
    double overhead = of.ended_overhead;
    for (const auto& [flow, seconds] : of.overheads) overhead += seconds * flows_.done(flow);
    return overhead;
  }

  void end_overhead(Rank& of, int flow) {
    for (const Rank::Overhead& overhead : of.overheads)
      if (overhead.flow == flow) of.ended_overhead += overhead.seconds;
    std::erase_if(of.overheads, [&](const Rank::Overhead& overhead) { return overhead.flow == flow; });
  }

  // A step goes on for what messages have taken from it since that was last looked at.
  bool lengthened(const Computing& one) {
    Rank& of = rank(one.rank);
    const double longer = overhead_so_far(of) - of.counted;
    if (longer < negligible) return false;
    of.counted += longer;
    of.computing_time.count += longer;
    computing_.push({one.end + longer, one.rank, one.step});
    return true;
  }

  void ended(int number, StepIndex step, double when) {
    Rank& of = rank(number);
    ++of.done[step];
    of.timeline[static_cast<size_t>(step.value())].end = {when};
    if (!of.program.steps[step].carried) ++of.ended;
  }

  void start_what_may(int number) {
    while (start_communication(number) || start_computing(number) || start_iteration(number)) {
    }
  }

  bool start_iteration(int number) {
    Rank& of = rank(number);
    if (of.iteration == iterations_ || !of.over()) return false;
    of.begin = std::exchange(of.end, {now_});
    if (++of.iteration == iterations_) return false;
    of.computing_time = {};
    std::ranges::fill(of.next, 0);
    of.ended = 0;
    return true;
  }

  bool start_computing(int number) {
    Rank& of = rank(number);
    if (of.computes || of.next[0] == of.lanes[0].size()) return false;
    if (!of.ready(0)) return false;
    const StepIndex step = of.begin_next(0);
    of.timeline[static_cast<size_t>(step.value())].begin = {now_};
    const Seconds seconds = of.seconds.of(of.program.steps[step]);
    of.computing_time += seconds;
    if (seconds.count <= 0) {
      ended(number, step, now_);
    } else {
      of.computes = true;
      of.counted = overhead_so_far(of);
      computing_.push({now_ + seconds.count, number, step});
    }
    return true;
  }

  bool start_communication(int number) {
    Rank& of = rank(number);
    if (of.next[1] == of.lanes[1].size()) return false;
    if (!of.ready(1)) return false;
    const StepIndex index = of.begin_next(1);
    of.timeline[static_cast<size_t>(index.value())].begin = {now_};
    const Step& step = of.program.steps[index];
    int& left = of.left[index];
    ++left;  // while it comes to its meetings, of which any may take no time
    std::visit(Overloaded{[&](const steps::Exchange& exchange) {
                            exchange.group.empty() ? meet_peers(number, index) : meet_group(number, index);
                          },
                          [&](const steps::OfGroup auto&) { meet_group(number, index); },
                          [](const steps::Local auto&) {}},
               step.action);
    if (--left == 0) ended(number, index, now_);
    return true;
  }

  void meet_peers(int number, StepIndex index) {
    const Movement movement = rank(number).program.movement_of(rank(number).program.steps[index]);
    const auto bytes = [&](const auto& part) { return bytes_of(part.box.shape(), movement.type()); };
    for (const auto& part : movement.sends)
      if (is_simulated(part.peer)) meet_peer(number, part.peer, bytes(part), number, index);
    for (const auto& part : movement.receives)
      if (is_simulated(part.peer)) meet_peer(part.peer, number, bytes(part), number, index);
  }

  void meet_peer(int from, int to, Bytes bytes, int number, StepIndex index) {
    const int tag = rank(number).program.steps[index].as<steps::Exchange>()->tag;
    come({from, to, tag}, 2, number, index, [&] {
      const int flow = start_flow(ports_.message_seconds(from, to, bytes), ports_.message(from, to),
                                  ports_.wait(from, to), needed(rank(number), index));
      for (int end : {from, to})
        add_overhead(end, flow,
                     {ports_.stands_for(from, to, end) * ports_.message_overhead(from, to, bytes).count});
      return flow;
    });
  }

  void meet_group(int number, StepIndex index) {
    Rank& of = rank(number);
    const Step& step = of.program.steps[index];
    const std::vector<int>& group = step.group();
    const int which = group_numbers_.of(step.group());
    const auto here = std::span(group).first(
        static_cast<size_t>(std::ranges::lower_bound(group, std::ssize(ranks_)) - group.begin()));
    come({-1, which, of.meetings[which]++}, here.size(), number, index, [&] {
      const Seconds alone = of.seconds.of(step);
      const auto [kind, bytes] = of.seconds.group_step(step);
      const int flow = start_flow(alone, ports_.collective(kind, group, bytes, alone), ports_.wait(group),
                                  needed(of, index));
      for (int member : here)
        add_overhead(member, flow, ports_.collective_overhead(kind, group, bytes, member));
      return flow;
    });
  }

  // A flow that finds its links busy with what is needed later takes `wait` more, in which it moves nothing.
  int start_flow(Seconds alone, std::vector<Flows::Load> loads, Seconds wait, double needed) {
    if (wait.count > 0 && flows_.later_use(loads, needed)) {
      for (Flows::Load& load : loads) load.share *= alone.count / (alone + wait).count;
      alone += wait;
    }
    return flows_.start(alone.count, std::move(loads), needed);
  }

  // Counts in iterations: programs of different ranks have different numbers of steps.
  static double needed(const Rank& of, StepIndex step) {
    const double needed = of.program.steps[step].needed;
    return needed > 0 ? of.iteration + needed / static_cast<double>(of.program.steps.size()) : 0;
  }

  void add_overhead(int number, int flow, Seconds overhead) {
    if (overhead.count > 0) rank(number).overheads.push_back({flow, overhead.count});
  }

  // The last one to come to a place starts the transfer.
  template <typename Start>
  void come(Place place, size_t expected, int number, StepIndex index, Start&& start) {
    ++rank(number).left[index];
    Meeting& meeting = meetings_[place];
    meeting.push_back({number, index});
    if (meeting.size() < expected) return;
    under_way_[start()] = std::move(meeting);
    meetings_.erase(place);
  }

  const Ports ports_;
  Flows flows_;
  std::vector<int> nodes_;  // per device
  std::vector<Rank> ranks_;
  GroupNumbers group_numbers_;
  std::unordered_map<Place, Meeting, PlaceHash> meetings_;  // not all have come
  std::unordered_map<int, Meeting> under_way_;              // by flow
  std::priority_queue<Computing, std::vector<Computing>, std::greater<>> computing_;
  double now_ = 0;
  int iterations_ = 1;
};

}  // namespace

Simulation simulate(std::span<const Program> programs, CostModel& costs, const DeviceGraph& machine) {
  return simulate(programs, {static_cast<int>(programs.size()), 1}, costs, machine);
}

Simulation simulate(std::span<const Program> programs, EqualBlocks blocks, CostModel& costs,
                    const DeviceGraph& machine) {
  return Simulator(programs, blocks, costs, machine).run();
}

}  // namespace cortado
