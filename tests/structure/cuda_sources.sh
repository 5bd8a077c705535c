#!/usr/bin/env bash
# The compiler reads the sources for GPUs as C++, with stubs of CUDA's headers; launches of kernels become calls.
# scripts/compile_cuda.sh compiles them where nvcc is.
#   cuda_sources.sh CXX PROJECT
set -euo pipefail
compiler=$1 root=$2
stubs=$root/tests/cuda_stubs
all=$(mktemp -d)
trap 'rm -rf "$all"' EXIT

gpu=cortado/kernels/gpu
mkdir -p "$all/$gpu"
perl -0pe 's/(run_\w+)<<<(.*?)>>>\(/launch($1<$of{$1}>, $2, /sg;
  BEGIN { %of = (run_elements => "Element", run_values => "E, Value", run_columns => "E, ValueOf") }' \
  "$root/src/$gpu/grid.h" >"$all/$gpu/grid.h"
for kernel in elements values columns; do
  grep -q "launch(run_$kernel" "$all/$gpu/grid.h" || { echo "$gpu/grid.h: no launch of run_$kernel"; exit 1; }
done
flags=(-std=c++20 -fsyntax-only -fopenmp -Wall -Wno-unknown-pragmas -Werror -I"$all" -I"$root/src" -I"$stubs")
for source in "$root"/src/cortado/device/cuda/*.cpp "$root"/src/cortado/comm/nccl/*.cpp; do echo "#include \"$source\""; done >"$all/runtime.cpp"
"$compiler" "${flags[@]}" "$all/runtime.cpp"
for source in "$root"/src/$gpu/*.cpp; do echo "#include \"$source\""; done >"$all/kernels.cpp"
"$compiler" -D__CUDACC__ -include "$stubs/cuda_language.h" "${flags[@]}" "$all/kernels.cpp"
echo "read with stubs of CUDA's headers: not compiled by nvcc, not run"
