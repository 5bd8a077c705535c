#!/usr/bin/env bash
# Runs the tests of the public face and examples/embed under AddressSanitizer (with leaks) and UndefinedBehaviorSanitizer.
#   scripts/sanitize.sh quick                  examples/embed alone, with the library of build/dev as it is: half a minute
#   scripts/sanitize.sh [CTEST-ARGUMENT...]    other tests, once they are built in build/asan: scripts/sanitize.sh -R exec
# It builds all of the library so, and says how long that took.
set -euo pipefail
cd "$(dirname "$0")/.."

export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 ASAN_OPTIONS=detect_leaks=1
if [[ ${1:-} == quick ]]; then  # finds leaks, and what allocation and copies show
  exec tests/embed/embed.sh cmake "$PWD/build/dev" "$PWD/examples/embed" -DCMAKE_CXX_FLAGS="-fsanitize=address -g1"
fi
scripts/install.sh libgtest-dev libgmock-dev
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake --preset asan -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" "${launcher[@]}" >/dev/null
cmake --build --preset asan --target cortado cortado_archive api_test
built=$SECONDS

[[ $# -gt 0 ]] || set -- -R '^(api_test|embed)$'
ctest --test-dir build/asan --output-on-failure --no-tests=error "$@"
echo "built in $built s, tested in $((SECONDS - built)) s"
