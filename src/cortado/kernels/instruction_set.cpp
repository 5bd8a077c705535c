#include "cortado/kernels/instruction_set.h"

namespace cortado {

std::string_view kernel_instruction_set() {
#if defined(__AVX512F__)
  return "avx512f";
#elif defined(__AVX2__)
  return "avx2";
#else
  return "baseline";
#endif
}

}  // namespace cortado
