#include "cortado/kernels/native/convert.h"

#include "cortado/kernels/native/elementwise.h"

namespace cortado::native {
namespace {

template <typename From, typename To>
void convert_elements(const From* source, To* target, int64_t count) {
  map_elements(target, count, false, [=]<typename V>(int64_t i) { return load<V>(source + i); });
}

}  // namespace

void convert(const bf16* source, float* target, int64_t count) { convert_elements(source, target, count); }
void convert(const float* source, bf16* target, int64_t count) { convert_elements(source, target, count); }

}  // namespace cortado::native
