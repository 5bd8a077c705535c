#!/usr/bin/env bash
# The Debian packages of a build say what they need, are in order, and run from wherever they are unpacked.
#   package.sh CPACK BUILD [PYTHON]       PYTHON: that of the build's module, where it has one
# Skipped (exit code 77) where Debian's tools are not there. scripts/package.sh makes the packages for all processors.
set -euo pipefail
cpack=$1 build=$2
python=${3:-}
for tool in dpkg-deb dpkg-shlibdeps; do command -v $tool >/dev/null || exit 77; done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "package.sh: $*" >&2; exit 1; }

"$cpack" --config "$build/CPackConfig.cmake" -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip -B "$folder" >"$folder/log" 2>&1 || { cat "$folder/log"; fail "cpack fails"; }
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
if [[ -n $python ]]; then
  module=$(echo "$folder"/python3-cortado_*.deb)
  [[ -e $module ]] || fail "there is no package python3-cortado: $(ls "$folder")"
  depends=$(dpkg-deb -f "$module" Depends)
  for needed in "cortado (= $(dpkg-deb -f "$package" Version))" "python3 (>=" python3-numpy python3-protobuf libdnnl2; do
    [[ $depends == *"$needed"* ]] || fail "python3-cortado does not depend on $needed: $depends"
  done
  dpkg-deb -x "$module" "$folder/root"
  [[ -e $folder/root/usr/share/doc/python3-cortado/copyright ]] || fail "python3-cortado lacks its copyright"
  at=$(dirname "$(dirname "$(find "$folder/root" -path '*/cortado/__init__.py')")")
  if "$python" -c "import numpy, google.protobuf" 2>/dev/null; then
    env -i LANG=C.UTF-8 PYTHONPATH="$at" "$python" -B -c "
import cortado.caffe as caffe
n = caffe.NetSpec()
n.data = caffe.layers.DummyData(shape=[dict(dim=[4, 3])])
n.ip = caffe.layers.InnerProduct(n.data, num_output=2)
open('$folder/net.prototxt', 'w').write(str(n.to_proto()))
assert caffe.Net('$folder/net.prototxt', caffe.TEST).forward()['ip'].shape == (4, 2)" || fail "python3-cortado does not run"
  fi
fi
if command -v lintian >/dev/null; then
  lintian --fail-on error "$folder"/*.deb >"$folder/lintian" || { cat "$folder/lintian"; fail "lintian finds errors"; }
fi
