#!/usr/bin/env bash
# What `cmake --install BUILD --prefix P` installs runs from there and finds its machines, wherever it is started; its manual pages and
# completions lie where they are looked for.
#   install.sh CMAKE BUILD
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "install.sh: $*" >&2; exit 1; }
"$1" --install "$2" --prefix "$folder/prefix" >/dev/null
mkdir "$folder/elsewhere"
cd "$folder/elsewhere"
PATH=$folder/prefix/bin:$PATH
share=$folder/prefix/share
[[ $(command -v cortado) == "$folder/prefix/bin/cortado" ]]
cortado --version
models=$share/cortado/models
[[ -e $models/lenet/solver.prototxt && ! -e $models/generate.py ]]
cortado plan --model "$models/lenet/train_val.prototxt" --input-shape 1x28x28 --machine layer-wise-p100 --devices 2 |
  grep -q conv1

cortado --help | sed -nE '/^Subcommands:/,$s/^  ([a-z_]+)[ ,].*/\1/p' >commands
[[ $(wc -l <commands) -ge 13 ]] || fail "commands: $(cat commands)"
while read -r command; do
  [[ $(zcat -f "$share/man/man1/cortado-$command.1"*) == "$(cortado help --man "$command")" ]] || fail "no page of $command"
done <commands
if command -v man >/dev/null; then
  LC_ALL=C MANPATH=$share/man man cortado-train | grep -q -e --tensorboard-histograms || fail "man does not find cortado-train"
fi
cmp <(cortado help --completion bash) "$share/bash-completion/completions/cortado"
cmp <(cortado help --completion zsh) "$share/zsh/vendor-completions/_cortado"
cmp <(cortado help --completion fish) "$share/fish/vendor_completions.d/cortado.fish"
