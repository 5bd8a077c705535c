#!/usr/bin/env bash
# What docs/explanation/tour.md names is where it says: `function` (`room/file`).
set -euo pipefail
root=$1
bad=0 found=0
while IFS=$'\t' read -r name file; do
  found=$((found + 1))
  if [[ ! -f $root/src/cortado/$file ]]; then
    echo "docs/explanation/tour.md: there is no src/cortado/$file (for $name)"
    bad=1
  elif ! grep -qE "\b${name}\b" "$root/src/cortado/$file"; then
    echo "docs/explanation/tour.md: $name is not in src/cortado/$file"
    bad=1
  fi
done < <(tr -s ' \n' ' ' <"$root/docs/explanation/tour.md" | grep -oE '`[A-Za-z_:]+`( in|,)? ?\(?`[a-z_/]+\.(h|cpp)`' |
  sed -E 's/^`([A-Za-z_:]+)`[^`]*`([^`]+)`$/\1\t\2/')
[[ $found -ge 50 ]] || { echo "docs/explanation/tour.md: only $found places are named"; bad=1; }
exit $bad
