#pragma once

#include <cudnn.h>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace cortado::cudnn {

// What cuDNN does not do, in its own words.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Throws Refusal where a call failed. `what`: "a tensor is described".
void check(cudnnStatus_t status, const char* what);

// How cuDNN calls the type of an attribute.
template <typename T>
inline constexpr cudnnBackendAttributeType_t attribute_type = CUDNN_TYPE_BACKEND_DESCRIPTOR;
template <>
inline constexpr auto attribute_type<int64_t> = CUDNN_TYPE_INT64;
template <>
inline constexpr auto attribute_type<float> = CUDNN_TYPE_FLOAT;
template <>
inline constexpr auto attribute_type<bool> = CUDNN_TYPE_BOOLEAN;
template <>
inline constexpr auto attribute_type<char> = CUDNN_TYPE_CHAR;
template <>
inline constexpr auto attribute_type<void*> = CUDNN_TYPE_VOID_PTR;
template <>
inline constexpr auto attribute_type<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <>
inline constexpr auto attribute_type<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
inline constexpr auto attribute_type<cudnnConvolutionMode_t> = CUDNN_TYPE_CONVOLUTION_MODE;
template <>
inline constexpr auto attribute_type<cudnnPointwiseMode_t> = CUDNN_TYPE_POINTWISE_MODE;
template <>
inline constexpr auto attribute_type<cudnnBackendHeurMode_t> = CUDNN_TYPE_HEUR_MODE;
template <>
inline constexpr auto attribute_type<cudnnBackendBehaviorNote_t> = CUDNN_TYPE_BEHAVIOR_NOTE;
template <>
inline constexpr auto attribute_type<cudnnBackendNumericalNote_t> = CUDNN_TYPE_NUMERICAL_NOTE;

// A descriptor of cuDNN's backend API. Copies are the same descriptor. Attributes are set, then finalize()
// makes it usable; it keeps the descriptors that it names. No device is needed for tensors, operations and
// graphs.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);

  template <typename T>
  Descriptor& set(cudnnBackendAttributeName_t name, const T& value) {
    return set_all(name, std::span<const T>(&value, 1));
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& part) {
    return set_parts(name, {&part, 1});
  }
  template <typename T>
  Descriptor& set_all(cudnnBackendAttributeName_t name, std::span<const T> values) {
    set_bytes(name, attribute_type<T>, static_cast<int64_t>(values.size()), values.data());
    return *this;
  }
  Descriptor& set_parts(cudnnBackendAttributeName_t name, std::span<const Descriptor> parts);
  Descriptor& finalize(const char* what);

  template <typename T>
  std::vector<T> values(cudnnBackendAttributeName_t name, int64_t most) const {
    std::vector<T> found(static_cast<size_t>(most));
    found.resize(static_cast<size_t>(get_bytes(name, attribute_type<T>, most, found.data())));
    return found;
  }
  // How many there are of a list of descriptors, and those that cuDNN gives.
  int64_t count(cudnnBackendAttributeName_t name) const;
  std::vector<Descriptor> parts(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                int64_t most) const;

  cudnnBackendDescriptor_t raw() const { return raw_.get(); }

 private:
  void set_bytes(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                 const void* values);
  int64_t get_bytes(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most,
                    void* values) const;

  std::shared_ptr<void> raw_;
  std::vector<Descriptor> parts_;
};

}  // namespace cortado::cudnn
