#!/usr/bin/env python3
"""Times training steps beside busy neighbours and compares them with a fair share of the cores.

    bench/neighbours.py --cortado build/cortado
    bench/neighbours.py --cortado build/cortado --models squeezenet-1.1:16 --neighbours 0 1 2 --ranks 1 2
    bench/neighbours.py --cortado build/cortado --torch --out report/neighbours

A neighbour is a process with one thread that never waits. Beside n neighbours of the same priority, t busy threads on
c cores get t * min(1, c / (t + n)) cores, so a fair step takes min(t, c) / that many times as long as alone; beside
neighbours of nice 19, as long as alone. Every round measures each situation once, in turns; the least of the rounds
counts. `--torch` measures PyTorch (contiguous and channels_last, the faster one counts) of the models that
compare_torch.py has. `--out NAME` writes NAME.md and NAME.json.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from compare_torch import BATCHES, HERE, MODELS, SHAPES, run

USUAL = ["alexnet:16", "squeezenet-1.1:16", "googlenet:16", "resnet-50:4", "mobilenet-v2:4", "cifar10_quick:100"]


class Neighbours:
    """Busy processes for as long as the `with` lasts."""

    def __init__(self, count, nice):
        self.count, self.nice, self.processes = count, nice, []

    def __enter__(self):
        for _ in range(self.count):
            self.processes.append(subprocess.Popen(
                ["nice", "-n", str(self.nice), sys.executable, "-c", "while True: pass"]))

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def cortado_seconds(arguments, model, batch, ranks):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "time.json"
        command = [arguments.cortado, "time", "--model", MODELS / model / "train_val.prototxt", "--batch", batch,
                   "--iterations", str(arguments.iterations), "--threads", str(max(1, arguments.threads // ranks)),
                   "--json", path, *SHAPES.get(model, ())]
        run(command + (["--ranks", str(ranks)] if ranks > 1 else []))
        return json.loads(path.read_text())["step_seconds"]


def torch_seconds(arguments, model, batch):
    command = [arguments.python, HERE / "torch_step.py", "--model", model, "--batch", batch, "--iterations",
               str(arguments.iterations), "--threads", str(arguments.threads)]
    environment = dict(os.environ, OMP_NUM_THREADS=str(arguments.threads))
    return min(json.loads(run(command + layout, environment)[0])["step_seconds"]
               for layout in ([], ["--channels-last"]))


def fair(threads, cores, neighbours, nice):
    """How many times as long as alone a step takes with a fair share of the cores."""
    if nice > 0:
        return 1.0
    return min(threads, cores) / (threads * min(1.0, cores / (threads + neighbours)))


def measure(arguments, contender, situations):
    """{situation: least seconds of a step}"""
    least = {}
    for number in range(arguments.rounds):
        for count, nice in situations if number % 2 == 0 else situations[::-1]:
            with Neighbours(count, nice):
                seconds = contender()
            least[count, nice] = min(seconds, least.get((count, nice), seconds))
    return least


def rows_of(arguments):
    situations = [(0, 0)] + [(count, 0) for count in arguments.neighbours if count] + [(1, 19)]
    cores = len(os.sched_getaffinity(0))
    for entry in arguments.models:
        model, batch = entry.split(":")
        contenders = {f"Cortado, {ranks} rank{'s' if ranks > 1 else ''}":
                      lambda ranks=ranks: cortado_seconds(arguments, model, batch, ranks) for ranks in arguments.ranks}
        if arguments.torch and model in BATCHES:
            contenders["PyTorch"] = lambda: torch_seconds(arguments, model, batch)
        for name, contender in contenders.items():
            least = measure(arguments, contender, situations)
            row = {"model": model, "batch": int(batch), "contender": name, "alone_seconds": least[0, 0], "beside": []}
            for count, nice in situations[1:]:
                times = least[count, nice] / least[0, 0]
                row["beside"].append({"neighbours": count, "nice": nice, "times_alone": times,
                                      "times_fair": times / fair(arguments.threads, cores, count, nice)})
            print(json.dumps(row), file=sys.stderr, flush=True)
            yield row


def markdown(rows):
    heads = [f"{beside['neighbours']} of nice {beside['nice']}" for beside in rows[0]["beside"]]
    lines = ["| model (batch) | | alone, s | " + " | ".join(heads) + " |", "|---|---|--:|" + "--:|" * len(heads)]
    for row in rows:
        cells = [f"{beside['times_alone']:.2f} ({beside['times_fair']:.2f})" for beside in row["beside"]]
        lines.append(f"| {row['model']} ({row['batch']}) | {row['contender']} | {row['alone_seconds']:.4f} | "
                     + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n\nTimes as long as alone; in brackets, times the fair share.\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cortado", required=True, help="the program to measure")
    parser.add_argument("--models", nargs="+", default=USUAL, metavar="MODEL:BATCH")
    parser.add_argument("--neighbours", nargs="+", type=int, default=[1, 2, 3], help="numbers of busy processes")
    parser.add_argument("--ranks", nargs="+", type=int, default=[1], help="the threads are divided among them")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--torch", action="store_true", help="measure PyTorch, too")
    parser.add_argument("--python", default=sys.executable, help="the Python that has PyTorch")
    parser.add_argument("--out", help="write OUT.md and OUT.json")
    arguments = parser.parse_args()
    rows = list(rows_of(arguments))
    table = markdown(rows)
    print(table)
    if arguments.out:
        pathlib.Path(arguments.out + ".md").write_text(table)
        pathlib.Path(arguments.out + ".json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
