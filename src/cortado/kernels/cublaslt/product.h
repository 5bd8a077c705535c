#pragma once

#include <cublasLt.h>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>

#include "cortado/kernels/cublaslt/product_of.h"

namespace cortado::cublaslt {

// What cuBLASLt does not do, in its own words.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A product that cuBLASLt knows how to compute. Descriptions need no device.
class Product {
 public:
  explicit Product(const ProductOf& of);                                                // throws Refusal
  int64_t workspace() const { return static_cast<int64_t>(algorithm_.workspaceSize); }  // bytes

 private:
  friend class Gpu;
  template <typename T>
  using Handle = std::shared_ptr<std::remove_pointer_t<T>>;
  static Handle<cublasLtMatrixLayout_t> matrix(ElementType type, int64_t rows, int64_t columns);

  Handle<cublasLtMatmulDesc_t> description_;
  Handle<cublasLtMatrixLayout_t> a_, b_, result_;
  cublasLtMatmulHeuristicResult_t algorithm_{};
};

struct ProductPointers {
  const void *a, *b, *bias;  // bias: null: none
  void* result;
};

// cuBLASLt on one GPU, with the products that were made for it. Any thread may call.
class Gpu {
 public:
  // That of the calling thread's GPU; kernels of one GPU share it. Throws Refusal where there is none.
  static std::shared_ptr<Gpu> current();
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  // With the fastest of the heuristics' best guesses, measured once for equal products. Throws Refusal where
  // there is none.
  Product product(const ProductOf& of);
  // Starts it on a stream (cudaStream_t). Throws InternalError where it does not start.
  void run(const Product& product, void* stream, const ProductPointers& pointers, std::byte* workspace) const;

 private:
  explicit Gpu(int number);
  Product measured(const ProductOf& of) const;
  void start(const Product& product, const cublasLtMatmulHeuristicResult_t& algorithm, void* stream,
             const ProductPointers& pointers, void* workspace) const;

  const int number_;
  cublasLtHandle_t handle_ = nullptr;
  std::mutex mutex_;  // of the products
  std::map<std::string, Product> products_;
};

}  // namespace cortado::cublaslt
