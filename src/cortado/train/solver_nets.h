#pragma once

#include <string>
#include <vector>

#include "cortado/net/net_file.h"

namespace cortado {

// A net that a solver file asks for: its file and the state it is filtered by.
struct SolverNet {
  NetFile file;
  caffe::NetState state;
};

struct SolverNets {
  SolverNet train;
  std::vector<SolverNet> tests;  // one for each test_iter, in Caffe's order
};

// The nets of a solver file by Caffe's rules. The train net is one of train_net, train_net_param, net,
// net_param; the test nets are test_net_param, test_net, and then `net` or `net_param` for each test_iter
// left. The state of each is, by default, its phase alone; `state` of the net and then train_state or
// test_state of the solver overrule that, and add their stages. `file` is the solver's path: a net file that
// is not found from the working folder is looked for beside it. `net`, where it is not null, is the net in
// place of one that the solver file names. Throws UserError naming `file`: no train net or two, test_iter or
// test_state of another number.
SolverNets solver_nets(const caffe::SolverParameter& solver, const std::string& file,
                       const NetFile* net = nullptr);

// The solver with its nets named as they were found: from the working folder.
caffe::SolverParameter with_found_nets(caffe::SolverParameter solver, const std::string& file);

// What replaces sources and batch sizes of the nets' files, and the precision of all. Sources: "PATH" or
// "LAYER=PATH".
struct NetOverrides {
  int batch = 0, test_batch = 0;  // 0: as the file says
  std::vector<std::string> sources{}, test_sources{};
  Precision precision = Precision::f32;
};
// `file`: the solver's, for messages. Throws UserError where overrides are for a test net and there is none.
void override_data(SolverNets& nets, const NetOverrides& overrides, const std::string& file);

// The warnings of the nets' files, each once.
std::vector<std::string> warnings_of(const SolverNets& nets);

}  // namespace cortado
