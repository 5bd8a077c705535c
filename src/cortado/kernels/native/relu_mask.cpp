#include "cortado/kernels/native/relu_mask.h"

#include "cortado/kernels/native/elementwise.h"

namespace cortado::native {
namespace {

template <typename Target, typename Source>
void mask_elements(Target* target, const Source* a, const Source* y, int64_t count, bool in_place) {
  map_elements(target, count, in_place, [=]<typename V>(int64_t i) {
    const V value = load<V>(a + i);
    return load<V>(y + i) > 0 ? value : 0 * value;
  });
}

}  // namespace

void relu_mask(float* target, const float* a, const float* y, int64_t count) {
  mask_elements(target, a, y, count, target == a || target == y);
}
void relu_mask(bf16* target, const bf16* a, const bf16* y, int64_t count) {
  mask_elements(target, a, y, count, target == a || target == y);
}
void relu_mask(bf16* target, const float* a, const float* y, int64_t count) {
  mask_elements(target, a, y, count, false);
}

}  // namespace cortado::native
