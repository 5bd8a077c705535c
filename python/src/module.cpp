#include "src/bindings.h"

PYBIND11_MODULE(_cortado, module) {
  using namespace cortado::python;
  module.doc() = "The classes of cortado/api/cortado.h";
  bind_errors(module);
  bind_machine(module);
  bind_layers(module);
  bind_network(module);
  bind_solver(module);
  bind_strategy(module);
  bind_plan(module);
  bind_simulation(module);
  bind_data(module);
  bind_net(module);
  bind_trainer(module);
}
