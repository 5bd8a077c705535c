// The tables of the planning papers out of our planner, theirs beside ours (docs/results/papers.md).
// plan_papers, from the folder that has models/ and machines/.
#include <fmt/format.h>
#include <memory>
#include <string>
#include <vector>

#include "cortado/base/error.h"
#include "cortado/cost/analytic.h"
#include "cortado/machine/file.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"
#include "cortado/plan/plan_graph.h"
#include "cortado/plan/search.h"

namespace {

using namespace cortado;
using plan::PlanGraph;
using plan::Priced;

Network load(const std::string& net, int64_t samples, int64_t extent) {
  return load_network(read_net("models/" + net + "/train_val.prototxt"), net_state(Phase::train),
                      [&](const LayerDeclaration& layer) {
                        std::vector<Shape> shapes(layer.tops.size(), Shape{samples});
                        shapes[0] = {samples, 3, extent, extent};
                        return shapes;
                      })
      .network;
}

struct Planned {
  Network network;
  DeviceGraph machine;
  PlanGraph graph;
  plan::Optimum optimum;

  size_t vertex(const std::string& layer) const {
    size_t v = 0;
    while (graph.costs.vertices().at(v).name != layer) ++v;
    return v;
  }
  size_t candidate(size_t v, const Degrees& degrees) const {
    size_t c = 0;
    while (graph.candidates[v].at(c).strategy.config.degrees != degrees) ++c;
    return c;
  }
  // Of the layer's only input.
  double transfer(const std::string& layer, const Degrees& from, const Degrees& to) const {
    const size_t v = vertex(layer);
    size_t e = 0;
    while (static_cast<size_t>(graph.edges.at(e).to) != v) ++e;
    const size_t row = candidate(static_cast<size_t>(graph.edges[e].from), from);
    return (*graph.costs.edges()[e].seconds)[row * graph.candidates[v].size() + candidate(v, to)];
  }
  const Priced& chosen(size_t v) const {
    return graph.candidates[v][static_cast<size_t>(optimum.assignment[v])];
  }
  std::vector<int> baseline(const char* name) const {
    return graph.assignment(network, built_in_strategy(name, network, machine.devices()));
  }
};

Planned planned(const std::string& net, int64_t extent, const std::string& machine_name, int devices,
                const std::string& dimensions) {
  DeviceGraph machine = load_machine(machine_name).first(devices);
  Network network = load(net, int64_t{32} * devices, extent);
  AnalyticCosts costs(machine);
  const std::vector<int> nodes = machine.node_of_devices();
  PlanGraph graph =
      plan::make_plan_graph(network, {.devices = devices, .dimensions = dimensions}, costs, nodes);
  plan::Optimum optimum = plan::search(graph.costs);
  return {std::move(network), std::move(machine), std::move(graph), std::move(optimum)};
}

// Costs of layers that follow each other, all cut the same way, after a layer cut by sample over 16 devices.
void print_costs(const Planned& net, const std::vector<std::string>& layers,
                 const std::vector<std::pair<Degrees, double>>& rows) {
  fmt::print("{:<8} {:>9} {:>10} {:>10} {:>10} {:>10} | {:>10}\n", "cut", "devices", "transfer", "computing",
             "sums", "total ms", "paper ms");
  for (const auto& [degrees, paper] : rows) {
    double transfer = net.transfer(layers[0], {.n = 16}, degrees), compute = 0, sums = 0;
    for (const std::string& layer : layers) {
      if (layer != layers[0]) transfer += net.transfer(layer, degrees, degrees);
      const size_t v = net.vertex(layer);
      const Priced& priced = net.graph.candidates[v][net.candidate(v, degrees)];
      compute += (priced.compute.total() + priced.update).count;
      sums += (priced.sums + priced.sync).count;
    }
    fmt::print("{:<8} {:>9} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f} | {:>10.1f}\n", degrees.text(),
               degrees.product(), 1e3 * transfer, 1e3 * compute, 1e3 * sums,
               1e3 * (transfer + compute + sums), paper);
  }
}

void print_cuts(const std::vector<Planned>& plans, const std::vector<std::string>& titles) {
  fmt::print("{:<10}", "layer");
  for (const std::string& title : titles) fmt::print(" {:<28}", title);
  fmt::print("\n");
  for (size_t v = 0; v < plans[0].graph.groups.size(); ++v) {
    fmt::print("{:<10}", plans[0].graph.costs.vertices()[v].name);
    for (const Planned& plan : plans) fmt::print(" {:<28}", plan.chosen(v).strategy.config.degrees.text());
    fmt::print("\n");
  }
}

void print_bytes(const std::string& machine, const std::string& net, int64_t extent) {
  const Planned narrow = planned(net, extent, machine, 16, "nchw"),
                wide = planned(net, extent, machine, 16, std::string(plan::all_dimensions));
  const double data = static_cast<double>(wide.graph.sent_bytes(wide.baseline("data")).count),
               owt = static_cast<double>(wide.graph.sent_bytes(wide.baseline("owt")).count),
               of_narrow = static_cast<double>(narrow.graph.sent_bytes(narrow.optimum.assignment).count),
               of_wide = static_cast<double>(wide.graph.sent_bytes(wide.optimum.assignment).count);
  fmt::print("{:<17} {:<13} {:>9.0f} {:>9.0f} {:>9.0f} {:>9.0f} {:>10.1f} {:>10.1f} {:>9.1f}\n", machine, net,
             data / 1e6, owt / 1e6, of_narrow / 1e6, of_wide / 1e6, data / of_narrow, data / of_wide,
             owt / of_narrow);
}

}  // namespace

int main() {
  fmt::print(
      "DeePa, Table 2: the first inner product of AlexNet, 512 samples on 16 devices (deepa-tables)\n");
  print_costs(planned("alexnet", 224, "deepa-tables", 16, "nchw"), {"fc6"},
              {{{.n = 16}, 1076}, {{.c = 16}, 135.7}, {{.c = 4}, 38.7}, {{.c = 2}, 27.0}, {{}, 28.8}});
  fmt::print("\nDeePa, Table 3: the last three convolutions of VGG-16, the same\n");
  print_costs(planned("vgg-16", 224, "deepa-tables", 16, "nchw"), {"conv5_1", "conv5_2", "conv5_3"},
              {{{.n = 16}, 150.3},
               {{.n = 8}, 138.2},
               {{.n = 4}, 136.5},
               {{.h = 2, .w = 2}, 127.5},
               {{.n = 2}, 183.4}});
  fmt::print("\nLayer-wise parallelism, Table 5: VGG-16, 128 samples on 4 devices\n");
  std::vector<Planned> plans;
  plans.push_back(planned("vgg-16", 224, "layer-wise-sizes", 4, "nchw"));
  plans.push_back(planned("vgg-16", 224, "layer-wise-p100", 4, "nchw"));
  plans.push_back(planned("vgg-16", 224, "layer-wise-p100", 4, std::string(plan::all_dimensions)));
  print_cuts(plans, {"layer-wise-sizes, nchw", "layer-wise-p100, nchw", "layer-wise-p100, all"});
  fmt::print("\nDeePa, Figures 9 and 10: AlexNet and VGG-16 on 16 devices (deepa-tables)\n");
  for (const auto& [net, extent] : {std::pair("alexnet", 224), std::pair("vgg-16", 224)}) {
    plans.clear();
    plans.push_back(planned(net, extent, "deepa-tables", 16, "nchw"));
    plans.push_back(planned(net, extent, "deepa-tables", 16, std::string(plan::all_dimensions)));
    plans.push_back(planned(net, extent, "deepa-k80", 16, "nchw"));
    print_cuts(plans, {"deepa-tables, nchw", "deepa-tables, all", "deepa-k80, nchw"});
  }
  fmt::print("\nBoth papers, Figure 8: MB sent in an iteration, 32 samples on each of 16 devices\n");
  fmt::print("{:<17} {:<13} {:>9} {:>9} {:>9} {:>9} {:>10} {:>10} {:>9}\n", "machine", "net", "data", "owt",
             "plan nchw", "plan all", "data/nchw", "data/all", "owt/nchw");
  for (const char* machine : {"deepa-tables", "deepa-k80", "layer-wise-sizes", "layer-wise-p100"}) {
    print_bytes(machine, "alexnet", 224);
    print_bytes(machine, "vgg-16", 224);
    print_bytes(machine, "inception-v3", 299);
  }
}
