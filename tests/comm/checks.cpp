#include "tests/comm/checks.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

#include "cortado/comm/tree_sum.h"

namespace cortado {

void complete(Transmission& transmission) {
  transmission.start();
  while (!transmission.test()) std::this_thread::yield();
}

namespace {

std::vector<int> everyone(const Communicator& communicator) {
  std::vector<int> group(static_cast<size_t>(communicator.size()));
  std::iota(group.begin(), group.end(), 0);
  return group;
}

// All groups of neighbouring ranks, those of every other rank, and everyone: enough to overlap in all ways.
std::vector<std::vector<int>> groups(const Communicator& communicator) {
  int size = communicator.size();
  std::vector<std::vector<int>> all;
  for (int first = 0; first < size; ++first) {
    for (int step = 1; step <= 2; ++step) {
      std::vector<int> group;
      for (int rank = first; rank < size; rank += step) group.push_back(rank);
      all.push_back(group);
    }
  }
  return all;
}

bool contains(const std::vector<int>& group, int rank) {
  return std::find(group.begin(), group.end(), rank) != group.end();
}

// Whole numbers, so that sums are exact in any order; different for each rank, element and round.
int64_t value(int rank, int64_t element, int round) { return (rank + 1) * 7 + element % 1013 + round * 3; }

int64_t sum_of(const std::vector<int>& group, int64_t element, int round) {
  int64_t sum = 0;
  for (int rank : group) sum += value(rank, element, round);
  return sum;
}

template <typename T>
void allreduce_sums(Communicator& c) {
  for (const std::vector<int>& group : groups(c)) {
    if (!contains(group, c.rank())) continue;
    for (int64_t count : {0, 1, 2, 7, 1000, 40000, 200001}) {
      std::vector<T> values(static_cast<size_t>(count) + 1);
      auto sum = c.allreduce(group, values.data(), count);
      for (int round = 0; round < 3; ++round) {
        for (int64_t i = 0; i <= count; ++i) values[i] = static_cast<T>(value(c.rank(), i, round));
        complete(*sum);
        for (int64_t i = 0; i < count; ++i)
          ASSERT_EQ(values[i], static_cast<T>(sum_of(group, i, round))) << i << " of " << count;
        EXPECT_EQ(values[count], static_cast<T>(value(c.rank(), count, round))) << "after the end";
      }
    }
  }
}

// The sum of numbers whose rounding depends on the order is the same bits on every rank, and every time.
void allreduce_is_the_same_everywhere(Communicator& c) {
  for (int64_t count : {50, 300000}) {
    std::vector<float> values(static_cast<size_t>(count)), first;
    auto sum = c.allreduce(everyone(c), values.data(), count);
    for (int round = 0; round < 3; ++round) {
      for (int64_t i = 0; i < count; ++i)
        values[i] = 1.0f / static_cast<float>(1 + (i * 31 + c.rank() * 17) % 1009);
      complete(*sum);
      if (round == 0) first = values;
      EXPECT_EQ(std::memcmp(first.data(), values.data(), values.size() * sizeof(float)), 0);
    }
    for (const auto& bytes : c.all_to_all_bytes(std::as_bytes(std::span(values))))
      EXPECT_EQ(std::memcmp(bytes.data(), values.data(), bytes.size()), 0);
  }
}

// Members in the order of the tree that base/sum_tree.h describes, here by hand for up to 8 ranks.
float tree_of(const std::vector<float>& v) {
  const auto pair = [&](size_t i) { return v[i] + v[i + 1]; };
  switch (v.size()) {
    case 1:
      return v[0];
    case 2:
      return pair(0);
    case 3:
      return v[0] + pair(1);
    case 4:
      return pair(0) + pair(2);
    case 6:
      return (v[0] + v[1]) + (pair(2) + pair(4));
    case 8:
      return (pair(0) + pair(2)) + (pair(4) + pair(6));
    default:
      return NAN;
  }
}

void tree_sums_have_the_bits_of_their_tree(Communicator& c) {
  const auto drawn = [](int rank, int64_t i) {
    return 1.0f / static_cast<float>(1 + (i * 31 + rank * 17) % 1009);
  };
  for (int64_t count : {0, 1, 50, 30000}) {
    std::vector<float> values(static_cast<size_t>(count));
    auto sum = make_tree_sum(c, everyone(c), values.data(), count, 40);
    for (int round = 0; round < 3; ++round) {
      for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = drawn(c.rank(), i);
      complete(*sum);
      for (int64_t i = 0; i < count; ++i) {
        std::vector<float> addends;
        for (int rank = 0; rank < c.size(); ++rank) addends.push_back(drawn(rank, i));
        ASSERT_EQ(values[static_cast<size_t>(i)], tree_of(addends)) << i << " of " << count;
      }
    }
  }
}

// Uneven chunks, some of them empty.
std::vector<int64_t> chunks(size_t members, int64_t scale) {
  std::vector<int64_t> counts(members);
  for (size_t i = 0; i < members; ++i) counts[i] = i % 3 == 2 ? 0 : scale * static_cast<int64_t>(i + 1) + 1;
  return counts;
}

void reduce_scatter_and_allgather(Communicator& c) {
  for (const std::vector<int>& group : groups(c)) {
    if (!contains(group, c.rank())) continue;
    for (int64_t scale : {0, 3, 70000}) {
      std::vector<int64_t> counts = chunks(group.size(), scale);
      int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
      size_t me = static_cast<size_t>(std::find(group.begin(), group.end(), c.rank()) - group.begin());
      int64_t offset = std::accumulate(counts.begin(), counts.begin() + static_cast<long>(me), int64_t{0});
      std::vector<float> values(static_cast<size_t>(total));
      auto scatter = c.reduce_scatter(group, values.data(), counts);
      auto gather = c.allgather(group, values.data(), counts);
      for (int round = 0; round < 2; ++round) {
        for (int64_t i = 0; i < total; ++i) values[i] = static_cast<float>(value(c.rank(), i, round));
        complete(*scatter);
        for (int64_t i = offset; i < offset + counts[me]; ++i)
          ASSERT_EQ(values[i], static_cast<float>(sum_of(group, i, round)));
        for (int64_t i = 0; i < total; ++i)
          if (i < offset || i >= offset + counts[me]) values[i] = -1;
        complete(*gather);
        for (int64_t i = 0; i < total; ++i) ASSERT_EQ(values[i], static_cast<float>(sum_of(group, i, round)));
      }
    }
  }
}

// bf16 values are gathered as they are, and refused where they would be summed.
void bf16_only_travels(Communicator& c) {
  const std::vector<int> group = everyone(c);
  const std::vector<int64_t> counts = chunks(group.size(), 30);
  const auto chunk = counts.begin() + c.rank();
  const int64_t offset = std::accumulate(counts.begin(), chunk, int64_t{0});
  std::vector<bf16> values(static_cast<size_t>(std::accumulate(counts.begin(), counts.end(), int64_t{0})));
  auto gather = c.allgather(group, values.data(), counts);
  for (int64_t i = offset; i < offset + *chunk; ++i) values[i].bits = static_cast<uint16_t>(3 * i + 1);
  complete(*gather);
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i].bits, static_cast<uint16_t>(3 * i + 1));
  EXPECT_THROW(c.allreduce(group, values.data(), 1), InternalError);
  EXPECT_THROW(c.reduce_scatter(group, values.data(), counts), InternalError);
}

// Every rank sends parts of different lengths to every rank, itself too; they arrive in order.
void exchange_arrives_in_order(Communicator& c) {
  const std::vector<int64_t> lengths = {1, 0, 30, 5000};
  std::vector<std::vector<float>> out, in;
  std::vector<MessagePart> sends, receives;
  for (int peer = 0; peer < c.size(); ++peer) {
    for (int64_t length : lengths) {
      out.emplace_back(static_cast<size_t>(length));
      in.emplace_back(static_cast<size_t>(length));
      sends.push_back({peer, out.back().data(), length});
      receives.push_back({peer, in.back().data(), length});
    }
  }
  auto exchange = c.exchange(sends, receives, 17);
  for (int round = 0; round < 3; ++round) {
    for (size_t part = 0; part < out.size(); ++part) {
      for (size_t i = 0; i < out[part].size(); ++i)
        out[part][i] = static_cast<float>(value(c.rank(), static_cast<int64_t>(part * 13 + i), round));
    }
    complete(*exchange);
    for (size_t part = 0; part < in.size(); ++part) {
      size_t of_peer = part % lengths.size() + static_cast<size_t>(c.rank()) * lengths.size();
      for (size_t i = 0; i < in[part].size(); ++i)
        ASSERT_EQ(in[part][i], static_cast<float>(value(receives[part].peer,
                                                        static_cast<int64_t>(of_peer * 13 + i), round)));
    }
  }
}

// Exchanges of different tags and sums of overlapping groups are under way together; half of the ranks test
// them in the opposite order. In the second round every other one gives way, each rank choosing others: none
// may stand still. In the third all do.
void many_at_a_time(Communicator& c) {
  const int exchanges = 5;
  int next = (c.rank() + 1) % c.size(), previous = (c.rank() + c.size() - 1) % c.size();
  std::vector<std::vector<float>> out(exchanges, std::vector<float>(3000)), in = out;
  std::vector<std::unique_ptr<Transmission>> all;
  for (int tag = 0; tag < exchanges; ++tag)
    all.push_back(c.exchange({{next, out[tag].data(), 3000}}, {{previous, in[tag].data(), 3000}}, tag));
  const int64_t length = 700000;  // of sums: many segments, also of those between hosts
  std::vector<std::vector<float>> sums;
  std::vector<std::vector<int>> of;
  for (const std::vector<int>& group : groups(c)) {
    if (!contains(group, c.rank())) continue;
    of.push_back(group);
    sums.emplace_back(length);
    all.push_back(c.allreduce(group, sums.back().data(), length));
  }
  for (int round = 0; round < 3; ++round) {
    for (int tag = 0; tag < exchanges; ++tag)
      std::fill(out[tag].begin(), out[tag].end(), c.rank() * 10.0f + tag);
    for (std::vector<float>& sum : sums) std::fill(sum.begin(), sum.end(), static_cast<float>(c.rank() + 1));
    for (auto& transmission : all) transmission->start();
    std::vector<bool> done(all.size(), false);
    for (size_t left = all.size(); left > 0;) {
      for (size_t k = 0; k < all.size(); ++k) {
        size_t i = c.rank() % 2 == 0 ? k : all.size() - 1 - k;
        all[i]->give_way(round == 2 || (round == 1 && (i + static_cast<size_t>(c.rank())) % 2 == 0));
        if (done[i] || !all[i]->test()) continue;
        done[i] = true;
        --left;
      }
      std::this_thread::yield();
    }
    for (int tag = 0; tag < exchanges; ++tag) EXPECT_EQ(in[tag][2999], previous * 10.0f + tag);
    for (size_t i = 0; i < sums.size(); ++i) {
      int sum = 0;
      for (int rank : of[i]) sum += rank + 1;
      EXPECT_EQ(sums[i], std::vector<float>(length, static_cast<float>(sum)));
    }
  }
}

void blocking_calls(Communicator& c) {
  c.barrier();
  double expected = c.size() * (c.size() + 1) / 2.0;
  for (int round = 0; round < 3; ++round) EXPECT_EQ(c.sum(c.rank() + 1), expected);
  std::vector<std::byte> mine(static_cast<size_t>(c.rank()) * 3, static_cast<std::byte>(c.rank()));
  auto all = c.all_to_all_bytes(mine);
  ASSERT_EQ(all.size(), static_cast<size_t>(c.size()));
  for (int rank = 0; rank < c.size(); ++rank) {
    EXPECT_EQ(all[rank], std::vector<std::byte>(static_cast<size_t>(rank) * 3, static_cast<std::byte>(rank)));
  }
  std::vector<float> values(50000, static_cast<float>(c.rank()));
  if (c.rank() > 0) c.receive(c.rank() - 1, values);
  EXPECT_EQ(values, std::vector<float>(50000, static_cast<float>(c.rank())));
  std::fill(values.begin(), values.end(), static_cast<float>(c.rank() + 1));
  if (c.rank() + 1 < c.size()) c.send(c.rank() + 1, values);
  c.barrier();
}

// Everyone together moves what the formulas say: an allreduce 2 (p-1) n, a reduce-scatter or allgather (p-1)
// n.
void traffic_is_counted(Communicator& c) {
  int64_t p = c.size(), n = 1000;
  std::vector<float> values(static_cast<size_t>(n * p));
  auto sum = c.allreduce(everyone(c), values.data(), n);
  auto scatter = c.reduce_scatter(everyone(c), values.data(), std::vector<int64_t>(p, n));
  auto gather = c.allgather(everyone(c), values.data(), std::vector<int64_t>(p, n));
  int next = (c.rank() + 1) % c.size(), previous = (c.rank() + c.size() - 1) % c.size();
  std::vector<float> other(10);
  auto exchange = c.exchange({{next, values.data(), 10}}, {{previous, other.data(), 10}}, 3);
  Traffic before = c.traffic();
  for (Transmission* transmission : {sum.get(), scatter.get(), gather.get()}) complete(*transmission);
  Traffic after = c.traffic();
  double sent = c.sum(static_cast<double>(after.sent - before.sent));
  double received = c.sum(static_cast<double>(after.received - before.received));
  EXPECT_EQ(sent, 4.0 * static_cast<double>(2 * (p - 1) * n + 2 * (p - 1) * n * p));
  EXPECT_EQ(received, sent);
  if (p == 1) return;
  before = c.traffic();
  complete(*exchange);
  EXPECT_EQ(c.traffic().sent - before.sent, 40);
  EXPECT_EQ(c.traffic().received - before.received, 40);
}

}  // namespace

const std::vector<CommunicatorCheck>& communicator_checks() {
  static const std::vector<CommunicatorCheck> checks = {
      {"AllreduceSumsFloats", allreduce_sums<float>},
      {"AllreduceSumsDoubles", allreduce_sums<double>},
      {"AllreduceIsTheSameEverywhere", allreduce_is_the_same_everywhere},
      {"TreeSumsHaveTheBitsOfTheirTree", tree_sums_have_the_bits_of_their_tree},
      {"ReduceScatterAndAllgather", reduce_scatter_and_allgather},
      {"Bf16OnlyTravels", bf16_only_travels},
      {"ExchangeArrivesInOrder", exchange_arrives_in_order},
      {"ManyAtATime", many_at_a_time},
      {"BlockingCalls", blocking_calls},
      {"TrafficIsCounted", traffic_is_counted},
  };
  return checks;
}

}  // namespace cortado
