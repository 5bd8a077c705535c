#include "cortado/exec/agreement.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <span>

#include "cortado/base/compute_threads.h"
#include "cortado/base/digest.h"
#include "cortado/base/error.h"
#include "cortado/program/verify.h"

namespace cortado {

std::vector<std::string> texts_of_all(Communicator& communicator, const std::string& mine) {
  std::vector<std::string> texts;
  for (const auto& bytes : communicator.all_to_all_bytes(std::as_bytes(std::span(mine))))
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return texts;
}

void check_memory_orders(const Network& network, const Program& program, const ParameterStore& parameters,
                         const ParameterEntries& entries, Communicator& communicator) {
  if (communicator.size() == 1) return;
  std::string mine;
  for (ParameterIndex p : indices(entries)) {
    const auto& entry = parameters.entries()[entries[p]];
    const auto& slice = program.placement->slices[p][communicator.rank()];
    mine += fmt::format("{} {} {}\n", slice ? slice->text() : "none", entry.elements, entry.format.name);
  }
  auto lines_of = [](const std::string& text) {
    IndexedVector<ParameterIndex, std::string> lines;
    for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      lines.push_back(text.substr(at, text.find('\n', at) - at));
    return lines;
  };
  const auto texts = texts_of_all(communicator, mine);
  const auto own = lines_of(mine);
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    const auto other = lines_of(texts[rank]);
    if (other.size() != own.size()) {
      throw UserError(fmt::format("rank {} trains another net than rank {}: give all ranks the same files",
                                  rank, communicator.rank()));
    }
    for (ParameterIndex p : indices(entries)) {
      const auto& layout = program.placement->slices[p];
      if (layout[rank] != layout[communicator.rank()] || !layout[rank] || own[p] == other[p]) continue;
      throw UserError(
          fmt::format("parameter {} lies otherwise in the memory of rank {} ({}) than of rank {} ({}): "
                      "use the same program and kernels on all ranks",
                      network.parameters()[p].name, rank, other[p], communicator.rank(), own[p]));
    }
  }
}

void check_replicas(const Placement& placement, Communicator& communicator) {
  using Gradients = Placement::Operation::Gradients;
  const auto only = [](const auto& operation) { return operation.gradients == Gradients::only; };
  if (std::ranges::none_of(placement.operations, only)) return;
  const std::string mine = fmt::format("{} threads", compute_threads());
  const auto texts = texts_of_all(communicator, mine);
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank] == mine) continue;
    throw UserError(fmt::format(
        "sync = replicate: rank {} has {}, rank {} has {}: gradients that each computes would round "
        "differently; give all ranks the same number of threads, or use allreduce",
        communicator.rank(), mine, rank, texts[rank]));
  }
}

void meet_groups(const Program& program, Communicator& communicator) {
  std::string mine;
  const Meetings meetings = meetings_of(program);
  for (const auto& [group, what] : meetings)
    mine +=
        fmt::format("{} {:016x}\n", fmt::join(group, ","), digest(fmt::format("{}", fmt::join(what, ";"))));
  const auto texts = texts_of_all(communicator, mine);
  for (const auto& [group, what] : meetings) {
    const std::string name = fmt::format("{} ", fmt::join(group, ","));
    auto line_in = [&](const std::string& text) {
      const size_t at = ("\n" + text).find("\n" + name);
      return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
    };
    for (int member : group) {
      if (line_in(texts[static_cast<size_t>(member)]) == line_in(mine)) continue;
      throw UserError(
          fmt::format("ranks {} and {} would communicate in another order: use the same program, kernels and "
                      "kind of processor on all ranks",
                      communicator.rank(), member));
    }
    communicator.allreduce(group, {nullptr, ElementType::f64}, 0);
  }
}

}  // namespace cortado
