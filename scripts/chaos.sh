#!/usr/bin/env bash
# Trains N times (20) on ranks while faults happen, 5 to 10 each time, and compares every end with a calm training
# (tests/chaos/faults.py has the faults). A run took 5 to 86 seconds on two busy cores; three ranks are the slow ones.
# `scripts/chaos.sh 200 SEED` begins with that seed. It meets more faults as root, with the packages faketime and nftables.
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 tests/chaos/chaos.py build/dev/cortado --runs "${1:-20}" --faults 10 ${2:+--seed "$2"}
