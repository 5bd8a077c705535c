#include "cortado/app/named_files.h"

#include "cortado/net/net_files.h"
#include "cortado/train/gather.h"

namespace cortado {

void refuse_empty_names(CLI::App& command, std::initializer_list<const char*> options) {
  for (const std::string option : options) {
    const bool list = option == "--weights";
    const auto complaint = [list](const std::string& text) -> std::string {
      const bool empty = text.empty() || (list && ("," + text + ",").find(",,") != std::string::npos);
      return empty ? "the name of a file is empty; give one, or leave the option out" : "";
    };
    command.get_option(option)->check(complaint, "FILE");
  }
}

void add_inputs(CommandFiles& files, const ModelOptions& model) { files.reads(model.model); }

void add_inputs(CommandFiles& files, const MachineOptions& machine) {
  if (machine.strategy.ends_with(".json")) files.reads(machine.strategy);
}

void add_files(CommandFiles& files, const NetFile& net) {
  files.reads(net.path);
  for (const std::string& path : files_read_by(net)) files.reads(path);
  for (const std::string& path : files_written_by(net)) files.writes("hdf5_output_param.file_name", path);
}

void check(const CommandFiles& files, Communicator& job) {
  at_first_rank(&job, [&] {
    files.check();
    return std::string();
  });
}

}  // namespace cortado
