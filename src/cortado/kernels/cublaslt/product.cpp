#include "cortado/kernels/cublaslt/product.h"

#include <algorithm>
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <vector>

#include "cortado/base/error.h"
#include "cortado/kernels/gpu/fastest.h"
#include "cortado/kernels/gpu/per_gpu.h"

namespace cortado::cublaslt {
namespace {

constexpr int64_t most_workspace = int64_t{32} << 20;  // bytes: what NVIDIA recommends for its newest GPUs
constexpr int most_algorithms = 8;

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Refusal(fmt::format("{}: {}", what, cublasLtGetStatusString(status)));
}

cudaDataType data_type(ElementType type) { return type == ElementType::bf16 ? CUDA_R_16BF : CUDA_R_32F; }

template <typename T>
void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t name, const T& value) {
  check(cublasLtMatmulDescSetAttribute(description, name, &value, sizeof value), "a product is described");
}

// What addresses of a matrix are multiples of, in bytes: a pass may begin at any sample, which is a column.
uint32_t alignment(cublasLtMatrixLayout_t matrix) {
  constexpr uint64_t most = 64;  // of the arena
  uint64_t rows = 0;
  uint32_t type = 0;
  check(cublasLtMatrixLayoutGetAttribute(matrix, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows, nullptr),
        "a matrix is asked for its rows");
  check(cublasLtMatrixLayoutGetAttribute(matrix, CUBLASLT_MATRIX_LAYOUT_TYPE, &type, sizeof type, nullptr),
        "a matrix is asked for its type");
  const uint64_t column = rows * (type == CUDA_R_16BF ? sizeof(uint16_t) : sizeof(float));
  return static_cast<uint32_t>(std::min(most, column & -column));
}

// Guesses of the heuristics. Sums of parts are in f32, too, and in one order.
std::vector<cublasLtMatmulHeuristicResult_t> guesses(cublasLtHandle_t handle,
                                                     cublasLtMatmulDesc_t description,
                                                     cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                     cublasLtMatrixLayout_t result) {
  cublasLtMatmulPreference_t made = nullptr;
  check(cublasLtMatmulPreferenceCreate(&made), "a preference is made");
  const std::shared_ptr<cublasLtMatmulPreferenceOpaque_t> preference(made, cublasLtMatmulPreferenceDestroy);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t name, auto value) {
    check(cublasLtMatmulPreferenceSetAttribute(made, name, &value, sizeof value), "a preference is set");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(most_workspace));
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(a));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(b));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(result));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(result));
  std::vector<cublasLtMatmulHeuristicResult_t> found(most_algorithms);
  int count = 0;
  check(cublasLtMatmulAlgoGetHeuristic(handle, description, a, b, result, result, preference.get(),
                                       most_algorithms, found.data(), &count),
        "heuristics are asked");
  found.resize(static_cast<size_t>(count));
  std::erase_if(found, [](const auto& guess) {
    return guess.state != CUBLAS_STATUS_SUCCESS || guess.workspaceSize > static_cast<size_t>(most_workspace);
  });
  return found;
}

}  // namespace

Product::Handle<cublasLtMatrixLayout_t> Product::matrix(ElementType type, int64_t rows, int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, data_type(type), static_cast<uint64_t>(rows),
                                   static_cast<uint64_t>(columns), rows),
        "a matrix is described");
  return {made, cublasLtMatrixLayoutDestroy};
}

Product::Product(const ProductOf& of)
    : a_(of.transpose_a ? matrix(of.factors, of.k, of.m) : matrix(of.factors, of.m, of.k)),
      b_(of.transpose_b ? matrix(of.factors, of.n, of.k) : matrix(of.factors, of.k, of.n)),
      result_(matrix(of.result, of.m, of.n)) {
  cublasLtMatmulDesc_t made = nullptr;
  check(cublasLtMatmulDescCreate(&made, of.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                                 CUDA_R_32F),
        "a product is described");
  description_ = {made, cublasLtMatmulDescDestroy};
  set(made, CUBLASLT_MATMUL_DESC_TRANSA, of.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(made, CUBLASLT_MATMUL_DESC_TRANSB, of.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (!of.bias) return;
  set(made, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  set(made, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(of.result));
}

std::shared_ptr<Gpu> Gpu::current() {
  static gpu::PerGpu<Gpu, Refusal> known;
  return known.current([](int number) { return std::shared_ptr<Gpu>(new Gpu(number)); });
}

Gpu::Gpu(int number) : number_(number) { check(cublasLtCreate(&handle_), "cuBLASLt begins"); }
Gpu::~Gpu() { cublasLtDestroy(handle_); }

Product Gpu::product(const ProductOf& of) {
  const std::lock_guard lock(mutex_);
  const std::string key = of.text();
  const auto known = products_.find(key);
  return known != products_.end() ? known->second : products_.emplace(key, measured(of)).first->second;
}

Product Gpu::measured(const ProductOf& of) const {
  Product made(of);
  const auto found =
      guesses(handle_, made.description_.get(), made.a_.get(), made.b_.get(), made.result_.get());
  if (found.empty()) throw Refusal("no algorithm for this product");
  made.algorithm_ = found.front();
  const auto trial = [&](int64_t elements) { return gpu::Trial(bytes_of(elements, ElementType::f32)); };
  const gpu::Trial a = trial(of.m * of.k), b = trial(of.k * of.n), result = trial(of.m * of.n),
                   bias = trial(of.m), workspace({most_workspace});
  if (!a.get() || !b.get() || !result.get() || !bias.get() || !workspace.get()) return made;
  const ProductPointers pointers{a.get(), b.get(), of.bias ? bias.get() : nullptr, result.get()};
  made.algorithm_ = found[gpu::fastest(
      found,
      [&](const auto& algorithm, cudaStream_t stream) {
        start(made, algorithm, stream, pointers, workspace.get());
      },
      [&](const auto&) { return "a product of cuBLASLt, " + of.text(); })];
  return made;
}

void Gpu::run(const Product& product, void* stream, const ProductPointers& pointers,
              std::byte* workspace) const try {
  cudaSetDevice(number_);  // of the thread that runs this lane
  start(product, product.algorithm_, stream, pointers, workspace);
} catch (const Refusal& refusal) {
  throw InternalError(std::string("cuBLASLt runs what it has planned: ") + refusal.what());
}

// The bias's address is part of the description, of which kernels of equal products share one: each run has a
// copy.
void Gpu::start(const Product& product, const cublasLtMatmulHeuristicResult_t& algorithm, void* stream,
                const ProductPointers& pointers, void* workspace) const {
  cublasLtMatmulDescOpaque_t description = *product.description_;
  if (pointers.bias) set(&description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointers.bias);
  const float one = 1, zero = 0;
  check(
      cublasLtMatmul(handle_, &description, &one, pointers.a, product.a_.get(), pointers.b, product.b_.get(),
                     &zero, pointers.result, product.result_.get(), pointers.result, product.result_.get(),
                     &algorithm.algo, workspace, algorithm.workspaceSize, static_cast<cudaStream_t>(stream)),
      "a product starts");
}

}  // namespace cortado::cublaslt
