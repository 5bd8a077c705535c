#!/usr/bin/env bash
# Every C++ source is as clang-format would write it.
set -euo pipefail
cd "$1"
find src tests bench examples python -name '*.h' -o -name '*.cpp' | sort | xargs clang-format --dry-run -Werror
