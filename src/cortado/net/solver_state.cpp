#include "cortado/net/solver_state.h"

#include <fmt/format.h>

#include "cortado/base/file.h"
#include "cortado/net/hdf5_file.h"
#include "cortado/net/seal.h"
#include "cortado/net/text_format.h"
#include "cortado/net/upgrade.h"

namespace cortado {
namespace {

constexpr const char* solver_data_set = "cortado_solver";

SolverStateFile read_state_hdf5(const std::string& path) {
  Hdf5Reader reader(path);
  SolverStateFile state;
  state.iteration = reader.integer("iter");
  if (reader.has("learned_net")) state.learned_net = reader.text("learned_net");
  if (reader.has(solver_data_set)) state.solver = reader.text(solver_data_set);
  state.current_step = reader.integer("current_step");
  for (int i = 0; reader.has(fmt::format("history/{}", i)); ++i) {
    state.history.push_back(reader.blob(fmt::format("history/{}", i)));
  }
  return state;
}

}  // namespace

SolverStateFile read_solver_state(const std::string& path) {
  std::string content = read_file(path);
  if (is_hdf5(content)) {
    check_seal(content, path);
    return read_state_hdf5(path);
  }
  caffe::SolverState message;
  parse_binary(content, path, message);
  SolverStateFile state{message.iter(), message.current_step(), message.learned_net(), message.solver(), {}};
  for (int i = 0; i < message.history_size(); ++i) {
    state.history.push_back(blob_of_message(message.history(i), fmt::format("{}: history {}", path, i)));
  }
  return state;
}

void write_solver_state(const std::string& path, const SolverStateFile& state) {
  caffe::SolverState message;
  message.set_iter(state.iteration);
  message.set_current_step(state.current_step);
  message.set_learned_net(state.learned_net);
  message.set_solver(state.solver);
  for (const Blob& blob : state.history) write_blob(blob, *message.add_history());
  write_binary(path, message);
}

void write_solver_state_hdf5(const std::string& path, const SolverStateFile& state) {
  Hdf5Writer writer;
  writer.integer("iter", state.iteration);
  writer.text("learned_net", state.learned_net);
  writer.text(solver_data_set, state.solver);
  writer.integer("current_step", state.current_step);
  writer.group("history");
  for (size_t i = 0; i < state.history.size(); ++i) {
    writer.blob(fmt::format("history/{}", i), state.history[i]);
  }
  writer.write(path);
}

caffe::SolverParameter read_solver(const std::string& path) {
  caffe::SolverParameter solver;
  read_text(path, solver);
  upgrade_solver(solver, path);
  return solver;
}

caffe::SolverParameter parse_solver(const std::string& text, const std::string& path) {
  caffe::SolverParameter solver;
  parse_text(text, path, solver);
  upgrade_solver(solver, path);
  return solver;
}

}  // namespace cortado
