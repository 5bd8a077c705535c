#include "cortado/kernels/cudnn/descriptor.h"

#include <array>
#include <fmt/format.h>

namespace cortado::cudnn {

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 256> reason{};
  cudnnGetLastErrorString(reason.data(), reason.size());
  std::string text = fmt::format("{}: {}", what, cudnnGetErrorString(status));
  if (reason[0] != 0) text += fmt::format(" ({})", reason.data());
  throw Refusal(text);
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t raw = nullptr;
  check(cudnnBackendCreateDescriptor(type, &raw), "a descriptor is made");
  raw_.reset(raw, [](void* made) { cudnnBackendDestroyDescriptor(made); });
}

Descriptor& Descriptor::set_parts(cudnnBackendAttributeName_t name, std::span<const Descriptor> parts) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor& part : parts) {
    raw.push_back(part.raw());
    parts_.push_back(part);
  }
  set_bytes(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(raw.size()), raw.data());
  return *this;
}

Descriptor& Descriptor::finalize(const char* what) {
  check(cudnnBackendFinalize(raw()), what);
  return *this;
}

int64_t Descriptor::count(cudnnBackendAttributeName_t name) const {
  return get_bytes(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
}

std::vector<Descriptor> Descriptor::parts(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                          int64_t most) const {
  std::vector<Descriptor> found;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < most; ++i) raw.push_back(found.emplace_back(type).raw());
  const int64_t given = get_bytes(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, raw.data());
  found.erase(found.begin() + given, found.end());
  return found;
}

void Descriptor::set_bytes(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                           const void* values) {
  check(cudnnBackendSetAttribute(raw(), name, type, count, values), "an attribute is set");
}

int64_t Descriptor::get_bytes(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                              int64_t most, void* values) const {
  int64_t given = 0;
  check(cudnnBackendGetAttribute(raw(), name, type, most, &given, values), "an attribute is asked for");
  return given;
}

}  // namespace cortado::cudnn
