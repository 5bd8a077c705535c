#!/usr/bin/env bash
# The command is words and lines: what it can do lies in libraries. And rooms have tests of their own.
#   sizes.sh PROJECT
set -euo pipefail
root=$1
bad=0
lines() { find "$@" -type f | xargs cat | wc -l; }

app=$(lines "$root/src/cortado/app" -name '*.h' -o -name '*.cpp')
if ((app > 2500)); then
  echo "src/cortado/app has $app lines, at most 2500"
  bad=1
fi
for room in app auto compile measure program; do
  sources=$(lines "$root/src/cortado/$room") tests=$(lines "$root/tests/$room")
  if ((2 * tests < sources)); then
    echo "tests/$room has $tests lines, at least half of the $sources of src/cortado/$room"
    bad=1
  fi
done
exit $bad
