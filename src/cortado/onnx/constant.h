#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cortado/base/shape.h"
#include "cortado/proto/onnx.pb.h"

namespace cortado::onnx {

// A tensor whose values are known: an initializer, or what is computed of such. Row-major.
struct Constant {
  Shape shape;
  bool whole = false;         // `integers` has the values (integer types and bool), else `floats`
  std::vector<float> floats;  // of all types of floating-point numbers
  std::vector<int64_t> integers;

  int64_t size() const { return shape.size(); }
  double number(int64_t index) const {
    const auto i = static_cast<size_t>(index);
    return whole ? static_cast<double>(integers[i]) : static_cast<double>(floats[i]);
  }
};
using ConstantPtr = std::shared_ptr<const Constant>;

ConstantPtr constant_of(Shape shape, std::vector<float> values);
ConstantPtr constant_of(Shape shape, std::vector<int64_t> values);

// Reads a tensor of a model. `folder`: where the model lies, whose files external data may name; empty: it
// has none. Throws UserError without the tensor's name: a type that is not read, sizes that disagree, a path
// that leads out of the folder.
ConstantPtr read_constant(const TensorProto& tensor, const std::string& folder);

// Numbers of the largest constant that a file may make of smaller ones: more than nets need, and little
// enough for any memory.
constexpr int64_t most_computed = int64_t{1} << 26;

// Throws UserError where the extents that are not 0 multiply to more than `most`: a file of a few bytes can
// name any.
void check_extents(const Shape& shape, int64_t most);

// What a type is called in messages: "FLOAT16".
std::string type_name(int data_type);

}  // namespace cortado::onnx
