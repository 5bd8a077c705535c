#!/usr/bin/env bash
# Which room may include which (docs/explanation/design.md, "Rooms"): fails on the first include that is not allowed.
set -euo pipefail
root=$1

declare -A uses=(
  [base]=""
  [device]="base"
  [proto]=""
  [layers]="base"
  [net]="base proto layers"
  [onnx]="base proto layers net"
  [machine]="base"
  [parallel]="base layers net"
  [cost]="base layers net parallel machine"
  [plan]="base layers net parallel machine cost"
  [program]="base layers net parallel"
  [kernels]="base layers"
  [compile]="base layers net parallel program kernels"
  [sim]="base layers net parallel program compile machine cost"
  [tune]="base layers net machine parallel cost program sim"
  [comm]="base device"
  [job]="base comm"
  [terminal]="base report train"
  [cli]="base"
  [exec]="base device layers net parallel program kernels comm compile"
  [measure]="base device layers net program kernels compile comm exec machine cost sim"
  [data]="base proto layers"
  [report]="base layers net parallel program machine cost plan sim"
  [train]="base device proto layers net parallel program kernels comm compile exec data report machine"
  [apply]="base proto layers net compile exec data train"
  [auto]="base device net parallel machine kernels comm compile exec measure plan sim tune report train"
  [api]="base net parallel program comm compile exec data train report machine cost plan sim measure auto layers kernels onnx"
  [app]="base device proto layers net onnx parallel program kernels comm compile exec data train apply report job machine cost plan sim tune measure auto api terminal cli"
)

bad=0
for folder in "$root"/*/; do
  room=$(basename "$folder")
  if [[ -z ${uses[$room]+known} ]]; then
    echo "room '$room' is not in the table of allowed includes"
    bad=1
    continue
  fi
  while IFS= read -r line; do
    target=${line#*'#include "cortado/'}
    target=${target%%/*}
    [[ $target == "$room" || " ${uses[$room]} " == *" $target "* ]] && continue
    echo "${line%%:#*}: room '$room' must not include '$target'"
    bad=1
  done < <(grep -rnE --include='*.h' --include='*.cpp' '#include "cortado/[a-z]+/' "$folder" || true)
done
# The implementations of kernels are chosen by kernels/select.h: no other room names one.
if grep -rnE --include='*.h' --include='*.cpp' '#include "cortado/kernels/(native|onednn|reference|winograd|cudnn|cublaslt)/' "$root" |
  grep -vE '^[^:]*/cortado/kernels/'; then
  echo "only the room 'kernels' may include its implementations"
  bad=1
fi
exit $bad
