#!/usr/bin/env bash
# Builds with CUDA what scripts/test_gpu.sh, bench/gpu.py and bench/cores.py run, and packs it with its libraries into one
# file of about 40 MiB: for a machine that has a GPU, CUDA, cuDNN and NCCL, but neither our packages nor a network.
#   scripts/bundle_gpu.sh FILE.tar.xz
# There, in a checkout of the same commit:
#   mkdir -p build && tar -xf FILE.tar.xz -C build
#   BUILD=build/gpu-bundle scripts/test_gpu.sh
#   . build/gpu-bundle/env.sh && bench/gpu.py --cortado build/gpu-bundle/cortado
# ARCH=x86-64-v3    the instruction set of the processor there
# GPU_ARCH=90       of its GPU; default: "80;90"
set -euo pipefail
[[ $# -eq 1 ]] || { echo "usage: scripts/bundle_gpu.sh FILE.tar.xz" >&2; exit 2; }
file=$(realpath -m "$1")
cd "$(dirname "$0")/.."
build=build/for-bundle bundle=build/gpu-bundle
programs=(cortado tests/kernels/kernels_test tests/kernels/gpu_libraries_test tests/exec/exec_test tests/mpi/ranks_test)

scripts/install.sh libgtest-dev libgmock-dev patchelf xz-utils
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
cmake -S . -B "$build" -G Ninja -DCORTADO_CUDA=ON -DCMAKE_CUDA_COMPILER="$nvcc" -DCMAKE_CUDA_ARCHITECTURES="${GPU_ARCH:-80;90}" -DCORTADO_PYTHON=OFF \
  -DCORTADO_ARCH="${ARCH:-x86-64-v3}" -DCORTADO_MPICH_EXEC=mpiexec.hydra -DCORTADO_TESTS_AT=. "${launcher[@]}" >/dev/null
cmake --build "$build" --target "${programs[@]##*/}"

rm -rf "$bundle"
mkdir -p "$bundle/lib" "$bundle/bin"
# Copies a program, and the libraries that it needs but glibc's and NVIDIA's.
pack() {  # FROM TO PATH-FROM-THERE-TO-THE-BUNDLE
  install -D "$1" "$bundle/$2"
  strip "$bundle/$2"
  patchelf --force-rpath --set-rpath "\$ORIGIN/$3lib" "$bundle/$2"
  ldd "$1" | awk '$3 ~ /^\// { print $3 }' |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|libcuda|libcud[a-z]+|libcublas[A-Za-z]*|libnccl|libnvrtc[a-z-]*|libnvJitLink)\.so' |
    while read -r library; do cp -Ln "$library" "$bundle/lib/"; done
}
for program in "${programs[@]}"; do
  depth=$(dirname "$program" | tr -cd / | wc -c)
  up=; if [[ $program == */* ]]; then for _ in $(seq 0 "$depth"); do up+=../; done; fi
  pack "$build/$program" "$program" "$up"
done
for program in mpiexec.hydra hydra_pmi_proxy; do pack "$(command -v $program)" "bin/$program" ../; done
cat >"$bundle/env.sh" <<'END'
# For a shell that runs the programs beside this file: their launcher, and NVIDIA's libraries where Python has them.
PATH=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/bin:$PATH
libraries=(/usr/local/cuda/lib64)
if command -v python3 >/dev/null; then
  mapfile -t -O 1 libraries < <(python3 -c 'import glob, sys; print(*(f for p in sys.path for f in glob.glob(p + "/nvidia/*/lib")), sep="\n")')
fi
LD_LIBRARY_PATH=$(IFS=:; echo "${libraries[*]}")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PATH LD_LIBRARY_PATH
END
git rev-parse HEAD >"$bundle/commit" 2>/dev/null || true
tar -C build -cf - gpu-bundle | xz -T0 >"$file"
echo "packed: $file, $(du -h --apparent-size "$file" | cut -f1)"
