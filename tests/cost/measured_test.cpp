#include "cortado/cost/measured.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/problem.h"

namespace cortado {
namespace {

using ::testing::HasSubstr;

DeviceGraph two_devices(std::vector<CollectiveTime> sums = {}) {
  Node node;
  node.devices.assign(
      2,
      Device{.name = "", .peak = {1e9}, .memory_bandwidth = {1e9}, .memory = {1 << 30}, .task_overhead = {}});
  node.links = {{.group = 2, .link = {{1e-6}, {1e9}}}};
  Machine machine;
  machine.name = "test";
  machine.nodes = {node};
  machine.calibration.allreduce = std::move(sums);
  return DeviceGraph(machine);
}

Task convolution(int64_t outputs, int64_t dilation = 1) {
  ConvolutionOptions options;
  options.num_output = outputs;
  options.kernel = {3};
  options.pad = {1};
  options.dilation = {dilation};
  const std::vector<Shape> inputs{{4, 16, 10, 10}};
  return whole_task(std::make_shared<Convolution>(options), Phase::train, inputs, 1);
}

Task pooling(PoolingOptions::Method method) {
  const std::vector<Shape> inputs{{4, 16, 10, 10}};
  return whole_task(std::make_shared<Pooling>(PoolingOptions{.method = method, .kernel = {2}, .stride = {2}}),
                    Phase::train, inputs, 1);
}

TEST(ProblemOf, TellsApartWhatTakesAnotherTime) {
  std::vector<Task> tasks{convolution(8), convolution(9), convolution(8, 2),
                          pooling(PoolingOptions::Method::max), pooling(PoolingOptions::Method::average)};
  Task task = convolution(8);
  task.cut = true;
  tasks.push_back(task);
  task.input_gradients = {false};
  tasks.push_back(task);
  task = convolution(8);
  task.layers.push_back(std::make_shared<Pointwise>(ReluOptions{}));
  tasks.push_back(task);
  task.layers.back() = std::make_shared<Pointwise>(ReluOptions{.negative_slope = 0.1});
  tasks.push_back(task);
  task.phase = Phase::test;
  tasks.push_back(task);
  Box half = task.domain_box;
  half[2] = {0, 5};
  tasks.push_back(cut_task(convolution(8), half));
  for (size_t a = 0; a < tasks.size(); ++a) {
    for (size_t b = 0; b < tasks.size(); ++b)
      EXPECT_EQ(problem_of(tasks[a]) == problem_of(tasks[b]), a == b) << problem_of(tasks[a]);
  }
  EXPECT_EQ(problem_of(convolution(8)), problem_of(convolution(8)));
}

TEST(ProblemOf, IsTheSameForOtherSamplesAndChannelsButNotForOtherRows) {
  const Task whole = convolution(8);
  auto part = [&](int axis, int64_t begin, int64_t end) {
    Box box = whole.domain_box;
    box[axis] = {begin, end};
    return problem_of(cut_task(whole, box));
  };
  EXPECT_EQ(part(0, 0, 2), part(0, 2, 4));
  EXPECT_EQ(part(1, 0, 4), part(1, 4, 8));
  EXPECT_NE(part(0, 0, 2), part(0, 0, 3));
  EXPECT_NE(part(2, 0, 5), part(2, 2, 7));
}

TEST(MeasuredCosts, MeasureEachProblemOnce) {
  TaskTimes times("machine", "build");
  int runs = 0;
  MeasuredCosts costs(two_devices(), times, [&](const Task&) {
    ++runs;
    return TaskTime{.forward = {1}, .backward_weights = {2}, .backward = {3}};
  });
  const TaskTime before = costs.task(convolution(8), 0);
  EXPECT_TRUE(before.bound);
  EXPECT_GT(before.forward.count, 0);
  EXPECT_LT(before.total().count, 6);
  EXPECT_EQ(costs.task(pooling(PoolingOptions::Method::max), 0).total().count, 0);
  EXPECT_EQ(costs.measure(convolution(8), 0).total().count, 6);
  EXPECT_FALSE(costs.task(convolution(8), 1).bound);
  EXPECT_EQ(costs.measure(convolution(8), 1).total().count, 6);
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(costs.task(convolution(9), 0).bound);
  MeasuredCosts restricted(
      two_devices(), times, [&](const Task&) { return TaskTime{}; }, "reference");
  EXPECT_TRUE(restricted.task(convolution(8), 0).bound);  // other kernels, another problem
}

TEST(MeasuredCosts, SlowerDevicesTakeLongerAsTheirWeightsAreLess) {
  Machine machine = two_devices().machine();
  machine.nodes[0].devices[0].peak = {0.25e9};
  TaskTimes times("machine", "build");
  times.add_duration(MeasuredCosts::update_name, {1});
  MeasuredCosts costs(DeviceGraph(machine), times, [&](const Task&) {
    return TaskTime{.forward = {1}, .backward_weights = {2}, .backward = {3}};
  });
  EXPECT_DOUBLE_EQ(costs.task(convolution(8), 0).total().count,
                   4 * costs.task(convolution(8), 1).total().count);
  EXPECT_TRUE(costs.task(convolution(8), 0).bound);
  EXPECT_EQ(costs.measure(convolution(8), 0).total().count, 24);
  EXPECT_EQ(costs.task(convolution(8), 1).total().count, 6);
  EXPECT_EQ(costs.task(convolution(8), 0).backward_weights.count, 8);
  EXPECT_EQ(costs.update(MeasuredCosts::measured_update, 0).count, 4);
}

TEST(MeasuredCosts, LowerTheBoundsThatAMeasurementPasses) {
  TaskTimes times("machine", "build");
  MeasuredCosts costs(two_devices(), times, [&](const Task&) { return TaskTime{.forward = {1e-9}}; });
  const double before = costs.task(convolution(9), 0).total().count;
  const double passed = costs.task(convolution(8), 0).total().count;
  costs.measure(convolution(8), 0);
  EXPECT_LE(costs.task(convolution(9), 0).total().count, before * 1e-9 / passed);
}

TEST(MeasuredCosts, SumsTakeWhatTheMachinesOwnTook) {
  TaskTimes times("machine", "build");
  MeasuredCosts costs(two_devices({{2, {1000}, {0.5}}, {2, {3000}, {0.7}}}), times, {});
  const std::vector<std::vector<int>> both{{0, 1}};
  auto sum = [&](int64_t bytes) { return costs.collective(Collective::allreduce, both, {bytes}).count; };
  EXPECT_NEAR(sum(100), 0.5, 1e-12);
  EXPECT_NEAR(sum(1000), 0.5, 1e-12);
  EXPECT_NEAR(sum(2000), 0.6, 1e-12);
  EXPECT_NEAR(sum(6000), 1.4, 1e-12);
  EXPECT_NEAR(costs.collective(Collective::allgather, both, {6000}).count, 0.7, 1e-2);
  EXPECT_EQ(costs.collective(Collective::allreduce, std::vector<std::vector<int>>{{1}}, {6000}).count, 0);
}

TEST(MeasuredCosts, UpdatesGoByTheMeasuredOne) {
  TaskTimes times("machine", "build");
  MeasuredCosts costs(two_devices(), times, {});
  const Bytes half{MeasuredCosts::measured_update.count / 2};
  EXPECT_EQ(costs.update(half, 0).count, AnalyticCosts(two_devices()).update(half, 0).count);
  times.add_duration(MeasuredCosts::update_name, {0.5});
  EXPECT_EQ(costs.update(half, 0).count, 0.25);
}

class TaskTimesFile : public ::testing::Test {
 protected:
  TaskTimesFile() {
    times_.add("a", {.forward = {0.1}, .backward_weights = {1.0 / 3}, .backward = {1e-7}});
    times_.add("b \"quoted\"", {.forward = {2}, .backward_weights = {}, .backward = {}});
    times_.add_duration("a", {0.7});
  }
  std::string refusal(const std::string& text) {
    TaskTimes times("machine", "build");
    try {
      times.read(text, "times.json");
    } catch (const UserError& error) {
      EXPECT_EQ(times.size(), 0);
      EXPECT_FALSE(times.find_duration("a"));
      EXPECT_THAT(error.what(), HasSubstr("times.json: "));
      return error.what();
    }
    return "";
  }
  std::string with(const std::string& what, const std::string& other) {
    std::string text = times_.text();
    const size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), other);
  }
  TaskTimes times_{"machine", "build"};
};

TEST_F(TaskTimesFile, ComesBackBitForBit) {
  TaskTimes times("machine", "build");
  times.read(times_.text(), "times.json");
  ASSERT_EQ(times.size(), 2);
  EXPECT_EQ(times.find("a")->backward_weights.count, 1.0 / 3);
  EXPECT_EQ(times.find("a")->backward.count, 1e-7);
  EXPECT_FALSE(times.find("a")->bound);
  EXPECT_EQ(times.find("b \"quoted\"")->forward.count, 2);
  EXPECT_EQ(times.find("c"), nullptr);
  EXPECT_EQ(times.find_duration("a"), Seconds{0.7});  // beside the task of that text
  EXPECT_FALSE(times.find_duration("b \"quoted\""));
  EXPECT_EQ(times.text(), times_.text());
}

TEST_F(TaskTimesFile, OfElsewhereOrBrokenIsRefused) {
  EXPECT_EQ(refusal(times_.text()), "");
  EXPECT_THAT(refusal(TaskTimes("other", "build").text()), HasSubstr("machine: 'other' is not 'machine'"));
  EXPECT_THAT(refusal(TaskTimes("machine", "old").text()), HasSubstr("build: 'old' is not 'build'"));
  EXPECT_THAT(refusal(with("\"version\": 2", "\"version\": 1")), HasSubstr("version: 1 is not supported"));
  EXPECT_THAT(refusal(with("cortado-task-times", "cortado-strategy")), HasSubstr("is not a task times file"));
  EXPECT_THAT(refusal(with("0.1", "-0.1")), HasSubstr("tasks[0].forward_seconds: -0.1 is negative"));
  EXPECT_THAT(refusal(with("0.1", "1e999")), Not(testing::IsEmpty()));
  EXPECT_THAT(refusal(with("0.1", "\"0.1\"")),
              HasSubstr("tasks[0].forward_seconds: \"0.1\" is not a number"));
  EXPECT_THAT(refusal(with("\"task\": \"a\"", "\"task\": 1")), HasSubstr("tasks[0].task: 1 is not a text"));
  EXPECT_THAT(refusal(with("0.7", "-0.7")), HasSubstr("durations[0].seconds: -0.7 is negative"));
  EXPECT_THAT(refusal(with("\"of\": \"a\"", "\"of\": 1")), HasSubstr("durations[0].of: 1 is not a text"));
  EXPECT_THAT(refusal("[]"), HasSubstr("is not a task times file"));
  const std::string text = times_.text();
  for (size_t length = 0; length + 2 < text.size(); ++length)
    EXPECT_THAT(refusal(text.substr(0, length)), HasSubstr("is not JSON"));
}

}  // namespace
}  // namespace cortado
