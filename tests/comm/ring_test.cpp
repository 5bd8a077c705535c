#include "cortado/comm/ring.h"

#include <deque>
#include <gtest/gtest.h>
#include <numeric>

namespace cortado {
namespace {

// Plays the schedules of all members by hand, as slowly as they allow, on sets of contributions.
struct Play {
  std::vector<int64_t> counts;
  RingPhases phases;
  std::vector<RingSchedule> schedules;
  std::vector<std::vector<int>> values;  // [member][element]: bits of the members summed there

  void run() {
    int members = static_cast<int>(counts.size());
    std::vector<std::deque<std::vector<int>>> wires(counts.size());  // into each member
    std::vector<size_t> sent(counts.size(), 0), received(counts.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (int m = 0; m < members; ++m) {
        const RingSchedule& s = schedules[m];
        while (sent[m] < s.sends.size() &&
               (sent[m] < s.ready_sends || received[m] > sent[m] - s.ready_sends)) {
          RingMessage message = s.sends[sent[m]++];
          auto begin = values[m].begin() + message.offset;
          wires[(m + 1) % members].emplace_back(begin, begin + message.count);
          moved = true;
        }
        if (wires[m].empty()) continue;
        RingMessage message = s.receives.at(received[m]);
        ASSERT_EQ(static_cast<int64_t>(wires[m].front().size()), message.count);
        for (int64_t i = 0; i < message.count; ++i) {
          int& mine = values[m][message.offset + i];
          int theirs = wires[m].front()[i];
          if (received[m] < s.summed) {
            EXPECT_EQ(mine & theirs, 0) << "a contribution is summed twice";
            theirs |= mine;
          }
          mine = theirs;
        }
        wires[m].pop_front();
        ++received[m];
        moved = true;
      }
    }
    for (int m = 0; m < members; ++m) {
      EXPECT_EQ(sent[m], schedules[m].sends.size());
      EXPECT_EQ(received[m], schedules[m].receives.size());
    }
  }
};

Play played(std::vector<int64_t> counts, RingPhases phases, int64_t segment) {
  Play play{std::move(counts), phases, {}, {}};
  int64_t total = std::accumulate(play.counts.begin(), play.counts.end(), int64_t{0});
  for (int m = 0; m < static_cast<int>(play.counts.size()); ++m) {
    play.schedules.push_back(ring_schedule(play.counts, m, phases, segment));
    play.values.emplace_back(total, 1 << m);
  }
  play.run();
  return play;
}

TEST(Ring, SumsEverythingOnceAtEveryMember) {
  for (int members = 1; members <= 8; ++members) {
    for (int64_t count : {0, 1, 5, 40, 99}) {
      Play play = played(balanced_chunks(count, members), {}, 4);
      for (const std::vector<int>& values : play.values)
        EXPECT_EQ(values, std::vector<int>(count, (1 << members) - 1)) << members << " members, " << count;
    }
  }
}

TEST(Ring, ScattersAndGathersUnevenChunks) {
  std::vector<int64_t> counts = {3, 0, 17, 1, 8}, owners;
  for (int64_t i = 0; i < 5; ++i) owners.insert(owners.end(), counts[i], i);
  Play scattered = played(counts, {.allgather = false}, 4),
       gathered = played(counts, {.reduce_scatter = false}, 4);
  for (int64_t m = 0; m < 5; ++m) {
    for (size_t i = 0; i < owners.size(); ++i) {
      EXPECT_TRUE(owners[i] != m || scattered.values[m][i] == 31);
      EXPECT_EQ(gathered.values[m][i], 1 << owners[i]);
    }
  }
}

// The rule that lets an allgather receive over memory that a reduce-scatter sent from.
TEST(Ring, TheSecondHalfReceivesWhatTheFirstSent) {
  for (int member = 0; member < 5; ++member) {
    RingSchedule s = ring_schedule(balanced_chunks(103, 5), member, {}, 7);
    for (size_t r = s.summed; r < s.receives.size(); ++r) {
      EXPECT_EQ(s.receives[r].offset, s.sends[r - s.summed].offset);
      EXPECT_EQ(s.receives[r].count, s.sends[r - s.summed].count);
    }
  }
}

TEST(Ring, MovesAsFewBytesAsPossible) {
  for (int member = 0; member < 4; ++member) {
    Traffic traffic = ring_traffic(ring_schedule(balanced_chunks(4000, 4), member, {}, 64), ElementType::f32);
    EXPECT_EQ(traffic.sent, 2 * 3 * 1000 * 4);
    EXPECT_EQ(traffic.received, traffic.sent);
  }
}

TEST(Ring, SegmentsAreHalfAMillisecondOfTheLinkOrItsLatency) {
  const double mbit = 1e6 / 8;
  EXPECT_EQ(segment_over(10 * mbit, 1e-4), 1 << 14);
  EXPECT_EQ(segment_over(100 * mbit, 1e-4), 1 << 14);
  EXPECT_EQ(segment_over(500 * mbit, 1e-4), 1 << 15);
  EXPECT_EQ(segment_over(1000 * mbit, 1e-4), 1 << 16);
  EXPECT_EQ(segment_over(10000 * mbit, 1e-4), 1 << 17);
  EXPECT_EQ(segment_over(0, 1e-4), 1 << 14);
  EXPECT_EQ(segment_over(100 * mbit, 4e-3), 1 << 16);
  EXPECT_EQ(segment_over(100 * mbit, 0.2), 1 << 17);
}

}  // namespace
}  // namespace cortado
