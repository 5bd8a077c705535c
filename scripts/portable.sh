#!/usr/bin/env bash
# Builds Cortado for every x86-64 processor since 2009 and installs it below PREFIX.
#   scripts/portable.sh PREFIX
# The rooms are built as shared libraries for three levels of the instruction set, x86-64-v2 (SSE4.2), -v3 (AVX2) and
# -v4 (AVX-512). At each start the system's loader takes those of the processor at hand (glibc's hwcaps, 2.33 and later).
# PREFIX/bin/cortado, PREFIX/lib, PREFIX/share/cortado
set -euo pipefail
[[ $# -eq 1 ]] || { echo "usage: scripts/portable.sh PREFIX" >&2; exit 2; }
prefix=$(realpath -m "$1")
cd "$(dirname "$0")/.."

scripts/install.sh
mkdir -p "$prefix"/{bin,share/cortado}
for level in v2 v3 v4; do
  build=build/portable-$level
  cmake --preset release -B $build -DCORTADO_ARCH=x86-64-$level -DBUILD_SHARED_LIBS=ON \
    -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON -DCMAKE_INSTALL_RPATH='$ORIGIN/../lib' >/dev/null
  cmake --build $build --target cortado
  libraries=$prefix/lib/glibc-hwcaps/x86-64-$level
  if [[ $level == v2 ]]; then  # what the others stand in for
    libraries=$prefix/lib
    install -s $build/cortado "$prefix/bin"
  fi
  mkdir -p "$libraries"
  install -s -m 644 $build/src/cortado/libcortado_*.so "$libraries"
done
cp -r machines "$prefix/share/cortado/"
echo "installed: $prefix/bin/cortado"
