#include "cortado/train/solver_nets.h"

#include <gtest/gtest.h>

#include "cortado/net/text_format.h"

namespace cortado {
namespace {

SolverNets nets_of(const std::string& solver_text) {
  caffe::SolverParameter solver;
  parse_text(solver_text, "s", solver);
  return solver_nets(solver, "s");
}

void expect_state(const caffe::NetState& state, caffe::Phase phase, int level,
                  const std::vector<std::string>& stages) {
  EXPECT_EQ(state.phase(), phase);
  EXPECT_EQ(state.level(), level);
  EXPECT_EQ(std::vector<std::string>(state.stage().begin(), state.stage().end()), stages);
}

// Caffe merges, each message over the ones before it: the phase, the net's own state, the solver's state.
TEST(SolverNets, TheStateOfTheNetIsMergedWithTheSolvers) {
  SolverNets nets = nets_of("net_param { state { level: 2 stage: 'a' } } test_iter: 1 test_iter: 1");
  expect_state(nets.train.state, caffe::TRAIN, 2, {"a"});
  ASSERT_EQ(nets.tests.size(), 2u);
  expect_state(nets.tests[1].state, caffe::TEST, 2, {"a"});

  nets = nets_of(
      "net_param { state { level: 2 stage: 'a' } } train_state { level: 0 stage: 'b' } "
      "test_iter: 1 test_iter: 1 test_state { stage: 'c' } test_state { level: 7 }");
  expect_state(nets.train.state, caffe::TRAIN, 0, {"a", "b"});
  expect_state(nets.tests[0].state, caffe::TEST, 2, {"a", "c"});
  expect_state(nets.tests[1].state, caffe::TEST, 7, {"a"});
}

TEST(SolverNets, TheStateMayNameAnotherPhase) {
  SolverNets nets = nets_of("net_param { state { phase: TEST } } test_iter: 1");
  expect_state(nets.train.state, caffe::TEST, 0, {});
  nets = nets_of(
      "net_param { state { phase: TEST } } train_state { phase: TRAIN } test_iter: 1 "
      "test_state { phase: TRAIN }");
  expect_state(nets.train.state, caffe::TRAIN, 0, {});
  expect_state(nets.tests[0].state, caffe::TRAIN, 0, {});
}

TEST(SolverNets, EveryTestNetHasItsOwnState) {
  SolverNets nets = nets_of(
      "train_net_param { state { stage: 't' } } test_net_param { state { stage: 'u' } } "
      "test_net_param { state { level: -1 } } test_iter: 1 test_iter: 1");
  expect_state(nets.train.state, caffe::TRAIN, 0, {"t"});
  expect_state(nets.tests[0].state, caffe::TEST, 0, {"u"});
  expect_state(nets.tests[1].state, caffe::TEST, -1, {});
}

}  // namespace
}  // namespace cortado
