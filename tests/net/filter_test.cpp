#include "cortado/net/filter.h"

#include <gtest/gtest.h>

#include "cortado/net/read_net.h"
#include "cortado/net/text_format.h"

#include "tests/net/net_testing.h"

namespace cortado {
namespace {

// Whether a layer with these rules is in the net of this state (the truth table of Caffe's documentation).
bool stays(const std::string& rules, const std::string& state) {
  caffe::NetState net_state;
  parse_text(state, "state", net_state);
  return filter_net(parse_net("layer { name: 'x' type: 'ReLU' " + rules + " }", "n"), net_state)
             .net.layer_size() == 1;
}

TEST(Filter, PhaseDecides) {
  EXPECT_TRUE(stays("", "phase: TEST"));
  EXPECT_TRUE(stays("include { phase: TRAIN }", "phase: TRAIN"));
  EXPECT_FALSE(stays("include { phase: TRAIN }", "phase: TEST"));
  EXPECT_FALSE(stays("exclude { phase: TEST }", "phase: TEST"));
  EXPECT_TRUE(stays("exclude { phase: TEST }", "phase: TRAIN"));
}

TEST(Filter, AnyRuleSuffices) {
  std::string two = "include { phase: TRAIN } include { min_level: 2 }";
  EXPECT_TRUE(stays(two, "phase: TRAIN level: 0"));
  EXPECT_TRUE(stays(two, "phase: TEST level: 2"));
  EXPECT_FALSE(stays(two, "phase: TEST level: 1"));
  EXPECT_FALSE(stays("exclude { phase: TRAIN } exclude { stage: 'a' }", "phase: TEST stage: 'a'"));
}

TEST(Filter, LevelsAreInclusiveBounds) {
  std::string range = "include { min_level: 1 max_level: 3 }";
  EXPECT_FALSE(stays(range, "level: 0"));
  EXPECT_TRUE(stays(range, "level: 1"));
  EXPECT_TRUE(stays(range, "level: 3"));
  EXPECT_FALSE(stays(range, "level: 4"));
  EXPECT_TRUE(stays("include { max_level: -1 }", "level: -2"));
}

TEST(Filter, AllStagesAndNoNotStages) {
  EXPECT_FALSE(stays("include { stage: 'a' stage: 'b' }", "stage: 'a'"));
  EXPECT_TRUE(stays("include { stage: 'a' stage: 'b' }", "stage: 'b' stage: 'a' stage: 'c'"));
  EXPECT_TRUE(stays("include { not_stage: 'a' }", "stage: 'b'"));
  EXPECT_FALSE(stays("include { stage: 'b' not_stage: 'a' }", "stage: 'b' stage: 'a'"));
}

TEST(Filter, BothKindsOfRulesAreRefused) {
  EXPECT_EQ(error_of([] { stays("include { phase: TEST } exclude { phase: TEST }", ""); }),
            "n:1: layer 'x' has include and exclude rules; give only one kind");
}

// Caffe sets phase and level of the net's own state and adds the stages.
TEST(Filter, ACommandsStateStandsOverTheFiles) {
  const NetFile file = parse_net("state { phase: TRAIN level: 3 stage: 'a' }", "n");
  const caffe::NetState state = net_state(file, Phase::test, 0, {"b"});
  EXPECT_EQ(state.phase(), caffe::TEST);
  EXPECT_EQ(state.level(), 0);
  ASSERT_EQ(state.stage_size(), 2);
  EXPECT_EQ(state.stage(0), "a");
  EXPECT_EQ(state.stage(1), "b");
}

TEST(Filter, LinesStayWithTheirLayers) {
  NetFile file = parse_net("layer { name: 'a' include { phase: TEST } }\n\nlayer { name: 'b' }\n", "n");
  NetFile kept = filter_net(file, net_state(Phase::train));
  ASSERT_EQ(kept.net.layer_size(), 1);
  EXPECT_EQ(kept.where(0).text(), "n:3");
}

}  // namespace
}  // namespace cortado
