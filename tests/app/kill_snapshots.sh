#!/usr/bin/env bash
# Kills a training at a random moment, COUNT times, while it writes snapshots in the background, one after the other.
# Each round goes on from the newest snapshot that the round before left: it must be sound.
#   tests/app/kill_snapshots.sh COUNT
# 8 rounds took 4 seconds. Environment: CORTADO the command (build/dev/cortado); SEED of the random numbers.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cortado=${CORTADO:-$here/../../build/dev/cortado}
count=${1:-5}
RANDOM=${SEED:-$RANDOM}
echo "SEED=$RANDOM"
RANDOM=${SEED:-$RANDOM}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
# A million weights: a snapshot takes as long as some iterations.
cat >net.prototxt <<'END'
name: "wide"
layer { name: "data" type: "DummyData" top: "data" top: "target"
  dummy_data_param { shape { dim: 2 dim: 1000 } shape { dim: 2 dim: 1000 }
    data_filler { type: "gaussian" } data_filler { type: "uniform" } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 1000 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "target" top: "loss" }
END
cat >solver.prototxt <<'END'
net: "net.prototxt" base_lr: 0.0001 lr_policy: "fixed" momentum: 0.9
max_iter: 100000000 snapshot: 2 snapshot_prefix: "kept/s" display: 0
END
mkdir kept

newest() { ls kept 2>/dev/null | sed -nE 's/^s_iter_([0-9]+)\.(safetensors|solverstate)$/\1 &/p' | sort -n | tail -1 | cut -d' ' -f2; }

bad=0 within=0 format=cortado
for ((round = 1; round <= count; ++round)); do
  before=$(newest)
  # Each format for some rounds, as what it leaves is read in the next.
  ((round % 10 == 6)) && format=caffe
  ((round % 10 == 1)) && format=cortado
  "$cortado" train --solver solver.prototxt --threads 1 --snapshot-format $format ${before:+--snapshot "kept/$before"} \
    >out.txt 2>&1 &
  job=$!
  for ((i = 0; i < 600; ++i)); do
    grep -q '\] Solving ' out.txt && break
    kill -0 $job 2>/dev/null || break
    sleep 0.02
  done
  sleep "0.$((100 + RANDOM % 400))"
  kill -9 $job 2>/dev/null || { echo "round $round: the training ended by itself"; bad=$((bad + 1)); }
  wait $job 2>/dev/null
  if grep -qE 'warning|error' out.txt; then
    echo "round $round: went on from ${before:-nothing}:"
    sed 's/^/  | /' out.txt
    bad=$((bad + 1))
  fi
  [[ -z $before || -e kept/$before ]] || { echo "round $round: $before is gone"; bad=$((bad + 1)); }
  compgen -G 'kept/*.tmp' >/dev/null && within=$((within + 1))
  rm -f kept/*.tmp
  last=$(newest)
  find kept -name 's_iter_*' ! -name "${last%.*}.*" -delete
done
echo "$count kills, $within of them within the writing of a file, $bad faults"
exit $((bad > 0))
