#!/usr/bin/env bash
# Installs what is missing, builds with warnings as errors, and runs every test.
#   scripts/test.sh [CTEST-ARGUMENT...]    e.g. scripts/test.sh -R kernels
set -euo pipefail
cd "$(dirname "$0")/.."

# PyTorch is what whole nets are compared with, SimGrid the Simulator; BLIS is one of the libraries that may multiply.
# The last line is for the Python module.
scripts/install.sh libgtest-dev libgmock-dev clang-format libsimgrid-dev libblis4-openmp python3-torch python3-torchvision python3-h5py python3-onnx \
  pybind11-dev python3-dev python3-numpy python3-protobuf
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake --preset dev "${launcher[@]}"
cmake --build --preset dev
# Programs that share the cores must not spin while they wait. Some tests mostly sleep: one more than there are cores.
OMP_WAIT_POLICY=passive ctest --test-dir build/dev --parallel $(($(nproc) + 1)) --output-on-failure --no-tests=error "$@"
