// The pass "place forward": buffers of tensors, and the forward steps.
#include <map>
#include <set>

#include "tests/program/programs.h"

namespace cortado {
namespace {

using testing::all;
using testing::Cutting;
using ::testing::ElementsAre;
using testing::facts_of;
using testing::NetBuilder;
using testing::texts_of;
using testing::whole;
using testing::with_forward;

TEST(PlaceForward, MakesAStepOfEveryWorkInOrder) {
  const Network net = NetBuilder().conv("a", "data").relu("a").conv("b", "a").loss("b", "data").build();
  const Program program = with_forward(net, whole(net));
  EXPECT_THAT(texts_of(net, program),
              ElementsAre("load data", "forward a+relu_a2", "forward b", "forward loss"));
  EXPECT_EQ(program.forward_end, 4);
  EXPECT_EQ(program.steps[StepIndex(0)].lane, Lane::communication);
  EXPECT_EQ(program.buffers[program.steps[StepIndex(0)].writes[0].buffer].kind, Buffer::Kind::batch);
}

// Rows of two bands: a rank reads those that its part of a needs; an exchange before b, and the report on
// both ranks.
TEST(PlaceForward, MovesWhatOtherRanksNeed) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").loss("b", "data").build();
  NodeStrategies strategies = all(net, {.h = 2});
  strategies[net.node("loss")] = {};
  EXPECT_THAT(texts_of(net, with_forward(net, {strategies, 2, 1})),
              ElementsAre("load data", "forward a", "exchange to b", "forward b", "exchange to loss",
                          "exchange to report"));
}

// What a kernel saves it writes, scratch belongs to one step, and neither is there where none is wanted.
TEST(PlaceForward, GivesKernelsTheMemoryThatTheyAskFor) {
  const auto kinds = [](Bytes saved, Bytes scratch) {
    const TaskOracle oracle = [=](const Task& task) {
      auto facts = facts_of(task);
      facts->saved = saved;
      facts->scratch = scratch;
      return facts;
    };
    const Network net = NetBuilder().conv("a", "data").build();
    const Program program = with_forward(net, whole(net), {.oracle = oracle});
    std::map<Buffer::Kind, int64_t> written;
    for (const View& view : program.steps[StepIndex(1)].writes)
      written[program.buffers[view.buffer].kind] = view.bytes.size();
    return written;
  };
  using enum Buffer::Kind;
  const int64_t bytes = 2 * 4 * 6 * 6 * 4;
  EXPECT_EQ(kinds({}, {}), (std::map<Buffer::Kind, int64_t>{{activation, bytes}}));
  EXPECT_EQ(kinds({8}, {}), (std::map<Buffer::Kind, int64_t>{{activation, bytes}, {saved, 8}}));
  EXPECT_EQ(kinds({8}, {100}),
            (std::map<Buffer::Kind, int64_t>{{activation, bytes}, {saved, 8}, {scratch, 100}}));
}

// Four addends of eight bytes, summed by the ranks before the layer's own step.
TEST(PlaceForward, SumsWithinALayerComeBeforeItsStep) {
  const Network net = NetBuilder().tanh("data", "b").build();
  const Program program = with_forward(net, {all(net, {.h = 2}), 2, 1});
  ASSERT_THAT(texts_of(net, program), ElementsAre("load data", "forward-partial b", "sum-statistics b",
                                                  "forward b", "exchange to report"));
  const auto& sum = *program.steps[StepIndex(2)].as<steps::SumStatistics>();
  EXPECT_EQ(program.buffers[sum.sums.buffer].size.count, 4 * 8);
  EXPECT_EQ(program.buffers[sum.sums.buffer].type, ElementType::f64);
  EXPECT_THAT(sum.group, ElementsAre(0, 1));
  EXPECT_EQ(program.steps[StepIndex(1)].as<steps::Compute>()->sums, sum.sums);
  EXPECT_THAT(program.steps[StepIndex(3)].reads, ::testing::Contains(sum.sums));
}

// Whether tanh, the layer before the last, takes its input's memory.
struct InPlaceCase {
  const char* what;
  NetBuilder net;
  std::string input;
  bool in_place;
  bool works_in_place = true, reads_inputs_backward = false, convolution_reads_outputs = false;
};

TEST(PlaceForward, WritesInPlaceOnlyWhereNobodyNeedsTheOldValue) {
  const NetBuilder after_a = NetBuilder().conv("a", "data").tanh("a", "b").loss("b", "data");
  const std::vector<InPlaceCase> cases{
      {"nobody needs it", after_a, "a", true},
      {"the kernel cannot", after_a, "a", false, false},
      {"its own backward step reads it", after_a, "a", false, true, true},
      {"the backward step of the layer before reads it", after_a, "a", false, true, false, true},
      {"it is the batch", NetBuilder().tanh("data", "b").conv("c", "b"), "data", false},
      {"a layer reads it later", NetBuilder().conv("a", "data").tanh("a", "b").sum("c", {"a", "b"}), "a",
       false},
      {"a layer has read it, whose backward step reads it again",
       NetBuilder().conv("a", "data").conv("c", "a").tanh("a", "b").loss("b", "c"), "a", false},
      {"layers have read it before, and never again",
       NetBuilder().conv("a", "data").sum("c", {"a", "data"}).tanh("a", "b").loss("b", "c"), "a", true}};
  for (const InPlaceCase& one : cases) {
    SCOPED_TRACE(one.what);
    const TaskOracle oracle = [&](const Task& task) {
      auto facts = facts_of(task);
      const bool tanh = task.layer().type() == "TanH";
      if (tanh)
        facts->in_place = one.works_in_place, facts->backward_reads_inputs = one.reads_inputs_backward;
      if (task.layer().type() == "Convolution") facts->backward_reads_outputs = one.convolution_reads_outputs;
      return facts;
    };
    const Network net = one.net.build();
    const Program program = with_forward(net, whole(net), {.oracle = oracle});
    EXPECT_EQ(program.tensor_buffer(net.tensor(one.input)) == program.tensor_buffer(net.tensor("b")),
              one.in_place);
  }
}

// Runs the forward steps and notes which values each buffer holds. What a step reads must still be there, and
// after the pass what the backward pass reads.
class ForwardRun {
 public:
  explicit ForwardRun(const Program& program) : program_(program) {}

  void run() {
    for (const Step& step : program_.steps) take(step);
    for (const Work& work : program_.works) {
      if (work.kind != Work::Kind::compute || !work.task.has_backward() || work.backward_only) continue;
      if (work.facts.backward_reads_inputs) expect_held(work.inputs, first_of(work).inputs);
      if (work.facts.backward_reads_outputs) expect_held(work.outputs, last_of(work).outputs);
    }
  }

 private:
  const Placement::Operation& first_of(const Work& work) const {
    return program_.placement->operations[work.operations.front()];
  }
  const Placement::Operation& last_of(const Work& work) const {
    return program_.placement->operations[work.operations.back()];
  }

  void take(const Step& step) {
    const Work& work = program_.works[step.work()];
    const bool partial = step.runs(Pass::forward_partial) || step.is<steps::SumStatistics>();
    if (!step.is<steps::Load>()) expect_held(work.inputs, first_of(work).inputs);
    if (partial) return;
    for (const View& view : step.writes) held_[view.buffer].clear();
    for (const View& view : work.outputs) note(view, work);
  }
  void note(const View& view, const Work& work) {
    const auto& outputs = last_of(work).outputs;
    for (size_t i = 0; i < work.outputs.size(); ++i)
      if (work.outputs[i] == view && view) held_[view.buffer].insert(outputs[i]);
  }
  // What stays where it is moves without a step.
  bool holds(const View& view, ValueIndex value) const {
    const auto found = held_.find(view.buffer);
    if (found == held_.end()) return false;
    if (found->second.contains(value)) return true;
    const auto& made = program_.placement->values[value];
    const auto& producer = program_.placement->operations[made.producer];
    const bool moved = producer.kind == Work::Kind::copy || producer.kind == Work::Kind::sum;
    return moved && holds(view, producer.inputs[0]);
  }
  void expect_held(const std::vector<View>& views, const std::vector<ValueIndex>& values) {
    for (size_t i = 0; i < views.size(); ++i) {
      if (!views[i]) continue;
      const auto& value = program_.placement->values[values[i]];
      EXPECT_TRUE(holds(views[i], values[i]))
          << value.name << " is not in buffer " << views[i].buffer.value();
      EXPECT_EQ(views[i].bytes.size(),
                bytes_of(value.layout[static_cast<size_t>(program_.rank)]->shape(), value.type).count);
    }
  }

  const Program& program_;
  std::map<BufferIndex, std::set<ValueIndex>> held_;
};

TEST(PlaceForward, OverwritesNothingThatIsStillReadOfRandomNets) {
  testing::for_random_programs(100, [](const Network& net, const Program& program, uint32_t) {
    Program forward = program;
    forward.steps.resize(static_cast<size_t>(program.forward_end));
    ForwardRun(forward).run();
    if (::testing::Test::HasFailure()) FAIL() << forward.text(net);
  });
}

}  // namespace
}  // namespace cortado
