#!/usr/bin/env bash
# Compiles the sources for GPUs where nvcc is installed, and links them: the test of GPUs' libraries and the command, which
# then say what they find. Says when there is no nvcc. Nothing runs on a GPU.
#   scripts/compile_cuda.sh
#   REST=build/dev      a build without CUDA of the same sources: its archives of the rooms that know no CUDA are linked. Where
#                       it has no command, these rooms are compiled, too, which takes many times as long
set -euo pipefail
cd "$(dirname "$0")/.."
nvcc=$(command -v nvcc || true)
if [[ -z $nvcc && -x /usr/local/cuda/bin/nvcc ]]; then nvcc=/usr/local/cuda/bin/nvcc; fi
if [[ -z $nvcc ]]; then
  echo "no nvcc: the sources for GPUs are not compiled (the test cuda_sources reads them as C++)"
  exit 0
fi
build=$PWD/build/cuda rest=${REST:-build/dev} began=$SECONDS
say() { echo "== $((SECONDS - began)) s: $*"; }
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake -S . -B "$build" -G Ninja -DCORTADO_CUDA=ON -DCMAKE_CUDA_COMPILER="$nvcc" -DCMAKE_CUDA_ARCHITECTURES=90 -DCORTADO_PYTHON=OFF \
  -DCORTADO_TESTS=ON -DCMAKE_CXX_FLAGS_RELEASE=-O0 "${launcher[@]}" >/dev/null
say "compiling by $("$nvcc" --version | tail -2 | head -1)"
# The rooms whose sources a build with CUDA compiles otherwise.
rooms=(device kernels comm)
ninja -C "$build" "${rooms[@]/#/cortado_}"
if ninja -C "$build" -t query gpu_libraries_test >/dev/null 2>&1; then
  ninja -C "$build" gpu_libraries_test
  say "what the libraries describe and plan without a device"
  "$build/tests/kernels/gpu_libraries_test" --gtest_brief=1
else
  say "without cuDNN and cuBLASLt both their test is not built"
fi
if [[ -x $rest/cortado ]]; then
  say "linking the command with the other rooms of $rest"
  link=$(ninja -C "$rest" -t commands cortado | tail -1)
  libraries=$(ninja -C "$build" -t commands cortado | tail -1 | tr ' ' '\n' | grep -E '/lib(cudart|cudnn|cublasLt|nccl)[^ ]*\.(so|a)$' | sort -u | tr '\n' ' ')
  for room in "${rooms[@]}"; do link=${link//src\/cortado\/libcortado_$room.a/$build/src/cortado/libcortado_$room.a}; done
  link=${link/ -o cortado / -o $build/cortado }
  for library in $libraries; do link=${link/ -o / -Wl,-rpath,$(dirname "$library") -o }; done
  (cd "$rest" && eval "${link% && :} $libraries -lrt -ldl -lpthread")
else
  say "linking the command"
  ninja -C "$build" cortado
fi
say "what the command finds"
"$build/cortado" device_query
say "linked: not run on a GPU"
