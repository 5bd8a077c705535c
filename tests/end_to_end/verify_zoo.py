"""The zoo's nets under every kind of strategy train as uncut: runs `cortado verify` for each.

Without --all a few small cases, which take minutes; with it every net on 2 and 4 ranks under data, model, owt,
spatial and a random strategy, 10 iterations each. Images are reduced. Rates are small where batch normalization
sees few values: such a training multiplies rounding errors about tenfold an iteration at usual rates, uncut too
(another convolution kernel shows the same). Exit code 77, skipped, where Cortado is built without MPI.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Net: shape of a sample, batch, learning rate.
NETS = {
    "lenet": ("1x28x28", 16, 1e-3),
    "alexnet": ("3x67x67", 4, 1e-4),
    "vgg-a": ("3x32x32", 4, 1e-5),
    "inception-v3": ("3x107x107", 16, 1e-7),
    "resnet-50": ("3x64x64", 8, 1e-7),
    "densenet-121": ("3x64x64", 8, 1e-7),
    "u-net-3d": ("1x16x16x16,16x16x16", 4, 1e-3),
}
STRATEGIES = ("data", "model", "owt", "spatial", "random:1")

# Stationary-x, -y and -w of channel and filter parallelism, in the three convolutions of every block.
CHANNEL_AND_FILTER = {
    "format": "cortado-strategy",
    "version": 1,
    "ranks": 4,
    "layers": {
        "res*_conv1": {"r": 2},
        "res*_conv2": {"c": 2},
        "res*_conv3": {"c": 2, "r": 2},
        "res*_shortcut": {"c": 2, "r": 2},
        "*": {"n": 4},
    },
}

FEW = [("lenet", 4, "owt"), ("u-net-3d", 2, "spatial"),
       ("densenet-121", 2, "random:1"), ("resnet-50", 4, "channel-and-filter")]


def cases(everything):
    if not everything:
        return FEW
    every = [(net, ranks, strategy) for net in NETS for ranks in (2, 4) for strategy in STRATEGIES]
    return every + [("resnet-50", 4, "channel-and-filter")]


def verify(options, net, ranks, strategy, folder):
    shape, batch, rate = NETS[net]
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    if strategy == "channel-and-filter":
        named = folder / "channel-and-filter.json"
        named.write_text(json.dumps(CHANNEL_AND_FILTER))
    else:
        named = strategy
    command = [options.cortado, "verify", "--model", ROOT / "models" / net / "train_val.prototxt", "--ranks",
               ranks, "--strategy", named, "--input-shape", shape, "--batch", batch, "--iterations",
               options.iterations, "--rate", rate, "--threads", 1, "--json", report]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if "built without MPI" in done.stderr:
        sys.exit(77)
    line = f"{net:13} {ranks:5}  {strategy:19}"
    if report.exists():
        found = json.loads(report.read_text())
        first, last = found["losses"][0], found["losses"][-1]
        line += f"{first['uncut']:9.5g} {last['uncut']:9.5g}  {first['difference']:9.1e} {last['difference']:9.1e}"
        line += "".join(f" {found['worst_' + kind]:9.1e}" for kind in
                        ("activations", "gradients", "weight_gradients", "weights"))
    print(line, "" if done.returncode == 0 else f"FAILED ({done.returncode})\n{done.stderr}", flush=True)
    return done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cortado", required=True, help="the command")
    parser.add_argument("--all", action="store_true", help="every net, number of ranks and strategy")
    parser.add_argument("--net", help="only this net")
    parser.add_argument("--ranks", type=int, help="only on that many ranks")
    parser.add_argument("--strategy", help="only under this strategy")
    parser.add_argument("--iterations", type=int)
    options = parser.parse_args()
    options.iterations = options.iterations or (10 if options.all else 2)
    print("net           ranks  strategy             loss 1    loss n     diff 1    diff n  activ'ns     "
          "grads  w. grads   weights", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        same = [verify(options, *case, pathlib.Path(folder)) for case in cases(options.all)
                if options.net in (None, case[0]) and options.ranks in (None, case[1])
                and options.strategy in (None, case[2])]
    print(f"{sum(same)} of {len(same)} the same as uncut")
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
