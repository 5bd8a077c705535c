// The pass "chunk gradients": which sums of gradients travel together.
#include <fmt/ranges.h>
#include <map>

#include "tests/program/programs.h"

namespace cortado {
namespace {

using testing::all;
using testing::NetBuilder;
using testing::texts_of;

// Parameters of the chunks of rank 0, in order: "3 2 | 1 0".
std::string chunks_of(const Network& net, const NodeStrategies& strategies, const std::string& chunks) {
  Program program = testing::with_backward(net, {strategies, 2});
  chunk_gradients(program, net, parse_chunks(chunks, "test"));
  std::vector<std::string> texts;
  for (const Step& step : program.steps)
    if (step.is<steps::SumGradient>()) texts.push_back(fmt::format("{}", fmt::join(step.parameters(), " ")));
  return fmt::format("{}", fmt::join(texts, " | "));
}

// Weight and bias of a, b and c are parameters 0 to 5; 576 and 16 bytes.
TEST(ChunkGradients, PutsSumsTogetherAsTheScheduleSays) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").conv("c", "b").loss("c", "data").build();
  NodeStrategies strategies = all(net, {.n = 2});
  EXPECT_EQ(chunks_of(net, strategies, "parameter"), "4 | 5 | 2 | 3 | 0 | 1");
  EXPECT_EQ(chunks_of(net, strategies, "layer"), "4 5 | 2 3 | 0 1");
  EXPECT_EQ(chunks_of(net, strategies, "first:1"), "4 5 | 2 3 0 1");
  EXPECT_EQ(chunks_of(net, strategies, "first:2"), "4 5 2 3 | 0 1");
  EXPECT_EQ(chunks_of(net, strategies, "first:9"), "4 5 2 3 0 1");
  EXPECT_EQ(chunks_of(net, strategies, "577B"), "4 5 | 2 3 | 0 1");
  EXPECT_EQ(chunks_of(net, strategies, "1KiB"), "4 5 2 | 3 0 1");
  EXPECT_EQ(chunks_of(net, strategies, "one"), "4 5 2 3 0 1");
  // A layer whose gradient nobody else has parts neither the chunks before nor those after it.
  strategies[net.node("b")] = testing::cut_by({.c = 2});
  EXPECT_EQ(chunks_of(net, strategies, "one"), "4 5 0 1");
}

// What is known of a gradient that is summed: its place among those of its group.
struct Summed {
  int64_t place = 0, layers_before = 0;
  int64_t chunks_of_bytes_before = 0;  // that are full
};

// The number of the chunk that it belongs to, by the words of parallel/schedule.h.
int64_t chunk_of(const Summed& gradient, const GradientChunks& chunks) {
  using enum GradientChunks::Kind;
  if (chunks.kind == parameter) return gradient.place;
  if (chunks.kind == layer) return gradient.layers_before;
  if (chunks.kind == first) return gradient.layers_before < chunks.layers ? 0 : 1;
  return chunks.kind == one ? 0 : gradient.chunks_of_bytes_before;
}

// Walks through the sums of each group.
class NaiveChunks {
 public:
  NaiveChunks(const Network& net, const Program& program, const GradientChunks& chunks)
      : net_(net), program_(program), chunks_(chunks) {}

  // The text of each step once the sums of a chunk are one, in the place of the last.
  std::vector<std::string> run() {
    std::map<std::pair<std::vector<int>, int64_t>, std::vector<StepIndex>> steps;  // by group and chunk
    for (StepIndex s : indices(program_.steps))
      if (const auto* sum = program_.steps[s].as<steps::SumGradient>())
        steps[{sum->group, next(sum->group, sum->parameters[0])}].push_back(s);
    Program merged = program_;
    for (const auto& [key, members] : steps) {
      auto& parameters = merged.steps[members.back()].as<steps::SumGradient>()->parameters;
      parameters.clear();
      for (StepIndex s : members) parameters.push_back(program_.steps[s].parameters()[0]);
      for (StepIndex s : members)
        if (s != members.back()) merged.steps[s].as<steps::SumGradient>()->parameters.clear();
    }
    erase_if(merged.steps,
             [](const Step& s) { return s.is<steps::SumGradient>() && s.parameters().empty(); });
    return texts_of(net_, merged);
  }

 private:
  struct Walk {
    Summed at;
    NodeIndex layer;
    int64_t bytes = 0;
  };
  int64_t next(const std::vector<int>& group, ParameterIndex parameter) {
    const auto known = walks_.find(group);
    Walk& walk = walks_[group];
    const NodeIndex layer = net_.parameters()[parameter].users[0];
    const bool begins = known == walks_.end();
    walk.at.place += begins ? 0 : 1;
    walk.at.layers_before += begins || layer == walk.layer ? 0 : 1;
    walk.layer = layer;
    if (walk.bytes >= chunks_.bytes.count) ++walk.at.chunks_of_bytes_before, walk.bytes = 0;
    const auto& slice = program_.placement->slices[parameter];
    walk.bytes += 4 * slice[static_cast<size_t>(program_.rank)]->shape().size();
    return chunk_of(walk.at, chunks_);
  }

  const Network& net_;
  const Program& program_;
  const GradientChunks& chunks_;
  std::map<std::vector<int>, Walk> walks_;  // by group
};

TEST(ChunkGradients, ChunksRandomJobsAsTheNaiveRuleDoes) {
  int merged = 0;
  testing::for_random_programs(80, [&](const Network& net, const Program& whole, uint32_t) {
    for (const char* text : {"parameter", "layer", "first:1", "first:3", "600B", "2KiB", "one"}) {
      SCOPED_TRACE(text);
      const GradientChunks chunks = parse_chunks(text, "test");
      Program program = whole;
      chunk_gradients(program, net, chunks);
      EXPECT_EQ(texts_of(net, program), NaiveChunks(net, whole, chunks).run());
      if (program.steps.size() < whole.steps.size()) ++merged;
    }
  });
  EXPECT_GT(merged, 100);
}

}  // namespace
}  // namespace cortado
