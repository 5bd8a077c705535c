#!/usr/bin/env python3
"""Training on 1, 2, 4, ... cores of one machine: as threads of one rank and as ranks of one thread, beside PyTorch on as
many threads, in turns (A B A B); for the ranks also the step that was predicted. (Layer-wise parallelism, Table 4.)

    bench/cores.py --cortado build/dev/cortado --nets alexnet resnet-50
    bench/cores.py --cortado build/dev/cortado --nets lenet --batch 16 --iterations 2 --rounds 1    # a rehearsal

Prints the least step of all rounds. Ends before --minutes are over: what did not fit is named.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
NETS = {  # batch, shape of a sample
    "lenet": (64, "1x28x28"), "alexnet": (64, "3x224x224"), "resnet-50": (32, "3x224x224")}


class OutOfTime(Exception):
    pass


class Failed(Exception):
    pass


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.end = time.monotonic() + 60 * arguments.minutes

    def run(self, command):
        left = self.end - time.monotonic()
        try:
            if left < 5:
                raise OutOfTime
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=left)
        except subprocess.TimeoutExpired:
            raise OutOfTime from None
        if done.returncode:
            raise Failed(f"{' '.join(map(str, command))}\n{done.stderr.strip()}")
        return done.stdout

    def cortado(self, net, *more):
        """The report of `cortado time`."""
        batch, shape = NETS[net]
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder, "time.json")
            self.run([self.arguments.cortado, "time", "--model", HERE.parent / "models" / net / "train_val.prototxt",
                      "--input-shape", shape, "--batch", self.arguments.batch or batch, "--iterations",
                      self.arguments.iterations, "--json", report, *more])
            return json.loads(report.read_text())

    def torch(self, net, threads):
        command = [sys.executable, HERE / "torch_step.py", "--model", net, "--batch", self.arguments.batch or NETS[net][0],
                   "--iterations", self.arguments.iterations, "--channels-last", "--threads", threads]
        return json.loads(self.run(command))["step_seconds"]

    def measure(self, net, counts, best):
        def least(key, seconds):
            best[key] = min(seconds, best.get(key, seconds))

        for _ in range(self.arguments.rounds):
            for count in counts:
                least(("threads", count), self.cortado(net, "--threads", count)["step_seconds"])
                if count > 1:
                    ranks = self.cortado(net, "--ranks", count, "--threads", 1, "--strategy", "auto", "--predict")
                    least(("ranks", count), ranks["step_seconds"])
                    best["predicted", count] = ranks["prediction"]["overlapped_step_seconds"]
                if self.arguments.torch:
                    try:
                        least(("PyTorch", count), self.torch(net, count))
                    except Failed as error:
                        print(f"PyTorch is left out: {str(error).splitlines()[-1]}")
                        self.arguments.torch = False

    def print_net(self, net):
        counts = [count for count in (2**power for power in range(10)) if count <= self.arguments.cores]
        best = {}
        try:
            self.measure(net, counts, best)
        except OutOfTime:
            print(f"{net}: not finished, the time is over")
        for count in counts:
            steps = [f"{name} {1000 * best[name, count]:.1f} ms" for name in ("threads", "ranks", "predicted", "PyTorch")
                     if (name, count) in best]
            if steps:
                print(f"{net}, {count} cores:  {'  '.join(steps)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cortado", default="build/dev/cortado", help="the program")
    parser.add_argument("--nets", nargs="+", choices=NETS, default=["alexnet", "resnet-50"])
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)), help="at most")
    parser.add_argument("--batch", type=int, help="in place of each net's")
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--no-torch", dest="torch", action="store_false", help="leave PyTorch out")
    parser.add_argument("--minutes", type=float, default=8.5, help="for all of it")
    arguments = parser.parse_args()
    if not pathlib.Path(arguments.cortado).exists():
        sys.exit(f"{arguments.cortado}: there is no such program")
    bench = Bench(arguments)
    for net in arguments.nets:
        try:
            bench.print_net(net)
        except Failed as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
