#include "cortado/train/same_start.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <vector>

#include "cortado/base/digest.h"
#include "cortado/base/error.h"

namespace cortado {

void check_same_start(Communicator& communicator, std::span<const StartFact> facts) {
  if (communicator.size() == 1) return;
  std::vector<uint64_t> mine;
  for (const StartFact& fact : facts) mine.push_back(digest(fact.value));
  const auto all = communicator.all_to_all_bytes(std::as_bytes(std::span(mine)));
  // The first difference in the order of facts, then of ranks: the same wherever it is looked for. Ranks of
  // other commands may have another number of facts.
  for (size_t f = 0; f < facts.size(); ++f) {
    const size_t begin = f * sizeof(uint64_t), end = begin + sizeof(uint64_t);
    for (size_t rank = 1; rank < all.size(); ++rank) {
      const bool there = all[0].size() >= end && all[rank].size() >= end;
      if (there && std::memcmp(&all[0][begin], &all[rank][begin], sizeof(uint64_t)) == 0) continue;
      throw UserError(
          fmt::format("rank {} does not have the {} of rank 0; give all ranks the same files, "
                      "options and build of cortado",
                      rank, facts[f].name));
    }
  }
}

StartFact fact_of(const std::string& what, const NetFile& file, const caffe::NetState& state) {
  return {fmt::format("{} {}", what, file.path),
          file.net.SerializeAsString() + state.SerializeAsString() + std::string(name_of(file.precision))};
}

std::vector<StartFact> facts_of(const SolverNets& nets) {
  std::vector<StartFact> facts{fact_of("net", nets.train.file, nets.train.state)};
  for (const SolverNet& net : nets.tests) facts.push_back(fact_of("test net", net.file, net.state));
  return facts;
}

}  // namespace cortado
