#include "tests/sim/simgrid_job.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <simgrid/s4u.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "cortado/base/error.h"

namespace cortado::testing {
namespace {

namespace sg = simgrid::s4u;

constexpr double flops_per_second = 1e9;  // of each host, which compute so many times their seconds
// With fewer bytes in a piece latency counts more than bytes, and messages go by trees in place of rings.
constexpr double ring_piece = 4096;
// After so many iterations the next one takes what the last one took, with what was carried into it.
constexpr int iterations = 4;

// The hardware: each device has a port in and out for each kind of link that it has; a node has an interface
// in and out, and a bus.
class Platform {
 public:
  explicit Platform(const DeviceGraph& machine) : machine_(machine), zone_(sg::create_full_zone("machine")) {
    for (int device = 0; device < machine.devices(); ++device)
      hosts_.push_back(zone_->create_host(fmt::format("host {}", device), flops_per_second));
    for (int from = 0; from < machine.devices(); ++from)
      for (int to = 0; to < machine.devices(); ++to)
        if (from != to) connect(from, to);
    zone_->seal();
  }
  sg::Host* host(int device) const { return hosts_[static_cast<size_t>(device)]; }

 private:
  const sg::Link* link(const std::string& name, double rate, double latency = 0) {
    sg::Link*& link = links_[name];
    if (!link) link = zone_->create_link(name, rate)->set_latency(latency)->seal();
    return link;
  }

  void connect(int from, int to) {
    const Link joins = machine_.link(from, to);
    const double rate = joins.bandwidth.bytes_per_second;
    const bool across = machine_.crosses_nodes(from, to);
    const std::string kind = fmt::format("{} {} {}", across, rate, joins.latency.count);
    std::vector<sg::LinkInRoute> route;
    const auto through = [&](const std::string& name, double bytes_per_second, double latency = 0) {
      if (bytes_per_second > 0) route.emplace_back(link(name, bytes_per_second, latency));
    };
    through(fmt::format("{} out {}", from, kind), rate, joins.latency.count);
    const int left = machine_.node_of(from), entered = machine_.node_of(to);
    if (across) {
      through(fmt::format("interface {} out", left), machine_.nic(left).bytes_per_second);
      through(fmt::format("interface {} in", entered), machine_.nic(entered).bytes_per_second);
    } else {
      through(fmt::format("bus {}", left), machine_.bus(left).bytes_per_second);
    }
    through(fmt::format("{} in {}", to, kind), rate);
    zone_->add_route(host(from)->get_netpoint(), host(to)->get_netpoint(), nullptr, nullptr, route, false);
  }

  const DeviceGraph& machine_;
  sg::NetZone* zone_;
  std::vector<sg::Host*> hosts_;
  std::map<std::string, sg::Link*> links_;
};

// What an actor sends and receives at a time, each under a name on which both sides agree.
class Round {
 public:
  void send(const std::string& name, double bytes) {
    static int something;
    all_.push_back(sg::Mailbox::by_name(name)->put_async(&something, static_cast<uint64_t>(bytes)));
  }
  void receive(const std::string& name) {
    received_.push_back(std::make_unique<void*>());
    all_.push_back(sg::Mailbox::by_name(name)->get_async<void>(received_.back().get()));
  }
  ~Round() {
    for (const sg::CommPtr& one : all_) one->wait();
  }

 private:
  std::vector<sg::CommPtr> all_;
  std::vector<std::unique_ptr<void*>> received_;
};

// A member's part in a collective over `bytes`, known to all members by `name`.
class Member {
 public:
  Member(std::string name, size_t place, size_t members, double bytes)
      : name_(std::move(name)), place_(place), members_(members), bytes_(bytes) {}

  void allreduce() {
    if (bytes_ / static_cast<double>(members_) >= ring_piece) {
      ring(), ring();
    } else {
      tree();
    }
  }
  void reduce_scatter_or_allgather() {
    if (bytes_ / static_cast<double>(members_) >= ring_piece || (members_ & (members_ - 1)) != 0) {
      ring();
    } else {
      doubling();
    }
  }

 private:
  std::string way(size_t from, size_t to) const { return fmt::format("{}: {} {}", name_, from, to); }

  // Every member hands a piece on to the next one, all but once around.
  void ring() {
    const size_t next = (place_ + 1) % members_, before = (place_ + members_ - 1) % members_;
    for (size_t round = 1; round < members_; ++round) {
      Round both;
      both.send(way(place_, next), bytes_ / static_cast<double>(members_));
      both.receive(way(before, place_));
    }
  }

  // Pairs exchange ever more (or, the other way round, ever less) of it: powers of two alone.
  void doubling() {
    for (size_t apart = 1; apart < members_; apart *= 2) {
      const size_t other = place_ ^ apart;
      Round both;
      both.send(way(place_, other), bytes_ * static_cast<double>(apart) / static_cast<double>(members_));
      both.receive(way(other, place_));
    }
  }

  // Sums go to the first member by a binomial tree, and come back by it.
  void tree() {
    size_t apart = 1;
    for (; apart < members_ && place_ % (2 * apart) == 0; apart *= 2) {
      if (place_ + apart >= members_) continue;
      Round one;
      one.receive(way(place_ + apart, place_));
    }
    if (place_ > 0) {
      {
        Round one;
        one.send(way(place_, place_ - apart), bytes_);
      }
      {
        Round one;
        one.receive(way(place_ - apart, place_));
      }
    }
    for (apart /= 2; apart > 0; apart /= 2) {
      if (place_ + apart >= members_) continue;
      Round one;
      one.send(way(place_, place_ + apart), bytes_);
    }
  }

  std::string name_;
  size_t place_, members_;
  double bytes_;
};

double bytes_of_box(const Box& box) { return 4.0 * static_cast<double>(box.shape().size()); }

// One rank: two lanes that wait for each other, as docs/explanation/lanes.md has them.
class Rank {
 public:
  Rank(const Program& program, const IndexedVector<StepIndex, Seconds>& seconds, sg::Host* host)
      : program_(program), seconds_(seconds), host_(host), done_(program.steps.size()) {
    for (StepIndex s : indices(program.steps)) {
      const Step& step = program.steps[s];
      lanes_[step.lane == Lane::compute ? 0 : 1].push_back(s);
      if (!step.carried) ++count_;
    }
    sg::Actor::create("computes", host, [this] { compute(); });
    sg::Actor::create("communicates", host, [this] { communicate(); });
  }
  double end(int iteration) const { return ends_.at(static_cast<size_t>(iteration)); }

 private:
  const Step& step(StepIndex index) const { return program_.steps[index]; }

  void wait_until(const std::function<bool()>& holds) {
    std::unique_lock lock(*mutex_);
    while (!holds()) changed_->wait(lock);
  }
  void change(const std::function<void()>& what) {
    const std::scoped_lock lock(*mutex_);
    what();
    changed_->notify_all();
  }

  bool may_start(StepIndex index, int iteration) const {
    const auto ran = [&](int times) {
      return [this, times](StepIndex other) { return done_[other] >= times; };
    };
    return std::ranges::all_of(step(index).waits, ran(iteration + 1)) &&
           std::ranges::all_of(step(index).waits_before, ran(iteration));
  }

  void end_step(StepIndex index) {
    change([&] {
      ++done_[index];
      if (!step(index).carried) ++ended_;
    });
  }

  void compute() {
    for (int iteration = 0; iteration < iterations; ++iteration) {
      change([&] {
        begun_ = iteration;
        started_ = 0;
        ended_ = 0;
      });
      for (StepIndex index : lanes_[0]) {
        wait_until([&] { return may_start(index, iteration); });
        const double seconds = seconds_[index].count;
        if (seconds > 0) sg::this_actor::execute(seconds * flops_per_second);
        end_step(index);
      }
      wait_until([&] { return ended_ == count_ && started_ == lanes_[1].size(); });
      ends_.push_back(sg::Engine::get_clock());
    }
  }

  void communicate() {
    for (int iteration = 0; iteration < iterations; ++iteration) {
      wait_until([&] { return begun_ == iteration; });
      for (StepIndex index : lanes_[1]) {
        wait_until([&] { return may_start(index, iteration); });
        // Numbered as they start, which is the same order everywhere.
        const int nth = step(index).group().empty() ? 0 : collectives_[step(index).group()]++;
        sg::Actor::create("message", host_, [this, index, nth] {
          run(step(index), nth);
          end_step(index);
        });
        change([&] { ++started_; });
      }
    }
  }

  void run(const Step& what, int nth) {
    if (!what.group().empty()) return collective(what, nth);
    if (!what.is<steps::Exchange>()) return;  // a load: batches are there
    const Movement movement = program_.movement_of(what);
    const int tag = what.as<steps::Exchange>()->tag;
    Round all;
    const auto name = [&](int from, int to) { return fmt::format("{} to {}, {}", from, to, tag); };
    for (const auto& part : movement.sends) all.send(name(program_.rank, part.peer), bytes_of_box(part.box));
    for (const auto& part : movement.receives) all.receive(name(part.peer, program_.rank));
  }

  void collective(const Step& what, int nth) {
    double bytes = 0;
    if (what.is<steps::Exchange>()) {
      for (const auto& chunk : program_.movement_of(what).chunks)
        if (chunk) bytes += bytes_of_box(*chunk);
    } else if (const auto* statistics = what.as<steps::SumStatistics>()) {
      bytes = static_cast<double>(statistics->sums.bytes.size());
    } else {
      for (ParameterIndex parameter : what.parameters()) {
        const Layout& slices = program_.placement->slices[parameter];
        bytes += bytes_of_box(*slices[static_cast<size_t>(program_.rank)]);
      }
    }
    const auto place = std::ranges::find(what.group(), program_.rank) - what.group().begin();
    Member member(fmt::format("{} {}", fmt::join(what.group(), ","), nth), static_cast<size_t>(place),
                  what.group().size(), bytes);
    if (what.is<steps::SumGradient>() || what.is<steps::SumStatistics>()) {
      member.allreduce();
    } else {
      member.reduce_scatter_or_allgather();
    }
  }

  const Program& program_;
  const IndexedVector<StepIndex, Seconds>& seconds_;
  sg::Host* host_;
  std::vector<StepIndex> lanes_[2];  // steps of the compute and of the communication lane
  int count_ = 0;                    // steps that are not carried
  sg::MutexPtr mutex_ = sg::Mutex::create();
  sg::ConditionVariablePtr changed_ = sg::ConditionVariable::create();
  IndexedVector<StepIndex, int> done_;  // how often
  int ended_ = 0, begun_ = -1;
  size_t started_ = 0;                           // messages, in this iteration
  std::map<std::vector<int>, int> collectives_;  // of each group so far
  std::vector<double> ends_;
};

double simulate_here(std::span<const Program> programs,
                     const std::vector<IndexedVector<StepIndex, Seconds>>& seconds,
                     const DeviceGraph& machine) {
  std::string words[] = {"simgrid", "--log=root.thres:error", "--cfg=contexts/stack-size:256"};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  int count = 3;
  sg::Engine engine(&count, arguments);
  // Bytes over rate plus latency, no TCP: nothing else is known of these networks.
  for (const char* setting : {"network/model:CM02", "network/latency-factor:1", "network/bandwidth-factor:1",
                              "network/weight-S:0", "network/crosstraffic:0", "network/TCP-gamma:0"})
    sg::Engine::set_config(setting);
  Platform platform(machine);
  std::vector<std::unique_ptr<Rank>> ranks;
  for (const Program& program : programs) {
    const auto rank = static_cast<size_t>(program.rank);
    ranks.push_back(std::make_unique<Rank>(program, seconds[rank], platform.host(program.rank)));
  }
  engine.run();
  const auto end = [&](int iteration) {
    double last = 0;
    for (const auto& rank : ranks) last = std::max(last, rank->end(iteration));
    return last;
  };
  return end(iterations - 1) - end(iterations - 2);
}

}  // namespace

double simgrid_iteration(std::span<const Program> programs,
                         const std::vector<IndexedVector<StepIndex, Seconds>>& seconds,
                         const DeviceGraph& machine) {
  int ends[2];
  ensure(pipe(ends) == 0, "a pipe can be made");
  const pid_t child = fork();
  ensure(child >= 0, "a process can be made");
  if (child == 0) {
    double found = -1;
    try {
      found = simulate_here(programs, seconds, machine);
    } catch (const std::exception& error) {
      fmt::print(stderr, "SimGrid: {}\n", error.what());
    }
    const bool told = write(ends[1], &found, sizeof found) == sizeof found;
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  double found = -1;
  const bool told = read(ends[0], &found, sizeof found) == sizeof found;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!told || found < 0) throw InternalError("SimGrid did not come to an end");
  return found;
}

}  // namespace cortado::testing
