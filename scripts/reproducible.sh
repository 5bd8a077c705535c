#!/usr/bin/env bash
# Trains the demo's net, cifar10_full, resnet-20 and u-net with --reproducible on 1, 2, 3, 4 and 8 ranks of 1 and 2
# threads under data, model, owt and mixed strategies, and compares the SHA-256 of the weights (tests/mpi/reproducible.py
# has the options: `scripts/reproducible.sh --iterations 20 --nets u-net`). OTHER_CORTADO names commands of other builds,
# such as one with OpenMPI: OTHER_CORTADO="build/openmpi/cortado" scripts/reproducible.sh
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck disable=SC2086
exec python3 -B tests/mpi/reproducible.py ${CORTADO:-build/dev/cortado} ${OTHER_CORTADO:-} "$@"
