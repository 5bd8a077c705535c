#!/usr/bin/env bash
# Without nvcc, clang reads the sources for GPUs with stubs of CUDA's headers: the runtime as C++, kernels/gpu as
# nvcc would read them, once for the host and once for a GPU. Exit code 77, with the reason, where there is no clang.
#   cuda_sources.sh PROJECT NVCC      NVCC: the compiler that builds them; empty: none
set -euo pipefail
root=$1 nvcc=${2:-}
if [[ -n $nvcc ]]; then
  echo "the build compiles the sources for GPUs with $nvcc"
  exit 77
fi
if ! command -v clang++ >/dev/null; then
  echo "neither nvcc nor clang++ is installed: nobody has read the sources for GPUs"
  exit 77
fi
stubs=$root/tests/cuda_stubs
all=$(mktemp -d)
trap 'rm -rf "$all"' EXIT
flags=(-std=c++20 -fsyntax-only -Wall -Werror -Wno-unknown-cuda-version -I"$root/src" -I"$stubs")
for source in "$root"/src/cortado/device/cuda/*.cpp; do echo "#include \"$source\""; done >"$all/runtime.cpp"
clang++ "${flags[@]}" "$all/runtime.cpp"
for source in "$root"/src/cortado/kernels/gpu/*.cpp; do echo "#include \"$source\""; done >"$all/kernels.cu"
for side in host device; do
  clang++ -x cuda -D__CUDACC__ --cuda-$side-only -nocudainc -nocudalib -include "$stubs/cuda_language.h" "${flags[@]}" \
    -Wno-unused-function -Wno-undefined-internal "$all/kernels.cu"
done
echo "read by $(clang++ --version | head -1) with stubs of CUDA's headers: not compiled, not run"
