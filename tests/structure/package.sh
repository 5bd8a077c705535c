#!/usr/bin/env bash
# The Debian package of a build says what it needs, is in order, and runs from wherever it is unpacked.
#   package.sh CPACK BUILD
# Skipped (exit code 77) where Debian's tools are not there. scripts/package.sh makes the packages for all processors.
set -euo pipefail
cpack=$1 build=$2
for tool in dpkg-deb dpkg-shlibdeps; do command -v $tool >/dev/null || exit 77; done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "package.sh: $*" >&2; exit 1; }

"$cpack" --config "$build/CPackConfig.cmake" -B "$folder" >"$folder/log" 2>&1 || { cat "$folder/log"; fail "cpack fails"; }
package=$(echo "$folder"/cortado_*.deb)
[[ -e $package ]] || fail "there is no package cortado: $(ls "$folder")"
depends=$(dpkg-deb -f "$package" Depends)
for needed in libc6 libdnnl2 libprotobuf32 libhdf5 liblmdb0 libjpeg62-turbo libhwloc15; do
  [[ $depends == *"$needed"* ]] || fail "it does not depend on $needed: $depends"
done
[[ $depends != *-dev* ]] || fail "it depends on what it is built with: $depends"
[[ $(dpkg-deb -f "$package" Recommends) == *libopenblas0-openmp* ]] || fail "it does not recommend OpenBLAS"

dpkg-deb -x "$package" "$folder/root"
for file in bin/cortado share/man/man1/cortado.1.gz share/man/man1/cortado-train.1.gz share/doc/cortado/copyright \
  share/doc/cortado/changelog.gz share/bash-completion/completions/cortado share/cortado/models/lenet/solver.prototxt; do
  [[ -e $folder/root/usr/$file ]] || fail "it lacks /usr/$file"
done
[[ $(env -i PATH=/nowhere "$folder/root/usr/bin/cortado" --version) == "$("$build/cortado" --version)" ]] || fail "it does not run"
env -i "$folder/root/usr/bin/cortado" show --model "$folder/root/usr/share/cortado/models/lenet/train_val.prototxt" \
  --input-shape 1x28x28 | grep -q conv1 || fail "it shows no net"
if command -v lintian >/dev/null; then
  lintian --fail-on error "$package" >"$folder/lintian" || { cat "$folder/lintian"; fail "lintian finds errors"; }
fi
