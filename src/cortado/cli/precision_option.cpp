#include "cortado/cli/precision_option.h"

#include <CLI/Validators.hpp>

namespace cortado {

void add_precision_option(CLI::App& command, Precision& precision) {
  const auto take = [&precision](const std::string& name) {
    precision = name == name_of(Precision::bf16) ? Precision::bf16 : Precision::f32;
  };
  command
      .add_option_function<std::string>(
          "--precision", take,
          "f32, or bf16: activations, their gradients and the weights that kernels read are bfloat16, all "
          "else stays f32; default: f32")
      ->check(CLI::IsMember({name_of(Precision::f32), name_of(Precision::bf16)}));
}

}  // namespace cortado
