#include "cortado/auto/choose_strategy.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <functional>

#include "cortado/auto/trial.h"
#include "cortado/base/digest.h"
#include "cortado/device/emulated/emulated_runtime.h"
#include "cortado/layers/hdf5_output.h"
#include "cortado/machine/file.h"
#include "cortado/measure/job_machine.h"
#include "cortado/plan/choice.h"

#include "tests/comm/forwarding_communicator.h"
#include "tests/measure/kept.h"
#include "tests/program/nets.h"

namespace cortado {
namespace {

using ::testing::HasSubstr;

// Convolutions that can be cut by samples, channels or rows.
Network convolutions(int64_t channels = 16, int64_t size = 48) {
  SourceOptions images;
  images.kind = SourceOptions::Kind::input;
  images.shapes = {Shape{4, channels, size, size}};
  const auto convolution = [](int64_t filters) {
    return std::make_shared<Convolution>(
        ConvolutionOptions{.num_output = filters, .kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1}});
  };
  return testing::built(
      {testing::declared("data", std::make_shared<Source>(images), {}, {"data"}),
       testing::declared("a", convolution(32), {"data"}, {"a"}),
       testing::declared("b", convolution(channels), {"a"}, {"b"}),
       testing::declared("loss", std::make_shared<EuclideanLoss>(), {"b", "data"}, {"loss"})});
}

// Ranks are threads of this process.
class ChooseStrategy : public testing::KeptCache {
 protected:
  ChooseStrategy() : KeptCache(2) {}

  // What each rank gets, and what is told.
  std::vector<AutoChoice> choose(int ranks, const Network& net) {
    std::vector<AutoChoice> choices(static_cast<size_t>(ranks));
    LocalJob(ranks).run([&](Communicator& threads) {
      testing::EquallyFastRanks job(threads);
      choices[static_cast<size_t>(job.rank())] = choose_strategy(net, job, "", 1, tell_);
    });
    return choices;
  }
  AutoChoice choose(const Network& net) { return choose(2, net)[0]; }

  const Network net_ = convolutions();
};

TEST_F(ChooseStrategy, HasNothingToChooseForOneRank) {
  const AutoChoice choice = choose(1, net_)[0];
  EXPECT_FALSE(choice.planned);
  EXPECT_EQ(strategy_text(choice.strategy), strategy_text(built_in_strategy("single", net_, 1)));
  EXPECT_EQ(told_, "");
}

TEST_F(ChooseStrategy, TellsWhatItMeasuredAndKeepsIt) {
  const std::vector<AutoChoice> first = choose(2, net_);
  EXPECT_TRUE(first[0].planned);
  EXPECT_FALSE(first[0].cached);
  EXPECT_GT(first[0].measurements, 0);
  EXPECT_GT(first[0].layers, 0u);
  EXPECT_GE(first[0].layers, first[0].layers_not_by_sample);
  EXPECT_GT(first[0].times_faster_than_data, 0);
  EXPECT_THAT(told_, HasSubstr("measuring what layers take on this machine; kept in "));
  EXPECT_EQ(strategy_text(first[0].strategy), strategy_text(first[1].strategy));
  EXPECT_EQ(first[0].obstacle, "");
  EXPECT_EQ(first[0].misfit, "");
  told_.clear();
  const std::vector<AutoChoice> second = choose(2, net_);
  EXPECT_TRUE(second[0].cached);
  EXPECT_EQ(second[0].measurements, 0);
  EXPECT_EQ(told_, "");
  EXPECT_EQ(strategy_text(second[0].strategy), strategy_text(first[0].strategy));
}

// The emulated device runs the kernels of a GPU. Equal devices and a processor beside one: what is measured
// is kept apart from what the processor takes.
TEST_F(ChooseStrategy, ChoosesByWhatTheDevicesTake) {
  const Network net = convolutions(4, 8);
  for (const bool mixed : {false, true}) {
    std::vector<AutoChoice> choices(2);
    const auto run = [&] {
      LocalJob(2).run([&](Communicator& threads) {
        testing::EquallyFastRanks job(threads);
        const auto emulated = device::make_emulated();
        device::DeviceRuntime& mine = mixed && job.rank() == 1 ? device::host() : *emulated;
        choices[static_cast<size_t>(job.rank())] = choose_strategy(net, job, "", 1, tell_, mine);
        JobCosts costs(job, "", {}, mine);
        EXPECT_EQ(costs.kernel_choice().mixed_devices, mixed);
        EXPECT_EQ(costs.kernel_choice().kernels, &mine == emulated.get() ? "gpu" : "");
        const auto& devices = costs.machine().machine().nodes[0].devices;
        EXPECT_EQ(devices[0].name, "emulated");
        EXPECT_EQ(devices[1].name == "emulated", !mixed);
      });
    };
    run();
    EXPECT_TRUE(choices[0].planned);
    EXPECT_GT(choices[0].measurements, 0);
    EXPECT_EQ(strategy_text(choices[0].strategy), strategy_text(choices[1].strategy));
    if (mixed) continue;
    run();
    EXPECT_EQ(choices[0].measurements, 0);
  }
}

// A trial would write files.
TEST_F(ChooseStrategy, TriesNoNetThatWritesFiles) {
  ScratchFolder folder;
  const LayerPtr output = std::make_shared<Hdf5Output>(Hdf5OutputOptions{folder.file("out.h5")});
  const Network net = testing::NetBuilder()
                          .conv("a", "data")
                          .declare("write", output, {"a", "data"}, {})
                          .loss("a", "data")
                          .build();
  const AutoChoice choice = choose(net);
  EXPECT_TRUE(choice.planned);
  EXPECT_EQ(choice.tried, 0);
  EXPECT_FALSE(std::filesystem::exists(folder.file("out.h5")));
}

// Also where one of them is another device's.
TEST_F(ChooseStrategy, TrialsTakeAsLongAtEveryRank) {
  const Strategy data = built_in_strategy("data", net_, 2);
  std::vector<Seconds> seconds(2);
  LocalJob(2).run([&](Communicator& job) {
    JobCosts costs(job, "");
    const auto emulated = device::make_emulated();
    device::DeviceRuntime& mine = job.rank() == 0 ? device::host() : *emulated;
    seconds[static_cast<size_t>(job.rank())] = try_strategy(net_, job, data, costs, mine);
  });
  EXPECT_EQ(seconds[0], seconds[1]);
  EXPECT_GT(seconds[0], Seconds{});
}

// What each of the candidates takes, run by run, and in which order they ran.
struct Runs {
  std::vector<std::vector<double>> seconds;
  std::vector<size_t> order{};
  Seconds operator()(size_t candidate) {
    const auto before = static_cast<size_t>(std::ranges::count(order, candidate));
    order.push_back(candidate);
    return {seconds.at(candidate).at(before)};
  }
};

// The fastest one was disturbed in its first run.
TEST(TryInTurns, RunsAgainWhatMayHaveBeenDisturbed) {
  Runs runs{{{1.6, 1.0, 1.1}, {1.2, 1.3}, {2.0}}};
  EXPECT_EQ(try_in_turns({{}, {}, {}}, std::ref(runs)), (std::vector<Seconds>{{1.0}, {1.2}, {2.0}}));
  EXPECT_EQ(runs.order, (std::vector<size_t>{0, 1, 2, 1, 0}));
}

TEST(TryInTurns, RunsNothingThatIsKnown) {
  Runs runs{{{}, {1.0, 1.1, 1.2}}};
  EXPECT_EQ(try_in_turns({{{1.05}}, {}}, std::ref(runs)), (std::vector<Seconds>{{1.05}, {1.0}}));
  EXPECT_EQ(runs.order, (std::vector<size_t>{1, 1, 1}));
}

// A job whose ranks say that they run on these hosts.
class OnHosts : public testing::ForwardingCommunicator {
 public:
  OnHosts(Communicator& job, std::vector<std::string> hosts)
      : ForwardingCommunicator(job), hosts_(std::move(hosts)) {}

  std::vector<std::vector<std::byte>> all_to_all_bytes(std::span<const std::byte> mine) override {
    auto all = ForwardingCommunicator::all_to_all_bytes(mine);
    for (size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank].size() != sizeof(RankFacts)) continue;
      RankFacts facts;
      std::memcpy(&facts, all[rank].data(), sizeof facts);
      std::memset(facts.host, 0, sizeof facts.host);
      hosts_[rank].copy(facts.host, sizeof facts.host - 1);
      std::memcpy(all[rank].data(), &facts, sizeof facts);
    }
    return all;
  }

 private:
  const std::vector<std::string> hosts_;
};

// A machine's devices are node by node; where ranks are not, nothing can be planned, and nothing is measured.
TEST_F(ChooseStrategy, IsDataWhereHostsAreMixed) {
  std::vector<AutoChoice> choices(3);
  LocalJob(3).run([&](Communicator& job) {
    OnHosts mixed(job, {"a", "b", "a"});
    choices[static_cast<size_t>(job.rank())] = choose_strategy(net_, mixed, "", 1, tell_);
  });
  for (const AutoChoice& choice : choices) {
    EXPECT_FALSE(choice.planned);
    EXPECT_THAT(choice.obstacle, HasSubstr("rank 2 runs on a"));
    EXPECT_THAT(choice.obstacle, HasSubstr("start the ranks host by host"));
    EXPECT_EQ(choice.strategy, built_in_strategy("data", net_, 3));
    EXPECT_EQ(choice.measurements, 0);
  }
  EXPECT_EQ(told_, "");
}

// The cache of a job that has chosen for the net before, once a process.
class ChosenBefore : public ChooseStrategy {
 protected:
  ChosenBefore() {
    static const ScratchFolder folder;
    const std::string chosen = folder.file("cache");
    using std::filesystem::copy_options;
    if (!std::filesystem::exists(chosen)) {
      choose(net_);
      std::filesystem::copy(this->folder(), chosen);
    }
    std::filesystem::copy(chosen, this->folder(), copy_options::overwrite_existing);
    told_.clear();
  }

  static bool is_trial(const Json& duration) {
    return duration["of"].get<std::string>().starts_with("iteration of net ");
  }
  // The texts of the trials of a net's strategies.
  std::vector<std::string> trials(const Network& net) const {
    std::vector<std::string> texts;
    const Json file = Json::parse(read_file(kept_file("tasks-")));
    for (const Json& duration : file["durations"])
      if (is_trial(duration) &&
          duration["of"].get<std::string>().find("'" + net.name() + "'") != std::string::npos)
        texts.push_back(duration["of"]);
    return texts;
  }
  // The built-in strategy that was tried; "": a plan's own.
  static std::string built_in_of(const Network& net, const std::string& trial) {
    for (std::string_view name : built_in_strategies()) {
      const uint64_t strategy = digest(strategy_text(built_in_strategy(name, net, 2)));
      if (trial.find(fmt::format("under strategy {:016x} ", strategy)) != std::string::npos)
        return std::string(name);
    }
    return "";
  }
};

// Simulated, the choice is as fast as the best built-in strategy, but for those that were worth a trial.
TEST_F(ChosenBefore, IsTheFastestBySimulationOrWorthATrial) {
  const AutoChoice choice = choose(net_);
  EXPECT_TRUE(choice.cached);
  LocalJob(2).run([&](Communicator& threads) {
    testing::EquallyFastRanks job(threads);
    JobCosts costs(job, "");
    const auto judge = simulated_seconds(net_, costs.simulated());
    const Seconds chosen = judge(choice.strategy);
    for (const char* name : {"data", "model", "owt", "spatial"}) {
      const Seconds built_in = judge(built_in_strategy(name, net_, 2));
      EXPECT_LE(chosen.count, plan::worth_trying * built_in.count * (1 + 1e-9)) << name;
    }
  });
}

// Whichever of the tried strategies took least is taken; the others took four times as long.
TEST_F(ChosenBefore, TrialsDecideBetweenCandidates) {
  // Every task takes as long as any other and messages next to nothing, so that built-in strategies are about
  // equal; what was tried is forgotten.
  Machine machine = parse_machine(read_file(kept_file("machine-")), "test").machine();
  for (Link& link : machine.pairs)
    if (link != Link{}) link = {.latency = {1e-6}, .bandwidth = {1e10}};
  for (Node& node : machine.nodes) {
    node.bus = node.nic = {};
    for (Device& device : node.devices) {
      device.memory_bandwidth = {1e10};
      device.task_overhead = {};
    }
  }
  machine.calibration = {};
  overwrite("machine-", machine_text(DeviceGraph(machine)));
  const auto make_equal = [](Json& file) {
    for (Json& entry : file["tasks"])
      for (const char* pass : {"forward_seconds", "backward_weights_seconds", "backward_seconds"})
        entry[pass] = 0.1;
    Json durations = Json::array();
    for (Json& duration : file["durations"]) {
      duration["seconds"] = 0.3;
      if (!is_trial(duration)) durations.push_back(duration);
    }
    file["durations"] = durations;
  };
  // By other times the search asks for other tasks, which are measured: until it has asked for all.
  AutoChoice first;
  for (int round = 0; round < 10 && (round == 0 || first.measurements > 0); ++round) {
    edit("tasks-", make_equal);
    first = choose(net_);
  }
  ASSERT_EQ(first.measurements, 0);
  const std::vector<std::string> tried = trials(net_);
  ASSERT_GE(tried.size(), 2u) << first.text();
  for (const std::string& fastest : tried) {
    SCOPED_TRACE(fastest);
    edit("tasks-", [&](Json& file) {
      for (Json& duration : file["durations"])
        if (is_trial(duration)) duration["seconds"] = duration["of"] == fastest ? 0.5 : 2.0;
    });
    const AutoChoice choice = choose(net_);
    EXPECT_TRUE(choice.cached);
    EXPECT_EQ(choice.tried, static_cast<int>(tried.size()));
    EXPECT_EQ(choice.built_in, built_in_of(net_, fastest));
    const bool data_tried = std::ranges::any_of(
        tried, [&](const std::string& trial) { return built_in_of(net_, trial) == "data"; });
    if (data_tried) {
      EXPECT_EQ(choice.times_faster_than_data, choice.built_in == "data" ? 1 : 4);
    }
  }
}

// Devices that hold next to nothing: it is planned without that limit, and the choice says so.
TEST_F(ChosenBefore, SaysWhereNothingFits) {
  Machine machine = parse_machine(read_file(kept_file("machine-")), "test").machine();
  for (Node& node : machine.nodes)
    for (Device& device : node.devices) device.memory = {int64_t{1} << 16};
  overwrite("machine-", machine_text(DeviceGraph(machine)));
  const AutoChoice choice = choose(net_);
  EXPECT_EQ(parse_machine(read_file(kept_file("machine-")), "test").machine(), machine);
  EXPECT_TRUE(choice.planned);
  EXPECT_THAT(choice.misfit, HasSubstr("on a device that has 0.06 MiB"));
  EXPECT_GT(choice.layers, 0u);
}

}  // namespace
}  // namespace cortado
