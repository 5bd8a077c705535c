#!/usr/bin/env bash
# Makes the Debian packages cortado, libcortado-dev and python3-cortado, for every x86-64 processor since 2009, and says how long it took.
#   scripts/package.sh [FOLDER]        default: build/packages
# LEVELS: as of scripts/portable.sh, which builds what is in them.
set -euo pipefail
folder=$(realpath -m "${1:-$(dirname "$0")/../build/packages}")
cd "$(dirname "$0")/.."
begin=$SECONDS

scripts/install.sh dpkg-dev fakeroot pybind11-dev python3-dev python3-numpy python3-protobuf
scripts/portable.sh --build
built=$SECONDS
read -ra levels <<<"${LEVELS:-v2 v3 v4}"
mkdir -p "$folder"
rm -f "$folder"/*.deb
cpack --config "build/portable-${levels[0]}/CPackConfig.cmake" -B "$folder"
rm -rf "$folder/_CPack_Packages"
for package in cortado libcortado-dev python3-cortado; do
  [[ -n $(find "$folder" -name "${package}_*.deb") ]] || { echo "package.sh: there is no $package in $folder" >&2; exit 1; }
done
if command -v lintian >/dev/null; then
  lintian --fail-on error --tag-display-limit 3 "$folder"/*.deb
fi
echo "built in $((built - begin)) s, packed in $((SECONDS - built)) s:"
ls -l "$folder"/*.deb
