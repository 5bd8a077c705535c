#pragma once

#include <string>

#include "cortado/kernels/kernel.h"

// Kernels by NVIDIA's libraries, of builds that have them (cudnn/, cublaslt/) or have not (no_cudnn/,
// no_cublaslt/). They run on Arguments::stream alone and are made for the GPU of the calling thread, which
// must not be another thread's at the time; where there is none they refuse. Tensors are f32 or bf16,
// parameters lie in the order of files. `tf32`: of f32 tensors, products round their factors to 10 bits after
// the point.
namespace cortado {

KernelOffer make_cudnn_convolution(const Task& task);
KernelOffer make_cudnn_tf32_convolution(const Task& task);
KernelOffer make_cublaslt_inner_product(const Task& task);
KernelOffer make_cublaslt_tf32_inner_product(const Task& task);

// The library's version, or that there is none: "9.19.0", "none: ...".
std::string cudnn_version();
std::string cublaslt_version();

}  // namespace cortado
