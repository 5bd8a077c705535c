#include "tests/app/run_command.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/wait.h>

namespace cortado {
CommandResult run_cortado(const std::string& folder, const std::string& arguments,
                          const std::string& prelude) {
  // Measurements are kept beside the build, not where users keep theirs. A build that moved says where its
  // command is.
  std::string line = "export CORTADO_CACHE=\"${CORTADO_CACHE:-" CORTADO_TEST_CACHE "}\"; cd '" + folder +
                     "' && { " + prelude + " \"${CORTADO:-" CORTADO_COMMAND "}\" " + arguments + "; } 2>&1";
  CommandResult result;
  std::FILE* pipe = popen(line.c_str(), "r");
  if (!pipe) return result;
  std::array<char, 4096> buffer;
  while (size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    result.output.append(buffer.data(), count);
  int status = pclose(pipe);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  return result;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "cortado-test-XXXXXX").string();
  if (mkdtemp(name.data())) path_ = name;
}

TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(path_); }

void TemporaryFolder::write(const std::string& name, const std::string& text) const {
  std::ofstream(file(name), std::ios::binary) << text;
}

std::string TemporaryFolder::read(const std::string& name) const {
  std::ostringstream text;
  text << std::ifstream(file(name), std::ios::binary).rdbuf();
  return text.str();
}

bool TemporaryFolder::has(const std::string& name) const { return std::filesystem::exists(file(name)); }

int TemporaryFolder::count(const std::string& part) const {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    count += entry.path().filename().string().find(part) != std::string::npos;
  }
  return count;
}

std::string small_net() {
  return R"(name: "small"
layer { name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param {
    shape { dim: 8 dim: 2 dim: 6 dim: 6 } shape { dim: 8 }
    data_filler { type: "gaussian" std: 1 } data_filler { type: "constant" value: 1 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "score" type: "InnerProduct" bottom: "conv" top: "score"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "score" bottom: "label" top: "accuracy" include { phase: TEST } }
)";
}

std::string small_solver(const std::string& more) {
  return R"(net: "net.prototxt" base_lr: 0.05 lr_policy: "fixed" momentum: 0.9 weight_decay: 0.001
max_iter: 20 display: 10 snapshot_prefix: "small"
)" + more;
}

}  // namespace cortado
