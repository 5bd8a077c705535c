// Bytes that a rank sends and receives in an iteration.
#include "cortado/program/volume.h"

#include <map>

#include "tests/program/programs.h"

namespace cortado {
namespace {

using testing::all;
using testing::lower_job;
using testing::NetBuilder;

Volumes volumes(const Degrees& degrees, GradientSync sync = GradientSync::allreduce) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").loss("b", "data").build();
  NodeStrategies strategies = all(net, degrees);
  strategies[net.node("a")].sync = strategies[net.node("b")].sync = sync;
  return volumes_of(lower_job(net, strategies, degrees.product())[0]);
}

// Weights and biases of a and b: 2 * (144 + 4) floats.
constexpr int64_t parameters = 2 * 148 * 4;
constexpr int64_t row = 2 * 4 * 6 * 4;  // of one tensor of 2x4x6x6

TEST(Volumes, OfAnAllreduceAreTwiceAllButOneShare) {
  EXPECT_EQ(volumes({.n = 2}).gradients, (Volume{{parameters}, {parameters}}));  // 2 * (2-1)/2
  // Shares of 98, 99 and 99 floats: there all but its own, and all but the one that it would end with.
  EXPECT_EQ(volumes({.h = 3}).gradients, (Volume{{4 * (198 + 197)}, {4 * (197 + 198)}}));
}

TEST(Volumes, OfOwnersAreThoseOfAnAllreduce) {
  EXPECT_EQ(volumes({.n = 2}, GradientSync::owner).gradients, volumes({.n = 2}).gradients);
}

TEST(Volumes, OfOneRankAreNothing) { EXPECT_EQ(volumes({}).total(), Volume{}); }

// One row there and its gradient back. The loss, a float, is summed on rank 0 and reported to rank 1.
TEST(Volumes, OfHalosAreTheirRows) {
  EXPECT_EQ(volumes({.h = 2}).messages, (Volume{{2 * row + 4}, {2 * row + 4}}));
  EXPECT_EQ(volumes({.h = 2}).gathers, Volume{});
}

// Each has half of a, needs all of it, and gives back the gradient of the other half.
TEST(Volumes, OfChannelsAreGathersAndScatters) {
  const Volumes found = volumes({.c = 2});
  EXPECT_EQ(found.gathers, (Volume{{3 * row}, {3 * row}}));
  EXPECT_EQ(found.scatters, (Volume{{3 * row}, {3 * row}}));
  EXPECT_EQ(found.gradients, Volume{});
}

// Sends chunks round a ring one by one. Each is handed on from one rank to the next, all round but one step.
class Ring {
 public:
  Ring(const std::vector<int>& group, std::map<int, Volume>& volumes) : group_(group), volumes_(volumes) {}

  // Goes round from the owner on.
  void gather(size_t owner, Bytes bytes) { go_round(owner, bytes); }
  // Goes round to the owner: the rank after it begins.
  void scatter(size_t owner, Bytes bytes) { go_round(owner + 1, bytes); }

 private:
  void go_round(size_t from, Bytes bytes) {
    for (size_t hop = 0; hop + 1 < group_.size(); ++hop) {
      volumes_[group_[(from + hop) % group_.size()]].sent += bytes;
      volumes_[group_[(from + hop + 1) % group_.size()]].received += bytes;
    }
  }
  const std::vector<int>& group_;
  std::map<int, Volume>& volumes_;
};

int64_t elements_of(const Program& program, const Step& step) {
  int64_t elements = 0;
  for (ParameterIndex parameter : step.parameters())
    elements += program.placement->slices[parameter][program.rank]->shape().size();
  return elements;
}

// What a collective of the first rank of its group moves at all its members. Others tell the same.
void add_collective(const Program& program, const Step& step, std::map<int, Volume>& volumes) {
  const std::vector<int>& group = step.group();
  if (group.empty() || group[0] != program.rank) return;
  Ring ring(group, volumes);
  const auto members = static_cast<int64_t>(group.size());
  for (int64_t i = 0; i < members; ++i) {
    const auto owner = static_cast<size_t>(i);
    if (const auto* sum = step.as<steps::SumStatistics>()) {
      const int64_t addends = sum->sums.bytes.size() / 8;
      const Bytes share{8 * (addends * (i + 1) / members - addends * i / members)};
      ring.scatter(owner, share);
      ring.gather(owner, share);
    } else if (step.is<steps::Exchange>()) {
      const Movement movement = program.movement_of(step);
      const auto& chunk = movement.chunks[owner];
      const Bytes bytes{chunk ? 4 * chunk->shape().size() : 0};
      movement.sums ? ring.scatter(owner, bytes) : ring.gather(owner, bytes);
    } else {
      const int64_t elements = elements_of(program, step);
      const Bytes even{4 * (elements * (i + 1) / members - elements * i / members)};
      const Bytes block{4 * block_of(elements, static_cast<int>(members), static_cast<int>(i)).size()};
      if (step.is<steps::SumGradient>()) ring.scatter(owner, even), ring.gather(owner, even);
      if (step.is<steps::ScatterGradient>()) ring.scatter(owner, block);
      if (step.is<steps::GatherParameter>()) ring.gather(owner, block);
    }
  }
}

TEST(Volumes, AreThoseOfChunksThatGoRoundOneByOne) {
  Bytes moved;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const int ranks = 2 + static_cast<int>(seed % 5);
    SCOPED_TRACE(fmt::format("seed {}, {} ranks", seed, ranks));
    const Network net = testing::random_net(seed);
    const Strategy strategy = random_strategy(seed, net, ranks);
    const auto programs = lower_job(net, resolve(strategy, net, ranks, "random"), ranks);
    std::map<int, Volume> expected;
    for (const Program& program : programs) {
      for (const Step& step : program.steps) {
        add_collective(program, step, expected);
        if (!step.is<steps::Exchange>() || !step.group().empty()) continue;
        for (const auto& part : program.movement_of(step).sends) {
          expected[program.rank].sent += {4 * part.box.shape().size()};
          expected[part.peer].received += {4 * part.box.shape().size()};
        }
      }
    }
    for (const Program& program : programs) {
      EXPECT_EQ(volumes_of(program).total(), expected[program.rank]) << program.rank;
      moved += volumes_of(program).total().sent;
    }
  }
  EXPECT_GT(moved.count, 1'000'000);
}

}  // namespace
}  // namespace cortado
