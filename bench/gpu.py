#!/usr/bin/env python3
"""Images a second of nets on devices, and shares of a layer between a CPU and a GPU (Caffe con Troll, figures 4a and 9).

    bench/gpu.py --cortado build/gpu/cortado
    bench/gpu.py --cortado build/dev/cortado --device emulated --nets lenet --iterations 2 --shares 0.5    # a rehearsal

Takes `cortado time` of each net on the device. Then a net by sample on two ranks, the device and the CPU, at each share
of the device. Ends before --minutes are over: what did not fit is named.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

NETS = {  # batch, input shape
    "lenet": (64, "1x28x28"), "caffenet": (256, "3x227x227"), "alexnet": (256, "3x227x227"),
    "vgg-16": (64, "3x224x224"), "resnet-50": (256, "3x224x224")}
MODELS = pathlib.Path(__file__).resolve().parent.parent / "models"


class Clock:
    """The time that is left for all of it."""

    def __init__(self, minutes):
        self.end = time.monotonic() + 60 * minutes

    def left(self):
        return self.end - time.monotonic()


def step_seconds(arguments, net, batch, clock, *more):
    """Seconds of a training iteration; None, with a line, where it failed or the time was over."""
    if clock.left() < 5:
        print(f"{net}: not run, the time is over")
        return None
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "time.json")
        command = [arguments.cortado, "time", "--model", MODELS / net / "train_val.prototxt", "--batch", batch,
                   "--input-shape", NETS[net][1], "--iterations", arguments.iterations, "--json", report, *more]
        try:
            run = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=clock.left())
        except subprocess.TimeoutExpired:
            print(f"{net}: not finished, the time is over")
            return None
        if run.returncode:
            print(f"{net}: {run.stderr.strip()}")
            return None
        return json.loads(report.read_text())["step_seconds"]


def print_rates(arguments, clock):
    for net in arguments.nets:
        batch = arguments.batch or NETS[net][0]
        steps = [step_seconds(arguments, net, batch, clock, "--device", arguments.device) for _ in range(arguments.rounds)]
        steps = [step for step in steps if step]
        if steps:
            step = statistics.median(steps)
            print(f"{net}, batch {batch}, on {arguments.device}: {batch / step:.1f} images/s ({1000 * step:.1f} ms)")


def by_sample(folder, share):
    path = pathlib.Path(folder, f"{share}.json")
    path.write_text(json.dumps({"format": "cortado-strategy", "version": 1, "ranks": 2,
                                "layers": {"*": {"n": 2, "weights": [share, 1 - share]}}}))
    return path


def print_shares(arguments, clock):
    """The device and the CPU share each layer by sample."""
    net = arguments.shared
    batch = arguments.batch or NETS[net][0]
    with tempfile.TemporaryDirectory() as folder:
        for share in arguments.shares:
            step = step_seconds(arguments, net, batch, clock, "--devices", f"{arguments.device},cpu",
                                "--strategy", by_sample(folder, share))
            if step:
                print(f"{net}, batch {batch}, share {share} on {arguments.device}, the rest on the CPU: "
                      f"{batch / step:.1f} images/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cortado", default="build/gpu/cortado", help="the program")
    parser.add_argument("--device", default="gpu:0", help="gpu:0, ... or emulated")
    parser.add_argument("--nets", nargs="+", choices=NETS, default=["alexnet", "vgg-16", "resnet-50"])
    parser.add_argument("--shared", choices=NETS, default="caffenet", help="the net that CPU and device share")
    parser.add_argument("--shares", type=float, nargs="*", default=[0.8, 0.85, 0.9, 0.95], help="of the device")
    parser.add_argument("--batch", type=int, help="in place of each net's")
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=2, help="runs of each net")
    parser.add_argument("--minutes", type=float, default=8.5, help="for all of it")
    arguments = parser.parse_args()
    if not pathlib.Path(arguments.cortado).exists():
        sys.exit(f"{arguments.cortado}: there is no such program")
    clock = Clock(arguments.minutes)
    print(subprocess.run([arguments.cortado, "device_query"], capture_output=True, text=True).stdout, end="")
    print_rates(arguments, clock)
    print_shares(arguments, clock)


if __name__ == "__main__":
    main()
