#!/usr/bin/env bash
# Builds Cortado for every x86-64 processor since 2009 and installs it below PREFIX.
#   scripts/portable.sh PREFIX
# The rooms are built as shared libraries for three levels of the instruction set, x86-64-v2 (SSE4.2), -v3 (AVX2) and
# -v4 (AVX-512). At each start the system's loader takes those of the processor at hand (glibc's hwcaps, 2.33 and later).
# PREFIX/bin/cortado, PREFIX/lib, PREFIX/include, PREFIX/share
#   scripts/portable.sh --build        builds alone, for scripts/package.sh
# LEVELS="v2 v3" builds fewer; the first one must run everywhere that Cortado shall.
set -euo pipefail
[[ $# -eq 1 ]] || { echo "usage: scripts/portable.sh PREFIX" >&2; exit 2; }
prefix=$1
[[ $prefix == --build ]] || prefix=$(realpath -m "$1")
cd "$(dirname "$0")/.."
read -ra levels <<<"${LEVELS:-v2 v3 v4}"

scripts/install.sh
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
python=()
[[ $prefix == --build ]] && python=(-DCORTADO_PYTHON_DIR=lib/python3/dist-packages)  # where Debian's packages have theirs
others=
for level in "${levels[@]:1}"; do others+="${others:+;}$PWD/build/portable-$level"; done
for level in "${levels[@]}"; do
  build=build/portable-$level
  if [[ $level == "${levels[0]}" ]]; then  # what the others stand in for
    place=(-DCORTADO_LIBRARY_FOLDER=lib/cortado "-DCORTADO_LEVEL_BUILDS=$others")
  else
    place=(-DCORTADO_LIBRARY_FOLDER="lib/cortado/glibc-hwcaps/x86-64-$level")
  fi
  cmake --preset release -B "$build" -DCORTADO_ARCH="x86-64-$level" -DBUILD_SHARED_LIBS=ON "${launcher[@]}" "${place[@]}" "${python[@]}" >/dev/null
  cmake --build "$build"
done
[[ $prefix == --build ]] && exit 0
for level in "${levels[@]}"; do
  components=(libraries)
  [[ $level == "${levels[0]}" ]] && components=(cortado libraries dev)
  for component in "${components[@]}"; do
    cmake --install "build/portable-$level" --prefix "$prefix" --component "$component" --strip >/dev/null
  done
done
echo "installed: $prefix/bin/cortado"
