#!/usr/bin/env bash
# What `cmake --install BUILD --prefix P` installs runs from there and finds its machines, wherever it is started.
#   install.sh CMAKE BUILD
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" --install "$2" --prefix "$folder/prefix" >/dev/null
mkdir "$folder/elsewhere"
cd "$folder/elsewhere"
PATH=$folder/prefix/bin:$PATH
[[ $(command -v cortado) == "$folder/prefix/bin/cortado" ]]
cortado --version
models=$folder/prefix/share/cortado/models
[[ -e $models/lenet/solver.prototxt && ! -e $models/generate.py ]]
cortado plan --model "$models/lenet/train_val.prototxt" --input-shape 1x28x28 --machine layer-wise-p100 --devices 2 |
  grep -q conv1
