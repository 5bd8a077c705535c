#!/usr/bin/env bash
# From nothing to a trained network: installs what is missing, builds, draws a labelled image data set, trains a
# small convolutional net on it from Caffe's files, tests it, and does the same with a linear model to compare.
# Everything it makes lies in demo/.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install.sh
cmake --preset release >/dev/null
cmake --build --preset release --target cortado
cortado=build/release/cortado

step() { printf '\n== %s\n' "$*"; }

rm -rf demo
mkdir -p demo
step "Draw 20,000 images to train on and 4,000 to test with (demo/*_lmdb)"
$cortado data generate demo/train_lmdb --samples 20000 --seed 1
$cortado data generate demo/test_lmdb --samples 4000 --seed 2

step "A linear model (examples/shapes/linear_solver.prototxt)"
$cortado train --solver examples/shapes/linear_solver.prototxt --log demo/linear.jsonl

step "A small convolutional net (examples/shapes/solver.prototxt)"
$cortado train --solver examples/shapes/solver.prototxt --log demo/shapes.jsonl --plot demo/loss.svg

step "Test both on the 4,000 images that neither has seen"
test_net() {
  $cortado test --model "$1" --weights "$2" --iterations 40 --json "$3" >/dev/null
  grep -A1 '"accuracy"' "$3" | sed -nE 's/.*"value": *([0-9.]+).*/\1/p'
}
linear=$(test_net examples/shapes/linear_train_val.prototxt demo/linear_iter_1500.caffemodel demo/linear_test.json)
net=$(test_net examples/shapes/train_val.prototxt demo/shapes_iter_2000.caffemodel demo/shapes_test.json)
speed=$(sed -nE 's/.*"images_per_second": *([0-9]+).*/\1/p' demo/shapes.jsonl | tail -1)

printf '\n'
printf '  linear model        accuracy %5.1f %%\n' "$(awk "BEGIN{print 100*$linear}")"
printf '  convolutional net   accuracy %5.1f %%   %s images/s in training\n' "$(awk "BEGIN{print 100*$net}")" "$speed"
printf '  snapshot    demo/shapes_iter_2000.caffemodel (and .solverstate to go on from)\n'
printf '  log         demo/shapes.jsonl\n'
printf '  loss curve  demo/loss.svg\n'
