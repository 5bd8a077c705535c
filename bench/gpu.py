#!/usr/bin/env python3
"""Images a second of nets on devices against PyTorch, and shares of a layer between a CPU and a GPU (Caffe con Troll,
figures 4a and 9).

    bench/gpu.py --cortado build/gpu/cortado
    bench/gpu.py --cortado build/dev/cortado --device emulated --nets lenet --iterations 2 --batch 4 --shares 0.5    # a rehearsal

Takes `cortado time` of each net on the device and PyTorch's contenders, in turns (A B A B): both in f32, TF32
(Cortado: --fast-math) and bf16 (PyTorch: autocast), PyTorch eager and compiled, channels last. PyTorch's run on the GPU, or in a rehearsal on the processor; where PyTorch, or a
contender, is missing a line says so. Then a net by sample on two ranks, the device and the CPU, at each share
of the device and at the one that --strategy auto chooses. Ends before --minutes are over: what did not fit is named.
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
    "lenet": (64, "1x28x28"), "caffenet": (256, "3x227x227"), "alexnet": (256, "3x224x224"),
    "vgg-16": (64, "3x224x224"), "resnet-50": (256, "3x224x224"), "inception-v3": (128, "3x299x299"),
    "u-net-3d": (2, "1x64x64x64,64x64x64")}
PRECISIONS = {  # words of Cortado and of torch_step.py
    "f32": ((), ()), "TF32": (("--fast-math",), ("--tf32",)), "bf16": (("--precision", "bf16"), ("--precision", "bf16"))}
HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE.parent / "models"


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


def torch_seconds(arguments, net, batch, clock, words):
    """The same of PyTorch, by torch_step.py."""
    if clock.left() < 5:
        print(f"{net}: not run, the time is over")
        return None
    device = "cuda" if arguments.device.startswith("gpu") else "cpu"
    command = [sys.executable, HERE / "torch_step.py", "--model", net, "--batch", batch, "--iterations",
               arguments.iterations, "--warm-up", 3 if device == "cuda" else 1, "--channels-last", "--device", device, *words]
    try:
        run = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=clock.left())
    except subprocess.TimeoutExpired:
        print(f"{net}, PyTorch {' '.join(words)}: not finished, the time is over")
        return None
    if run.returncode:
        print(f"{net}, PyTorch {' '.join(words)}: {run.stderr.strip().splitlines()[-1:]}")
        return None
    return json.loads(run.stdout)["step_seconds"]


def contenders(arguments, net, batch, clock):
    """Pairs of a name and a function that takes its seconds; Cortado first."""
    result = []
    for precision in arguments.precisions:
        ours, theirs = PRECISIONS[precision]
        result.append((f"Cortado, {precision}", lambda words=ours: step_seconds(
            arguments, net, batch, clock, "--device", arguments.device, *words)))
        for compiled in ((), ("--compile",)) if arguments.torch else ():
            name = f"PyTorch {'compiled' if compiled else 'eager'}, channels_last, {precision}"
            result.append((name, lambda words=(*theirs, *compiled): torch_seconds(arguments, net, batch, clock, words)))
    return result


def print_rates(arguments, clock):
    for net in arguments.nets:
        batch = arguments.batch or NETS[net][0]
        alive = contenders(arguments, net, batch, clock)
        steps = {name: [] for name, _ in alive}
        for _ in range(arguments.rounds):
            for name, seconds in alive[:]:
                step = seconds()
                if step:
                    steps[name].append(step)
                else:
                    alive.remove((name, seconds))  # it would fail again
        for name, taken in steps.items():
            if taken:
                step = statistics.median(taken)
                print(f"{net}, batch {batch}, {name}, on {arguments.device}: {batch / step:.1f} images/s "
                      f"({1000 * step:.1f} ms, {len(taken)} runs)")


def print_shares(arguments, clock):
    """The device and the CPU share each layer by sample."""
    net = arguments.shared
    batch = arguments.batch or NETS[net][0]
    with tempfile.TemporaryDirectory() as folder:
        strategies = {"what auto chooses": "auto"}
        for share in arguments.shares:
            path = strategies[f"share {share} on {arguments.device}, the rest on the CPU"] = pathlib.Path(folder, f"{share}.json")
            path.write_text(json.dumps({"format": "cortado-strategy", "version": 1, "ranks": 2,
                                        "layers": {"*": {"n": 2, "weights": [share, 1 - share]}}}))
        for name, strategy in strategies.items():
            step = step_seconds(arguments, net, batch, clock, "--devices", f"{arguments.device},cpu", "--strategy", strategy)
            if step:
                print(f"{net}, batch {batch}, {name}: {batch / step:.1f} images/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cortado", default="build/gpu/cortado", help="the program")
    parser.add_argument("--device", default="gpu:0", help="gpu:0, ... or emulated")
    parser.add_argument("--nets", nargs="+", choices=NETS, default=["alexnet", "vgg-16", "resnet-50", "inception-v3", "u-net-3d"])
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument("--shared", choices=NETS, default="caffenet", help="the net that CPU and device share")
    parser.add_argument("--shares", type=float, nargs="*", default=[0.8, 0.85, 0.9, 0.95], help="of the device")
    parser.add_argument("--batch", type=int, help="in place of each net's")
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=2, help="runs of each net")
    parser.add_argument("--no-torch", dest="torch", action="store_false", help="leave PyTorch out")
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
