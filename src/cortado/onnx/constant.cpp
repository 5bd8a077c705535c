#include "cortado/onnx/constant.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

#include "cortado/base/bf16.h"
#include "cortado/base/error.h"
#include "cortado/onnx/external_data.h"

namespace cortado::onnx {
namespace {

// IEEE 754 binary16.
float half_to_float(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const auto fraction = static_cast<float>(bits & 1023);
  float value = exponent == 0    ? std::ldexp(fraction, -24)
                : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                 : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -value : value;
}

template <typename Stored, typename Value>
std::vector<Value> unpack(std::string_view bytes, int64_t count, Value (*convert)(Stored)) {
  if (bytes.size() % sizeof(Stored) != 0 || bytes.size() / sizeof(Stored) != static_cast<size_t>(count))
    throw UserError(fmt::format("has {} bytes for {} values of {} bytes; the file is broken", bytes.size(),
                                count, sizeof(Stored)));
  std::vector<Value> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = convert(stored);
  }
  return values;
}

template <typename Field, typename Value, typename Stored>
std::vector<Value> from_field(const Field& field, int64_t count, Value (*convert)(Stored)) {
  if (field.size() != count)
    throw UserError(
        fmt::format("has {} values for its {} elements; the file is broken", field.size(), count));
  std::vector<Value> values;
  values.reserve(static_cast<size_t>(count));
  for (const auto stored : field) values.push_back(convert(static_cast<Stored>(stored)));
  return values;
}

template <typename Stored>
int64_t to_integer(Stored value) {
  return static_cast<int64_t>(value);
}
float same(float value) { return value; }
float from_double(double value) { return static_cast<float>(value); }
float from_half(uint16_t bits) { return half_to_float(bits); }
float from_bf16(uint16_t bits) { return to_float(bf16{bits}); }

// The values of a tensor: of its raw bytes where it has them, else of the field that its type is kept in.
struct TensorValues {
  const TensorProto& tensor;
  int64_t count;
  bool raw;
  std::string_view bytes;

  template <typename Value, typename Stored, typename Field>
  std::vector<Value> of(const Field& field, Value (*convert)(Stored)) const {
    return raw ? unpack<Stored, Value>(bytes, count, convert)
               : from_field<Field, Value, Stored>(field, count, convert);
  }
};

ConstantPtr typed_constant(const Shape& shape, const TensorValues& v) {
  const TensorProto& t = v.tensor;
  switch (t.data_type()) {
    case TensorProto::FLOAT:
      return constant_of(shape, v.of(t.float_data(), same));
    case TensorProto::DOUBLE:
      return constant_of(shape, v.of(t.double_data(), from_double));
    case TensorProto::FLOAT16:
      return constant_of(shape, v.of(t.int32_data(), from_half));
    case TensorProto::BFLOAT16:
      return constant_of(shape, v.of(t.int32_data(), from_bf16));
    case TensorProto::INT64:
      return constant_of(shape, v.of(t.int64_data(), to_integer<int64_t>));
    case TensorProto::INT32:
      return constant_of(shape, v.of(t.int32_data(), to_integer<int32_t>));
    case TensorProto::INT16:
      return constant_of(shape, v.of(t.int32_data(), to_integer<int16_t>));
    case TensorProto::INT8:
      return constant_of(shape, v.of(t.int32_data(), to_integer<int8_t>));
    case TensorProto::UINT8:
    case TensorProto::BOOL:
      return constant_of(shape, v.of(t.int32_data(), to_integer<uint8_t>));
    case TensorProto::UINT16:
      return constant_of(shape, v.of(t.int32_data(), to_integer<uint16_t>));
    case TensorProto::UINT32:
      return constant_of(shape, v.of(t.uint64_data(), to_integer<uint32_t>));
    default:
      throw UserError(fmt::format("is of type {}, which is not read; export the model with float tensors",
                                  type_name(t.data_type())));
  }
}

}  // namespace

std::string type_name(int data_type) {
  return TensorProto::DataType_IsValid(data_type)
             ? TensorProto::DataType_Name(static_cast<TensorProto::DataType>(data_type))
             : fmt::format("number {}", data_type);
}

ConstantPtr constant_of(Shape shape, std::vector<float> values) {
  return std::make_shared<Constant>(Constant{shape, false, std::move(values), {}});
}
ConstantPtr constant_of(Shape shape, std::vector<int64_t> values) {
  return std::make_shared<Constant>(Constant{shape, true, {}, std::move(values)});
}

void check_extents(const Shape& shape, int64_t most) {
  int64_t product = 1;
  for (const int64_t extent : shape.extents())
    if (extent > 0 && (__builtin_mul_overflow(product, extent, &product) || product > most))
      throw UserError(fmt::format("a tensor of shape {} is larger than is read", shape.text()));
}

ConstantPtr read_constant(const TensorProto& tensor, const std::string& folder) {
  const Shape shape(std::span(tensor.dims().data(), static_cast<size_t>(tensor.dims_size())));
  constexpr int64_t most = int64_t{1} << 40;  // far more than a file has, so that no index overflows
  check_extents(shape, most);
  std::string external;
  TensorValues values{tensor, shape.size(), tensor.has_raw_data(), tensor.raw_data()};
  if (tensor.data_location() == TensorProto::EXTERNAL) {
    external = read_external_data(tensor, folder);
    values.raw = true;
    values.bytes = external;
  }
  return typed_constant(shape, values);
}

}  // namespace cortado::onnx
