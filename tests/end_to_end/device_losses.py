#!/usr/bin/env python3
"""The zoo's nets train on a device as on the processor: the losses of 10 iterations on small random images, by
`cortado verify`, whose uncut net is the processor's.

    tests/end_to_end/device_losses.py --cortado build/gpu/cortado --device gpu:0
    tests/end_to_end/device_losses.py --cortado build/dev/cortado --device emulated --nets lenet u-net    # a rehearsal

Each loss must agree within --tolerance, relative. Rates are small, and batches of nets with batch normalization not too
small, since such a training multiplies rounding errors (verify_zoo.py). Ends before --minutes are over: what did not fit
is named, and counts as a failure.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
# Shape of a sample, batch and rate of nets that want others than these.
USUAL = ("3x64x64", 8, 1e-7)
OTHERS = {"lenet": ("1x28x28", 16, 1e-3), "cifar10_quick": ("3x32x32", 16, 1e-3), "cifar10_full": ("3x32x32", 16, 1e-3),
          "alexnet": ("3x67x67", 4, 1e-4), "caffenet": ("3x67x67", 4, 1e-4), "inception-v3": ("3x107x107", 16, 1e-7),
          "inception-v3-aux": ("3x267x267", 4, 1e-7), "u-net": ("1x32x32,32x32", 4, 1e-3),
          "u-net-3d": ("1x16x16x16,16x16x16", 4, 1e-3), "resnet-20": ("3x32x32", 16, 1e-5),
          "resnet-110": ("3x32x32", 16, 1e-7), "googlenet": ("3x224x224", 2, 1e-5)}


def agree(options, net, end):
    shape, batch, rate = OTHERS.get(net, USUAL)
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        command = [options.cortado, "verify", "--model", MODELS / net / "train_val.prototxt", "--ranks", 1, "--strategy", "single",
                   "--input-shape", shape, "--batch", batch, "--iterations", options.iterations, "--rate", rate,
                   "--device", options.device, "--json", report]
        left = max(1, end - time.monotonic())
        try:
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=left)
        except subprocess.TimeoutExpired:
            print(f"{net}: not finished, the time is over", flush=True)
            return False
        if not report.exists():
            print(f"{net}: {done.stderr.strip() or 'failed'}", flush=True)
            return False
        rows = json.loads(report.read_text())["losses"]
    worst = max(abs(row["difference"]) / abs(row["uncut"]) for row in rows)
    same = worst <= options.tolerance
    print(f"{net}: loss {rows[0]['uncut']:.6g} ... {rows[-1]['uncut']:.6g} on the processor, {worst:.1e} apart on "
          f"{options.device}{'' if same else ': too much'}", flush=True)
    return same


def main():
    nets = sorted(path.parent.name for path in MODELS.glob("*/train_val.prototxt"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cortado", required=True, help="the command")
    parser.add_argument("--device", default="gpu:0")
    parser.add_argument("--nets", nargs="+", choices=nets, default=nets)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("--minutes", type=float, default=4, help="for all of it")
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    same = [agree(options, net, end) for net in options.nets]
    print(f"{sum(same)} of {len(same)} nets train on {options.device} as on the processor")
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
