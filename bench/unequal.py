#!/usr/bin/env python3
"""Two ranks that share a net though one is slower (Caffe con Troll, section 2.3 and Figure 9).

    bench/unequal.py --cortado build/release/cortado --model models/caffenet/train_val.prototxt --batch 64

Starts two ranks of one thread on this machine while a neighbour that never sleeps shares the processor of rank 1, so
that it gets about half of it. Takes `cortado time` by sample, in turns: equal blocks, blocks as the weights that
`cortado machine` measures beside the neighbour, and every share of --shares for rank 0; then --strategy auto. Printed
are the step (median over the rounds) and how many times faster than equal blocks (median of the rounds' ratios).
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile


def cortado(program, *arguments):
    result = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, [program, *arguments]))}\n{result.stdout}{result.stderr}")
    return result.stdout


@contextlib.contextmanager
def neighbour(processor):
    spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    os.sched_setaffinity(spinning.pid, {processor})
    try:
        yield
    finally:
        spinning.kill()
        spinning.wait()


def by_sample(folder, name, weights):
    """A strategy file that cuts every layer by sample, in blocks that follow the weights."""
    path = pathlib.Path(folder) / f"{name}.json"
    path.write_text(json.dumps({"format": "cortado-strategy", "version": 1, "ranks": 2,
                                "layers": {"*": {"n": 2, "weights": weights}}}))
    return path


def measured_weights(program, folder):
    path = pathlib.Path(folder) / "machine.json"
    cortado(program, "machine", "--ranks", 2, "--threads", 1, "--seconds", 6, "--out", path)
    devices = [device for node in json.loads(path.read_text())["nodes"] for device in node["devices"]
               for _ in range(device.get("count", 1))]
    return [device.get("weight", device["gflops"]) for device in devices]


def step(program, arguments, strategy, folder):
    """Seconds of an iteration."""
    report = pathlib.Path(folder) / "time.json"
    command = ["time", "--model", arguments.model, "--iterations", arguments.iterations, "--ranks", 2, "--threads", 1,
               "--strategy", strategy, "--json", report]
    if arguments.batch:
        command += ["--batch", arguments.batch]
    cortado(program, *command)
    return json.loads(report.read_text())["step_seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cortado", default="build/release/cortado", help="the program")
    parser.add_argument("--model", required=True, help="a net")
    parser.add_argument("--batch", type=int, help="samples of an iteration (default: the model's)")
    parser.add_argument("--iterations", type=int, default=5, help="measured in each run")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each strategy")
    parser.add_argument("--shares", type=float, nargs="*", default=[0.55, 0.6, 0.65, 0.7, 0.75],
                        help="of rank 0, in the sweep")
    arguments = parser.parse_args()
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) < 2:
        sys.exit("two processors are needed")
    # As ranks are bound: the first to the first half of the cores.
    with tempfile.TemporaryDirectory(prefix="cortado-unequal-") as folder, \
            neighbour(processors[len(processors) // 2]):
        weights = measured_weights(arguments.cortado, folder)
        print(f"measured beside the neighbour: {weights[0]:.1f} and {weights[1]:.1f} GFLOP/s, "
              f"so rank 0 takes {weights[0] / sum(weights):.3f}", flush=True)
        strategies = {"equal blocks": by_sample(folder, "equal", [1, 1]),
                      "blocks as measured": by_sample(folder, "measured", weights)}
        for share in arguments.shares:
            strategies[f"share {share:.2f}"] = by_sample(folder, f"share-{share:.2f}", [share, 1 - share])
        strategies["auto"] = "auto"
        steps = {name: [] for name in strategies}
        for _ in range(arguments.rounds):
            for name, strategy in strategies.items():
                steps[name].append(step(arguments.cortado, arguments, strategy, folder))
                print(f"  {name}: {steps[name][-1]:.3f} s", file=sys.stderr, flush=True)
    sweep = min(statistics.median(values) for name, values in steps.items() if name.startswith("share"))
    for name, values in steps.items():
        faster = statistics.median(equal / value for equal, value in zip(steps["equal blocks"], values))
        print(f"{name:20} {statistics.median(values):7.3f} s  {faster:5.2f}x equal blocks  "
              f"{statistics.median(values) / sweep:5.3f} of the sweep's best")


if __name__ == "__main__":
    main()
