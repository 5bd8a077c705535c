#!/usr/bin/env bash
# Installs the Debian packages that Cortado builds with, those that are missing only.
#   scripts/install.sh [PACKAGE...]    (more packages than the usual ones: pybind11-dev python3-dev for the Python module)
set -euo pipefail

packages=(build-essential cmake ninja-build pkg-config
  libdnnl-dev libopenblas-openmp-dev libprotobuf-dev protobuf-compiler libhdf5-dev liblmdb-dev
  libjpeg-dev libpng-dev libhwloc-dev mpich libmpich-dev libfmt-dev nlohmann-json3-dev libcli11-dev "$@")

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null || true)
  [[ $status == ii* ]] || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  command -v sudo >/dev/null || { echo "install.sh: please install as root: apt-get install ${missing[*]}" >&2; exit 2; }
  as_root=(sudo)
fi
echo "installing: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
