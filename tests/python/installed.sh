#!/usr/bin/env bash
# The package that `cmake --install BUILD --prefix P` installs trains where neither sources nor build are.
#   installed.sh CMAKE BUILD PYTHON
set -euo pipefail
cmake=$1 build=$2 python=$3
"$python" -c "import numpy, google.protobuf" 2>/dev/null || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$cmake" --install "$build" --prefix "$folder/prefix" >/dev/null
package=$(dirname "$(dirname "$(find "$folder/prefix" -path '*/cortado/__init__.py')")")
if find "$package" -type l | grep -q .; then echo "the package has links" >&2; exit 1; fi
cd "$folder"
env -i PATH="$PATH" HOME="$folder" LANG=C.UTF-8 PYTHONPATH="$package" "$python" -B - <<'END'
import cortado
import cortado.caffe as caffe

n = caffe.NetSpec()
n.data, n.label = caffe.layers.DummyData(ntop=2, shape=[dict(dim=[4, 3]), dict(dim=4)])
n.ip = caffe.layers.InnerProduct(n.data, num_output=2)
n.loss = caffe.layers.SoftmaxWithLoss(n.ip, n.label)
trainer = cortado.Trainer(cortado.Solver(cortado.Network.from_text(str(n.to_proto())), base_lr=1))
trainer.step(2)
assert trainer.iteration == 2 and trainer.loss < 0.4, trainer.loss
END
