#!/usr/bin/env bash
# Compiles the sources for GPUs where nvcc is installed; says when it is not. Nothing is linked or run.
#   scripts/compile_cuda.sh
set -euo pipefail
cd "$(dirname "$0")/.."
nvcc=$(command -v nvcc || true)
if [[ -z $nvcc && -x /usr/local/cuda/bin/nvcc ]]; then nvcc=/usr/local/cuda/bin/nvcc; fi
if [[ -z $nvcc ]]; then
  echo "no nvcc: the sources for GPUs are not compiled (the test cuda_sources reads them as C++)"
  exit 0
fi
build=build/cuda
cmake -S . -B $build -G Ninja -DCORTADO_CUDA=ON -DCMAKE_CUDA_COMPILER="$nvcc" -DCMAKE_CUDA_ARCHITECTURES=90 -DCORTADO_TESTS=OFF \
  -DCORTADO_PYTHON=OFF >/dev/null
ninja -C $build -t targets all | sed -n 's/^\(src.*\/kernels\/gpu\/.*\.o\): .*/\1/p' | xargs ninja -C $build cortado_device cortado_comm
echo "compiled by $("$nvcc" --version | tail -2 | head -1): not run"
