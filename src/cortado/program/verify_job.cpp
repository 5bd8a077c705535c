#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <tuple>

#include "cortado/base/error.h"
#include "cortado/program/verify.h"

namespace cortado {
namespace {

void check(bool holds, std::string message) {
  if (!holds) throw InternalError("programs of a job: " + message);
}

// visit(rank, tag, movement) for every exchange of the programs.
template <typename Visit>
void for_each_exchange(std::span<const Program> programs, Visit&& visit) {
  for (const Program& program : programs)
    for (const Step& step : program.steps)
      if (const auto* exchange = step.as<steps::Exchange>())
        visit(program.rank, exchange->tag, program.movement_of(step));
}

void verify_messages(std::span<const Program> programs) {
  std::map<std::tuple<int, int, int>, Box> sent;  // from, to, tag
  size_t receives = 0;
  for_each_exchange(programs, [&](int rank, int tag, const Movement& movement) {
    for (const auto& part : movement.sends) {
      const bool fresh = sent.insert({{rank, part.peer, tag}, part.box}).second;
      check(fresh, fmt::format("rank {} sends to {} twice under tag {}", rank, part.peer, tag));
    }
  });
  for_each_exchange(programs, [&](int rank, int tag, const Movement& movement) {
    for (const auto& part : movement.receives) {
      auto found = sent.find({part.peer, rank, tag});
      check(found != sent.end(),
            fmt::format("rank {} waits for a message of {} under tag {} that is not sent", rank, part.peer,
                        tag));
      check(found->second == part.box, fmt::format("rank {} sends {} to {}, which expects {}", part.peer,
                                                   found->second.text(), rank, part.box.text()));
      ++receives;
    }
  });
  check(receives == sent.size(), fmt::format("{} messages are sent and {} received", sent.size(), receives));
}

// A collective moves what the messages of its movement would.
void verify_chunks(std::span<const Program> programs) {
  for (const Program& program : programs) {
    for (const Step& step : program.steps) {
      if (!step.is<steps::Exchange>() || step.group().empty()) continue;
      const Movement& copy = program.works[step.work()].movement;
      const Movement movement = copy.sums ? adjoint(copy) : copy;
      std::vector<std::optional<Box>> arrives(step.group().size());
      auto arrive = [&](int from, const Box& box) {
        const auto member = std::ranges::find(step.group(), from) - step.group().begin();
        check(member < std::ssize(step.group()),
              fmt::format("rank {} is not of the group that it serves", from));
        arrives[static_cast<size_t>(member)] = box;
      };
      for (const auto& part : movement.receives) arrive(part.peer, part.box);
      if (movement.local) arrive(program.rank, *movement.local);
      check(arrives == movement.chunks,
            fmt::format("rank {} gathers other chunks than its movement says", program.rank));
    }
  }
}

void verify_collectives(std::span<const Program> programs) {
  std::map<int, Meetings> of_rank;
  for (const Program& program : programs) of_rank[program.rank] = meetings_of(program);
  for (const auto& [rank, meetings] : of_rank) {
    for (const auto& [group, what] : meetings) {
      for (int other : group) {
        const auto& others = of_rank[other];
        const auto found = others.find(group);
        check(found != others.end() && found->second == what,
              fmt::format("rank {} does not meet its group in the order of rank {}", other, rank));
      }
    }
  }
}

// What tells a step from others of its group, beside its name and parameters.
std::string meeting_detail(const Program& program, const Step& step) {
  return std::visit(Overloaded{[&](const steps::Exchange& exchange) {
                                 std::string text = fmt::format(" {} {}", exchange.backward, exchange.tag);
                                 for (const auto& chunk : program.movement_of(step).chunks)
                                   text += fmt::format(" {}", chunk ? chunk->text() : "none");
                                 return text;
                               },
                               [&](const steps::SumStatistics& sum) {
                                 return fmt::format(" {} of {}", sum.backward,
                                                    program.works[sum.work].nodes.front());
                               },
                               [](const steps::MovesParameters auto&) { return std::string(); },
                               [](const steps::Local auto&) { return std::string(); }},
                    step.action);
}

}  // namespace

Meetings meetings_of(const Program& program) {
  Meetings meetings;
  for (const Step& step : program.steps) {
    if (step.group().empty()) continue;
    meetings[step.group()].push_back(fmt::format("{} [{}]{}", name_of(program, step),
                                                 fmt::join(step.parameters(), ","),
                                                 meeting_detail(program, step)));
  }
  return meetings;
}

void verify_job(std::span<const Program> programs) {
  verify_messages(programs);
  verify_chunks(programs);
  verify_collectives(programs);
}

}  // namespace cortado
