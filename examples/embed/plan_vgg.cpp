// Plans VGG-16 for eight devices of a machine that need not be at hand, and simulates an iteration of it.
//   plan_vgg [MACHINE [DEVICES]]
#include <algorithm>
#include <cortado/api/cortado.h>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace api = cortado::api;

namespace {

// "n=8", "n=2 c=4"; "whole" where one device computes the layer.
std::string text_of(const api::Configuration& configuration) {
  std::string text;
  for (const auto& [dimension, degree] : configuration.degrees)
    text += (text.empty() ? "" : " ") + std::string(1, dimension) + "=" + std::to_string(degree);
  return text.empty() ? "whole" : text;
}

void plan(const std::string& machine_name, int devices) {
  const api::Machine machine = api::Machine(machine_name).first(devices);
  const api::Network net = api::Network::from_file(MODELS "/vgg-16/train_val.prototxt",
                                                   {.batch = 32 * devices, .input_shape = "3x224x224"});

  const api::Plan plan = api::plan(net, machine, devices);
  for (const api::Plan::Layer& layer : plan.layers())
    std::printf("%-12s %-12s %8.3f ms\n", layer.name.c_str(), text_of(layer.configuration).c_str(),
                1e3 * (layer.compute_seconds + layer.sync_seconds + layer.transfer_seconds));
  std::printf("planned    %8.3f ms, %s\n", 1e3 * plan.seconds(), plan.optimal() ? "optimal" : "not proven");

  // The plan adds up what devices compute and send; the simulation knows what they do at the same time.
  for (const auto& [name, strategy] : {std::pair("plan", plan.strategy()), {"data", "data"}}) {
    const api::Simulation simulation = api::simulate(net, strategy, machine);
    std::printf("simulated  %8.3f ms by %s, of which %.3f ms wait for messages\n", 1e3 * simulation.seconds(),
                name, 1e3 * simulation.exposed_communication());
  }
}

}  // namespace

int main(int count, char** words) {
  try {
    plan(count > 1 ? words[1] : "layer-wise-p100", count > 2 ? std::atoi(words[2]) : 8);
  } catch (const api::UserError& error) {
    std::fprintf(stderr, "plan_vgg: %s\n", error.what());
    return 2;
  }
}
