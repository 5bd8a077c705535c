#include "cortado/kernels/reference/reference.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <vector>

#include "cortado/base/error.h"
#include "cortado/layers/pointwise.h"

namespace cortado {
namespace {

template <typename T>
struct ReferenceEntry {
  std::vector<std::string_view> types;
  std::unique_ptr<KernelOf<T>> (*make)(const Task& task);
};

template <typename T>
const std::vector<ReferenceEntry<T>>& reference_table() {
  static const std::vector<ReferenceEntry<T>> table = {
#define REFERENCE(name, ...) {{__VA_ARGS__}, make_##name##_reference<T>},
#include "cortado/kernels/layer_kernels.def"
  };
  return table;
}

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_reference_kernel(const Task& task) {
  if (task.layers.size() > 1) return make_chain_reference<T>(task);
  const std::string_view type = task.layer().type();
  for (const ReferenceEntry<T>& entry : reference_table<T>()) {
    if (std::ranges::find(entry.types, type) != entry.types.end()) return entry.make(task);
  }
  throw UserError(fmt::format("layer type {} has no kernel", type));
}

template std::unique_ptr<KernelOf<float>> make_reference_kernel<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_reference_kernel<double>(const Task&);

}  // namespace cortado
