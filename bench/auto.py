#!/usr/bin/env python3
"""Whether `--strategy auto` is as fast as the best of the built-in strategies. Needs root and iproute2.

    bench/auto.py --cortado build/release/cortado --rate 1gbit --out auto-1gbit
    bench/auto.py --cortado build/release/cortado --rate here --nets resnet-50:4 alexnet:16
    bench/auto.py --cortado build/release/cortado --rate 100mbit --precisions

On hosts as those of bench/network.py, or with --rate here on ranks in shared memory, each net is timed under auto and
the built-in strategies in turns. The machine is measured first; strategies that it simulates to take more than
--within times the least are left out. Printed are, per net: what auto chose, its step, the fastest other strategy and
its step (the least iteration of all rounds), and the first step over the second. Where auto runs the program of a
built-in strategy, the iterations of both are of one program, and the least of both counts for both. With --precisions:
per net, auto in f32 and in bf16, in turns, and the median of each: a link that is limited by a bucket of tokens lets a
single iteration through faster than its rate.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess

from network import ROOT, SHAPES, write_table

STRATEGIES = ["data", "owt", "model", "spatial", "replicated", "single"]


def cortado(options, hosts, verb, net, batch, *words):
    model = ["--model", ROOT / "models" / net / "train_val.prototxt", "--batch", batch * hosts.count, "--input-shape",
             SHAPES.get(net, "3x224x224")]
    return hosts.within([options.cortado, verb, *model, *words])


def on_ranks(hosts):
    return ["--threads", 1, "--ranks", hosts.count, *hosts.options()]


def simulated(options, hosts, net, batch, strategy, machine):
    """Seconds of a step on the measured machine; infinity where the net cannot be cut so."""
    report = pathlib.Path(hosts.folder.name) / "simulated.json"
    try:
        cortado(options, hosts, "simulate", net, batch, "--machine", machine, "--strategy", strategy, "--json", report)
    except subprocess.CalledProcessError:
        return float("inf")
    return json.loads(report.read_text())["step_seconds"]


def measured(options, hosts, net, batch, strategy, *words):
    """Seconds of each iteration, what auto says that it chose, and the strategy whose program that is."""
    report = pathlib.Path(hosts.folder.name) / "time.json"
    report.unlink(missing_ok=True)
    try:
        said = cortado(options, hosts, "time", net, batch, "--strategy", strategy, "--iterations", options.iterations,
                       "--json", report, *words, *on_ranks(hosts))
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"{net} under {strategy}: {error.stderr}") from error
    chosen = re.search(r"strategy auto: (([^;]*?)(?:,|;|$).*)", said.stdout + said.stderr)
    seconds = json.loads(report.read_text())["iteration_seconds"]
    if not chosen:
        return seconds, "", ""
    own = "side by side" in chosen[1] or "by its schedule" in chosen[1]
    return seconds, chosen[2], "" if own else chosen[2].removeprefix("as ")


def row(options, hosts, net, batch, machine):
    predicted = {strategy: simulated(options, hosts, net, batch, strategy, machine) for strategy in STRATEGIES}
    near = [strategy for strategy in STRATEGIES if predicted[strategy] <= options.within * min(predicted.values())]
    least = dict.fromkeys(["auto", *near], float("inf"))
    choice = program = ""
    for _ in range(options.rounds):
        for strategy in least:
            seconds, *chosen = measured(options, hosts, net, batch, strategy)
            least[strategy] = min(least[strategy], *seconds)
            if strategy == "auto":
                choice, program = chosen
    if program in least:
        least["auto"] = least[program] = min(least["auto"], least[program])
    best = min(near, key=least.get)
    others = ", ".join(f"{strategy} {least[strategy]:.3f}" for strategy in near if strategy != best)
    return (f"| {net} | {batch} | {options.rate} | {choice} | {least['auto']:.3f} | {best} | {least[best]:.3f} | "
            f"{least['auto'] / least[best]:.3f} | {others} |")


def precisions_row(options, hosts, net, batch):
    seconds, choice = {"f32": [], "bf16": []}, {}
    for _ in range(options.rounds):
        for precision in seconds:
            more, choice[precision], _ = measured(options, hosts, net, batch, "auto", "--precision", precision)
            seconds[precision] += more
    f32, bf16 = (statistics.median(seconds[precision]) for precision in seconds)
    return (f"| {net} | {batch} | {options.rate} | {choice['f32']} | {f32:.3f} | {choice['bf16']} | {bf16:.3f} | "
            f"{bf16 / f32:.3f} |")


def precisions_rows(options, hosts):
    for net in options.nets:
        name, _, batch = net.partition(":")
        yield precisions_row(options, hosts, name, int(batch or 4))


def rows(options, hosts):
    machine = pathlib.Path(hosts.folder.name) / "machine.json"
    hosts.within([options.cortado, "machine", "--seconds", 4, "--out", machine, *on_ranks(hosts)])
    for net in options.nets:
        name, _, batch = net.partition(":")
        yield row(options, hosts, name, int(batch or 4), machine)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cortado", type=lambda text: pathlib.Path(text).resolve(), required=True)
    parser.add_argument("--rate", default="1gbit", help="of every link: 100mbit, 1gbit, 10gbit; here: shared memory, no hosts")
    parser.add_argument("--nets", nargs="+", default=["alexnet:16", "resnet-50:4"])
    parser.add_argument("--ranks", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--within", type=float, default=1.5)
    parser.add_argument("--precisions", action="store_true", help="compare auto in f32 and in bf16")
    parser.add_argument("--out", help="also write OUT.md")
    options = parser.parse_args()
    if options.precisions:
        heading = ["| net | batch of a rank | link | f32: auto chose | s | bf16: auto chose | s | bf16 over f32 |",
                   "|---|--:|---|---|--:|---|--:|--:|"]
    else:
        heading = ["| net | batch of a rank | link | auto chose | auto, s | best other | its s | auto over it | the rest |",
                   "|---|--:|---|---|--:|---|--:|--:|---|"]
    make = precisions_rows if options.precisions else rows
    write_table(options, heading, lambda hosts: make(options, hosts))


if __name__ == "__main__":
    main()
