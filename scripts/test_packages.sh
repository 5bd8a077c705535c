#!/usr/bin/env bash
# Installs the Debian packages of scripts/package.sh on a Debian that has neither compiler nor -dev packages, and uses them there: the
# command, a training as the demo's on one rank and on two, the Python module. It needs root, debootstrap and a mirror of Debian's.
#   scripts/test_packages.sh [FOLDER]      the packages; default: build/packages
# MIRROR: default: that of this machine's apt. The small system is a folder of its own, which goes afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=$(realpath "${1:-build/packages}")
fail() { echo "test_packages.sh: $*" >&2; exit 1; }
[[ $(id -u) -eq 0 ]] || fail "it needs root"
command -v debootstrap >/dev/null || fail "there is no debootstrap; apt-get install debootstrap"
for package in cortado python3-cortado; do
  [[ $(find "$packages" -maxdepth 1 -name "${package}_*.deb" | wc -l) == 1 ]] || fail "there is not one package $package in $packages; scripts/package.sh makes it"
done
if [[ -z ${IN_NAMESPACE:-} ]]; then exec env IN_NAMESPACE=1 unshare --mount --pid --fork "$0" "$packages"; fi  # what is mounted here goes with it
# shellcheck source=/dev/null
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=${MIRROR:-$(apt-cache policy | awk '$2 ~ "/debian/?$" && !found++ {print $2}')}
root=$(mktemp -d)
trap 'umount -l "$root/proc" "$root/dev" "$root/sys" 2>/dev/null; rm -rf --one-file-system "$root"' EXIT
began=$SECONDS
say() { echo "== $((SECONDS - began)) s: $*"; }
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }

say "a minimal $suite from $mirror"
debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$root.log" 2>&1 || { tail "$root.log"; fail "debootstrap fails"; }
rm -f "$root.log"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t sysfs sysfs "$root/sys"
mkdir "$root/packages"
cp "$packages"/cortado_*.deb "$packages"/python3-cortado_*.deb "$root/packages"
inside apt-get update -qq

say "apt-get install ./*.deb"
# What the packages recommend, by name: mpich itself recommends what compiles MPI programs.
inside bash -c 'apt-get install -y -qq --no-install-recommends /packages/*.deb mpich libopenblas0-openmp >/packages/log 2>&1' ||
  { tail "$root/packages/log"; fail "apt-get install fails"; }
inside dpkg -s cortado python3-cortado | grep -c "^Status: install ok installed" | grep -qx 2 || fail "the packages are not installed"
for tool in gcc g++ cc c++ clang cmake ninja make ld as protoc; do
  if inside which $tool >/dev/null; then fail "there is $tool: this is no test of a machine without a compiler"; fi
done
developing=$(inside dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' | sed -nE 's/^ii +(.*-dev)$/\1/p')
[[ -z $developing ]] || fail "the packages bring $developing"
say "$(inside cortado --version); $(inside sh -c 'dpkg-query -W | wc -l') packages in all, none of them -dev, no compiler"

say "a training as the demo's"
mkdir -p "$root/trial/demo"
cp -r examples "$root/trial"
there() {  # COMMAND, in a shell
  inside bash -ec "cd /trial; $1" >"$root/trial/log" 2>&1 || { tail "$root/trial/log"; fail "$1"; }
}
there "cortado data generate demo/train_lmdb --samples 4000 --seed 1"
there "cortado data generate demo/test_lmdb --samples 1000 --seed 2"
there "cortado train --solver examples/shapes/solver.prototxt --set max_iter=200 --set test_iter=10"
there "cortado test --model examples/shapes/train_val.prototxt --weights demo/shapes_iter_200.caffemodel --iterations 10 --json demo/test.json"
few="cortado train --solver examples/shapes/solver.prototxt --set max_iter=5 --set test_iter=1"
there "$few --set snapshot_prefix=demo/two --ranks 2 --strategy data"
there "cortado show --model /usr/share/cortado/models/lenet/train_val.prototxt --input-shape 1x28x28"
accuracy=$(grep -A1 '"accuracy"' "$root/trial/demo/test.json" | sed -nE 's/.*"value": *([0-9.]+).*/\1/p')
awk -v accuracy="$accuracy" 'BEGIN {exit !(accuracy > 0.5)}' || fail "200 iterations give an accuracy of $accuracy"
[[ -e $root/trial/demo/two_iter_5.caffemodel ]] || fail "two ranks trained nothing"
say "accuracy $accuracy on images that it has not seen; two ranks train, too"

for level in "" $(ls "$root/usr/lib/cortado/glibc-hwcaps" 2>/dev/null); do  # where the package has builds for several processors
  there "/lib64/ld-linux-x86-64.so.2 --glibc-hwcaps-mask '$level' /usr/bin/$few --set snapshot_prefix=demo/level"
done
chosen=$(inside env LD_DEBUG=libs cortado --version 2>&1 | sed -nE 's#.*calling init: (.*/libcortado_kernels[^ ]*)#\1#p')
say "all levels train; this processor takes ${chosen:-what is in the program itself}"

inside bash -ec 'cd /trial
python3 - <<PY
import cortado
import cortado.caffe as caffe

solver = caffe.SGDSolver("examples/shapes/solver.prototxt")
solver.net.copy_from("demo/shapes_iter_200.caffemodel")
solver.step(2)
assert solver.iter == 2 and float(solver.net.blobs["loss"].data) < 3
print(cortado.plan(cortado.Network.from_file("/usr/share/cortado/models/lenet/train_val.prototxt", input_shape="1x28x28"),
                   cortado.Machine("layer-wise-p100").first(2)).seconds > 0)
PY' | grep -qx True || fail "import cortado"
say "import cortado, a training and a plan by it"
