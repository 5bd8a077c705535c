#include "cortado/kernels/lowering/blas.h"

#include <algorithm>
#include <cblas.h>
#include <dlfcn.h>
#include <dnnl.h>
#include <fmt/format.h>
#include <omp.h>
#include <sys/mman.h>
#include <vector>

#include "cortado/base/error.h"
#include "cortado/base/parallel_for.h"

namespace cortado::lowering {

namespace {

constexpr const char *openblas_file = "libopenblas.so.0", *blis_file = "libblis.so.4";

// The functions of OpenBLAS that are used, or why there are none.
struct OpenBlas {
  decltype(&cblas_sgemm) sgemm = nullptr;
  std::string refusal;
};

// OpenBLAS maps 128 MiB for each thread as it is loaded, and as much for each thread that calls it. Where
// there is no room for that (`ulimit -v`) it tries again for ever; so it is tried here before.
bool has_room_for_openblas() {
  constexpr size_t buffer_bytes = size_t{128} << 20;
  const int buffers = 2 * std::max(omp_get_num_procs(), compute_threads());
  std::vector<void*> mapped;
  while (std::ssize(mapped) < buffers) {
    void* at = mmap(nullptr, buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) break;
    mapped.push_back(at);
  }
  for (void* at : mapped) munmap(at, buffer_bytes);
  return std::ssize(mapped) == buffers;
}

OpenBlas load_openblas() {
  OpenBlas openblas;
  if (!has_room_for_openblas()) {
    openblas.refusal =
        "OpenBLAS needs 256 MiB of address space a thread; raise `ulimit -v`, or use fewer threads";
    return openblas;
  }
  void* library = dlopen(openblas_file, RTLD_NOW | RTLD_LOCAL);  // stays to the end
  if (library != nullptr)
    openblas.sgemm = reinterpret_cast<decltype(openblas.sgemm)>(dlsym(library, "cblas_sgemm"));
  if (openblas.sgemm == nullptr)
    openblas.refusal = fmt::format("{} is not installed (Debian: libopenblas0-openmp)", openblas_file);
  return openblas;
}

const OpenBlas& loaded_openblas() {
  static const OpenBlas openblas = load_openblas();
  return openblas;
}

// The functions of BLIS that are used: BLAS's own product, column-major, and the number of threads.
struct Blis {
  void (*sgemm)(const char* a_order, const char* b_order, const int* rows, const int* columns,
                const int* depth, const float* alpha, const float* a, const int* a_stride, const float* b,
                const int* b_stride, const float* beta, float* product, const int* product_stride) = nullptr;
  void (*set_threads)(int64_t) = nullptr;
};

Blis load_blis() {
  Blis blis;
  void* library = dlopen(blis_file, RTLD_NOW | RTLD_LOCAL);  // stays to the end
  if (library == nullptr) return blis;
  blis.sgemm = reinterpret_cast<decltype(blis.sgemm)>(dlsym(library, "sgemm_"));
  blis.set_threads =
      reinterpret_cast<decltype(blis.set_threads)>(dlsym(library, "bli_thread_set_num_threads"));
  return blis;
}

const Blis& loaded_blis() {
  static const Blis blis = load_blis();
  return blis;
}

// A product of rows of `a`. All of it as BLAS counts: int.
struct Product {
  int rows, columns, depth;
  Factor a, b;
  float beta;
  float* product;
  int stride;
};

void by_openblas(const Product& p) {
  const auto order = [](const Factor& factor) { return factor.transposed ? CblasTrans : CblasNoTrans; };
  loaded_openblas().sgemm(CblasRowMajor, order(p.a), order(p.b), p.rows, p.columns, p.depth, 1, p.a.values,
                          static_cast<int>(p.a.stride), p.b.values, static_cast<int>(p.b.stride), p.beta,
                          p.product, p.stride);
}

// A row-major matrix is, column by column, its transposed one: product^T = b^T * a^T.
void by_blis(const Product& p) {
  const auto order = [](const Factor& factor) { return factor.transposed ? "T" : "N"; };
  const float one = 1;
  const int a_stride = static_cast<int>(p.a.stride), b_stride = static_cast<int>(p.b.stride);
  const Blis& blis = loaded_blis();
  blis.set_threads(omp_in_parallel() ? 1 : compute_threads());
  blis.sgemm(order(p.b), order(p.a), &p.columns, &p.rows, &p.depth, &one, p.b.values, &b_stride, p.a.values,
             &a_stride, &p.beta, p.product, &p.stride);
}

void by_onednn(const Product& p) {
  const auto order = [](const Factor& factor) { return factor.transposed ? 'T' : 'N'; };
  const dnnl_status_t status = dnnl_sgemm(order(p.a), order(p.b), p.rows, p.columns, p.depth, 1, p.a.values,
                                          p.a.stride, p.b.values, p.b.stride, p.beta, p.product, p.stride);
  ensure(status == dnnl_success, "oneDNN multiplies matrices");
}

}  // namespace

std::string_view name_of(Blas blas) {
  constexpr std::string_view names[] = {"openblas", "blis", "onednn"};
  return names[static_cast<size_t>(blas)];
}

std::string refusal_of(Blas blas) {
  if (blas == Blas::onednn) return "";
  if (blas == Blas::openblas) return loaded_openblas().refusal;
  const Blis& blis = loaded_blis();
  if (blis.sgemm != nullptr && blis.set_threads != nullptr) return "";
  return fmt::format("{} is not installed (Debian: libblis4-openmp)", blis_file);
}

// All of them run on one thread inside a parallel region, whatever their number of threads, and their calls
// may then run at the same time.
void multiply(Blas blas, int64_t rows, int64_t columns, int64_t depth, Factor a, Factor b, float beta,
              float* product, int64_t product_stride) {
  constexpr void (*libraries[])(const Product&) = {by_openblas, by_blis, by_onednn};
  const auto multiply_rows = [&](int64_t begin, int64_t end) {
    const Factor part{a.values + begin * (a.transposed ? 1 : a.stride), a.stride, a.transposed};
    libraries[static_cast<size_t>(blas)](
        {static_cast<int>(end - begin), static_cast<int>(columns), static_cast<int>(depth), part, b, beta,
         product + begin * product_stride, static_cast<int>(product_stride)});
  };
  if (rows == 0 || columns == 0) return;
  if (omp_in_parallel()) {
    parallel_ranges(rows, multiply_rows);
  } else {
    multiply_rows(0, rows);
  }
}

}  // namespace cortado::lowering
