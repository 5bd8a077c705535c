#!/usr/bin/env bash
# Tests on one GPU, which end within nine minutes after the build: every kernel, nets whose ranks
# are on the GPU and on the CPU, the command on two ranks of that GPU, with solvers that need norms, measured plans,
# predictions and a trace, and the losses of the zoo as on the processor; the kernels once more under compute-sanitizer
# where it is installed. Builds with CUDA first; with another device, or a build of scripts/bundle_gpu.sh, the build that
# is there is taken.
#   scripts/test_gpu.sh [DEVICE]      e.g. gpu:1; emulated: a rehearsal that needs no GPU. Default: gpu:0
#   BUILD=build/dev                   the folder of the build; default: build/gpu
set -euo pipefail
cd "$(dirname "$0")/.."
device=${1:-gpu:0}
build=$(realpath -m "${BUILD:-build/gpu}")
began=$SECONDS
say() { echo "== $((SECONDS - began)) s: $*"; }

if [[ -e $build/env.sh ]]; then
  . "$build/env.sh"
  "$build/tests/kernels/gpu_libraries_test" --gtest_brief=1
elif [[ $device == gpu* ]]; then
  say "building"
  cmake -S . -B "$build" -G Ninja -DCORTADO_CUDA=ON -DCORTADO_PYTHON=OFF -DCMAKE_BUILD_TYPE=Release >/dev/null
  cmake --build "$build" --target cortado kernels_test exec_test ranks_test
  if ninja -C "$build" -t query gpu_libraries_test >/dev/null 2>&1; then
    cmake --build "$build" --target gpu_libraries_test
    "$build/tests/kernels/gpu_libraries_test" --gtest_brief=1
  fi
fi
"$build/cortado" device_query
export CORTADO_TEST_DEVICE=$device CORTADO=$build/cortado CORTADO_CACHE=$build/cache
failed=()
try() {  # SECONDS WHAT COMMAND...: at most so long, and not beyond nine minutes in all; what fails is told at the end
  local left=$((tested + 520 - SECONDS))
  say "$2"
  if ((left <= 0)); then
    failed+=("$2: not run, the time is over")
  elif ! timeout "$(($1 < left ? $1 : left))" "${@:3}"; then
    failed+=("$2")
  fi
}
tested=$SECONDS
try 120 "kernels on $device" "$build/tests/kernels/kernels_test" --gtest_filter='Gpu*' --gtest_brief=1
try 120 "nets whose ranks are on $device and on the CPU; graphs; boxes of messages" env "CORTADO_CASES=${CORTADO_CASES:-8}" \
  "$build/tests/exec/exec_test" --gtest_filter='CutTraining.RanksOfGpuKernels*:StepGraphs.*:StepClock.*:Boxes.*' --gtest_brief=1
try 240 "the command on ranks of $device" "$build/tests/mpi/ranks_test" --gtest_filter='Devices.*' --gtest_brief=1
nets=(); [[ $device == gpu* ]] || nets=(--nets lenet)
try 180 "losses of the zoo" tests/end_to_end/device_losses.py --cortado "$build/cortado" --device "$device" "${nets[@]}" --minutes 2.5
if [[ $device == gpu* ]]; then
  try 90 "a large net that $device and the CPU share, measured and planned" "$build/cortado" time --iterations 2 --batch 256 \
    --model models/caffenet/train_val.prototxt --input-shape 3x227x227 --devices "$device,cpu" --strategy auto
fi
if [[ $device == gpu* ]] && command -v compute-sanitizer >/dev/null; then
  try 150 "kernels under compute-sanitizer" compute-sanitizer --error-exitcode 1 "$build/tests/kernels/kernels_test" \
    --gtest_filter='Gpu*' --gtest_brief=1
else
  say "no compute-sanitizer: not run"
fi
say "done on $device"
if ((${#failed[@]})); then
  printf 'failed: %s\n' "${failed[@]}"
  exit 1
fi
