#include "cortado/train/solver_nets.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/net/read_net.h"
#include "cortado/net/source_override.h"

namespace cortado {
namespace {

// Caffe's users name nets from the folder they start in; a solver moved with its net works too.
std::string found_net(const std::string& path, const std::string& solver_file) {
  auto beside = std::filesystem::path(solver_file).parent_path() / std::filesystem::path(path).filename();
  bool moved = !std::filesystem::exists(path) && std::filesystem::exists(beside);
  return moved ? beside.string() : path;
}

NetFile train_file(const caffe::SolverParameter& s, const std::string& file, const NetFile* net) {
  int named =
      (net != nullptr) + s.has_net() + s.has_net_param() + s.has_train_net() + s.has_train_net_param();
  if (named != 1) {
    throw UserError(
        fmt::format("{}: names {} train nets; give one of net, net_param, train_net, train_net_param", file,
                    named == 0 ? "no" : "several"));
  }
  if (net != nullptr) return *net;
  if (s.has_net()) return read_net(found_net(s.net(), file));
  if (s.has_train_net()) return read_net(found_net(s.train_net(), file));
  return net_of_message(s.has_net_param() ? s.net_param() : s.train_net_param(), file);
}

// What the solver file says overrules what the net says of itself, and that the phase by default; stages add
// up.
caffe::NetState merged_state(Phase otherwise, const NetFile& file, const caffe::NetState& of_solver) {
  caffe::NetState state;
  state.set_phase(otherwise == Phase::train ? caffe::TRAIN : caffe::TEST);
  state.MergeFrom(file.net.state());
  state.MergeFrom(of_solver);
  return state;
}

}  // namespace

SolverNets solver_nets(const caffe::SolverParameter& s, const std::string& file, const NetFile* net) {
  NetFile train = train_file(s, file, net);
  std::vector<NetFile> tests;
  for (const auto& net : s.test_net_param()) tests.push_back(net_of_message(net, file));
  for (const auto& net : s.test_net()) tests.push_back(read_net(found_net(net, file)));
  auto wanted = static_cast<size_t>(s.test_iter_size());
  bool generic = net != nullptr || s.has_net() || s.has_net_param();
  while (generic && tests.size() < wanted) tests.push_back(train);
  if (tests.size() != wanted) {
    throw UserError(fmt::format("{}: test_iter: {} given for {} test nets; give one for each", file, wanted,
                                tests.size()));
  }
  if (s.test_state_size() != 0 && static_cast<size_t>(s.test_state_size()) != wanted) {
    throw UserError(fmt::format("{}: test_state: {} given for {} test nets; give one for each, or none", file,
                                s.test_state_size(), wanted));
  }
  SolverNets nets{{train, merged_state(Phase::train, train, s.train_state())}, {}};
  for (size_t i = 0; i < tests.size(); ++i) {
    const caffe::NetState given =
        s.test_state_size() != 0 ? s.test_state(static_cast<int>(i)) : caffe::NetState();
    nets.tests.push_back({tests[i], merged_state(Phase::test, tests[i], given)});
  }
  return nets;
}

caffe::SolverParameter with_found_nets(caffe::SolverParameter solver, const std::string& file) {
  if (solver.has_net()) solver.set_net(found_net(solver.net(), file));
  if (solver.has_train_net()) solver.set_train_net(found_net(solver.train_net(), file));
  for (std::string& net : *solver.mutable_test_net()) net = found_net(net, file);
  return solver;
}

std::vector<std::string> warnings_of(const SolverNets& nets) {
  std::vector<std::string> lines = nets.train.file.warnings;
  for (const SolverNet& test : nets.tests) {
    for (const std::string& line : test.file.warnings) {
      if (std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
    }
  }
  return lines;
}

void override_data(SolverNets& nets, const NetOverrides& o, const std::string& file) {
  if (nets.tests.empty() && (!o.test_sources.empty() || o.test_batch > 0))
    throw UserError(fmt::format("{}: there is no test net; leave out the {} of tests", file,
                                o.test_batch > 0 ? "batch size" : "source"));
  change_net(nets.train.file, nets.train.state, {o.batch, o.sources, o.precision});
  for (SolverNet& test : nets.tests)
    change_net(test.file, test.state, {o.test_batch, o.test_sources, o.precision}, "test source");
}

}  // namespace cortado
