#!/usr/bin/env bash
# Builds the fuzzers of tests/fuzz and runs each for SECONDS (60), two at a time. What one finds ends it with the report and an input that
# shows it (build/fuzz/found); the others go on. Each goes on from what it has found before (build/fuzz/corpus).
#   scripts/fuzz.sh [SECONDS [TARGET...]]     targets: caffemodel command datum leveldb lmdb
#                                             machine onnx prototxt python safetensors strategy volume windows wire
#   JOBS=4                                    so many at a time
#   scripts/fuzz.sh build                     builds alone
# libFuzzer's are compiled by clang with AddressSanitizer and UndefinedBehaviorSanitizer, with the code that they test; `python`
# makes random calls of the Python package, which g++ builds with both sanitizers, by Debian's Python, whose packages it needs;
# `command` gives the command of that build random options.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
[[ $seconds =~ ^[0-9]+$|^build$ ]] || { echo "usage: scripts/fuzz.sh [SECONDS [TARGET...]]" >&2; exit 2; }
targets=("${@:2}")
[[ ${#targets[@]} -gt 0 ]] || targets=(onnx safetensors python command leveldb lmdb windows volume prototxt caffemodel datum machine strategy wire)
scripts/install.sh clang libomp-dev pybind11-dev python3-dev python3-numpy python3-protobuf
began=$SECONDS
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
programs=()
for target in "${targets[@]}"; do [[ $target == python || $target == command ]] || programs+=("fuzz_$target"); done
if [[ ${#programs[@]} -gt 0 ]]; then
  cmake -S . -B build/fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang "${launcher[@]}" -DCORTADO_FUZZERS=ON -DCORTADO_TESTS=OFF \
    -DCORTADO_PYTHON=OFF -DCORTADO_MPI=OFF >/dev/null
  cmake --build build/fuzz --target "${programs[@]}"
fi
sanitized=()
[[ " ${targets[*]} " != *" python "* ]] || sanitized+=(cortado_python)
[[ " ${targets[*]} " != *" command "* ]] || sanitized+=(cortado)
if [[ ${#sanitized[@]} -gt 0 ]]; then
  cmake -S . -B build/fuzz-python -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" "${launcher[@]}" \
    -DCORTADO_SANITIZE=address,undefined -DCORTADO_PYTHON=ON -DCORTADO_TESTS=OFF >/dev/null
  cmake --build build/fuzz-python --target "${sanitized[@]}"
fi
echo "built in $((SECONDS - began)) s"
[[ $seconds == build ]] && exit 0

out=$PWD/build/fuzz
mkdir -p "$out/found" "$out/log"
/usr/bin/python3 -B tests/fuzz/seeds.py "$out/seeds"
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 ASAN_OPTIONS=detect_leaks=0:hard_rss_limit_mb=8000:allocator_may_return_null=1
run() {  # TARGET
  local log=$out/log/$1 begin=$SECONDS
  if [[ $1 == python ]]; then
    env LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" PYTHONPATH="$PWD/build/fuzz-python/python" \
      /usr/bin/python3 -B tests/fuzz/fuzz_python.py "$seconds" "$RANDOM" >"$log" 2>&1 || { tail -n 60 "$log"; echo "FAILED: python"; return 1; }
    tail -n 1 "$log"
    return
  fi
  if [[ $1 == command ]]; then
    /usr/bin/python3 -B tests/fuzz/fuzz_command.py build/fuzz-python/cortado "$seconds" "$RANDOM" >"$log" 2>&1 || { tail -n 60 "$log"; echo "FAILED: command"; return 1; }
    tail -n 1 "$log"
    return
  fi
  mkdir -p "$out/corpus/$1" "$out/seeds/$1"
  ASAN_OPTIONS=detect_leaks=1 "$out/tests/fuzz/fuzz_$1" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=3000 -artifact_prefix="$out/found/$1-" -print_final_stats=1 \
    "$out/corpus/$1" "$out/seeds/$1" >"$log" 2>&1 || { grep -vE '^#[0-9]+[[:space:]]' "$log" | tail -n 60; echo "FAILED: $1 ($log)"; return 1; }
  echo "fuzz_$1: $(sed -nE 's/^stat::number_of_executed_units: *//p' "$log") inputs, $(find "$out/corpus/$1" -type f | wc -l) kept; no fault in $((SECONDS - begin)) s"
}
export -f run
export out seconds
printf '%s\0' "${targets[@]}" | xargs -0 -P "${JOBS:-2}" -I{} bash -c 'run {}' || { echo "there are faults"; exit 1; }
