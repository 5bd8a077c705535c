#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cortado/layers/layer_of.h"
#include "cortado/layers/user_layer.h"

namespace cortado {

struct UserDefinedOptions {
  std::string module, layer, parameters;
  static constexpr auto fields =
      std::tuple{field("module", &UserDefinedOptions::module), field("layer", &UserDefinedOptions::layer),
                 field("parameters", &UserDefinedOptions::parameters)};
};

// A layer that the user's program computes, on whole tensors and on one rank. Any number of inputs, outputs
// and parameters.
class UserDefined : public LayerOf<UserDefinedOptions> {
 public:
  // `in_place`: of each output, whether it takes the place of the input of its number.
  UserDefined(UserDefinedOptions options, std::shared_ptr<UserLayer> code, std::vector<bool> in_place);
  std::string_view type() const override { return "Python"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  // Those that the program made when it was asked for the shapes of the outputs.
  std::vector<ParameterSpec> parameters(std::span<const Shape> inputs) const override;
  // Nobody knows what the program does beside it.
  bool writes_files() const override { return true; }
  OutputRule output_rule(int) const override { return OutputRule::f32; }

  UserLayer& code() const { return *code_; }
  // Gives the bottoms these shapes, and returns those that the program gives the tops.
  std::vector<Shape> reshape(std::span<const Shape> inputs) const;

 private:
  std::shared_ptr<UserLayer> code_;
  std::vector<bool> in_place_;
};

}  // namespace cortado
