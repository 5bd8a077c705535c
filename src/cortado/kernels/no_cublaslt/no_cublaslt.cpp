#include "cortado/kernels/gpu_libraries.h"

namespace cortado {

KernelOffer make_cublaslt_inner_product(const Task&) { return {nullptr, "built without cuBLASLt"}; }
KernelOffer make_cublaslt_tf32_inner_product(const Task& task) { return make_cublaslt_inner_product(task); }
std::string cublaslt_version() { return "none: built without it"; }

}  // namespace cortado
