#!/usr/bin/env bash
# The compiler reads the sources for GPUs as C++, with stubs of CUDA's headers; the one launch of a kernel becomes a call.
# scripts/compile_cuda.sh compiles them where nvcc is.
#   cuda_sources.sh CXX PROJECT
set -euo pipefail
compiler=$1 root=$2
stubs=$root/tests/cuda_stubs
all=$(mktemp -d)
trap 'rm -rf "$all"' EXIT

gpu=cortado/kernels/gpu
mkdir -p "$all/$gpu"
perl -0pe 's/run_elements<<<(.*?)>>>\(count, element\)/launch(run_elements<Element>, $1, count, element)/s' \
  "$root/src/$gpu/grid.h" >"$all/$gpu/grid.h"
grep -q 'launch(run_elements' "$all/$gpu/grid.h" || { echo "$gpu/grid.h: no launch of run_elements"; exit 1; }
flags=(-std=c++20 -fsyntax-only -fopenmp -Wall -Werror -I"$all" -I"$root/src" -I"$stubs")
for source in "$root"/src/cortado/device/cuda/*.cpp "$root"/src/cortado/comm/nccl/*.cpp; do echo "#include \"$source\""; done >"$all/runtime.cpp"
"$compiler" "${flags[@]}" "$all/runtime.cpp"
for source in "$root"/src/$gpu/*.cpp; do echo "#include \"$source\""; done >"$all/kernels.cpp"
"$compiler" -D__CUDACC__ -include "$stubs/cuda_language.h" "${flags[@]}" "$all/kernels.cpp"
echo "read with stubs of CUDA's headers: not compiled by nvcc, not run"
