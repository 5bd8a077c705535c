#!/usr/bin/env python3
"""How long an iteration takes over a network of a given rate, under several strategies. Needs root and iproute2.

    bench/network.py --cortado build/release/cortado --rate 100mbit --nets alexnet:32 resnet-50:8
    bench/network.py --cortado build/release/cortado --rate 1gbit --strategies data owt auto --rounds 3 --out network

Makes hosts of network namespaces on one switch, every link limited to --rate in both directions, each host with one
core (so there are as many ranks as cores at most, but for "--compute model"), starts one rank of one thread on each,
and takes `cortado time` under each strategy in turns. NET:BATCH is a net of models/ and the samples of a rank. Printed
are, per strategy: the step (median over the rounds), how many times faster than the first strategy (median of the
rounds' ratios), the bytes that all ranks send in an iteration by Cortado's count and by the kernel's (counters of the
interfaces; headers, the start of the job and of measuring the peak included), the seconds that these bytes take at the
link's rate, what rank 0 computes, the step over the larger of these two, and the overlap ratio R. The strategy ddp is PyTorch's DistributedDataParallel over gloo (ddp-nhwc: with
channels last) in the same hosts; needs Debian's python3-torch and python3-torchvision, and libjemalloc2, which it is
given as the faster allocator. --rate here takes ranks of this machine in shared memory instead. --predict adds the
step that costs measured here promise: with nothing hidden (Eq. 1), and simulated, messages under computing.
"""

import argparse
import ctypes.util
import dataclasses
import json
import math
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import tempfile

from compare_torch import TUNING
from hosts import Hosts, bits_per_second, run

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Of a sample; of nets that are not named here, 3x224x224.
SHAPES = {"lenet": "1x28x28", "cifar10_quick": "3x32x32", "cifar10_full": "3x32x32", "caffenet": "3x227x227",
          "inception-v3": "3x299x299", "inception-v3-aux": "3x299x299", "resnet-20": "3x32x32",
          "resnet-110": "3x32x32", "u-net": "3x256x256,256x256", "u-net-3d": "1x32x64x64,32x64x64"}
WARM_UP = 2  # iterations that `cortado time` does not count


class Here:
    """This machine alone: ranks in shared memory."""

    def __init__(self, count):
        self.count = count
        self.folder = tempfile.TemporaryDirectory(prefix="cortado-network-")

    def options(self):
        return []

    @staticmethod
    def within(command):
        return run(command)

    @staticmethod
    def sent():
        return 0

    @staticmethod
    def down():
        pass


@dataclasses.dataclass
class Measured:
    seconds: float  # of a step
    wire: float  # bytes of an iteration by the kernel's count
    bytes: float = math.nan  # by Cortado's
    overlap: float = math.nan  # percent
    computing: float = math.nan  # seconds of rank 0's computing
    predicted: list = dataclasses.field(default_factory=list)  # seconds


def measure(options, hosts, net, batch, strategy):
    report = pathlib.Path(hosts.folder.name) / "time.json"
    report.unlink(missing_ok=True)
    before = hosts.sent()
    try:
        hosts.within([options.cortado, "time", "--model", ROOT / "models" / net / "train_val.prototxt", "--batch",
                      batch * hosts.count, "--input-shape", SHAPES.get(net, "3x224x224"), "--iterations",
                      options.iterations, "--threads", 1, "--strategy", *shlex.split(strategy), "--json", report,
                      "--ranks", hosts.count, *hosts.options(), *(["--predict"] if options.predict else [])])
    except subprocess.CalledProcessError as error:
        sys.exit(f"{net} under {strategy}: {error.stderr}")
    found = json.loads(report.read_text())
    wire = (hosts.sent() - before) / (options.iterations + WARM_UP)
    prediction = found.get("prediction", {})
    predicted = [prediction[key] for key in ("step_seconds", "overlapped_step_seconds") if key in prediction]
    overlap = found["overlap_ratio_percent"]
    return Measured(found["step_seconds"], wire, found["bytes_per_iteration"],
                    math.nan if overlap is None else overlap, found["compute_seconds"], predicted)


def measure_ddp(options, hosts, net, batch, layout):
    """The same of PyTorch."""
    before = hosts.sent()
    jemalloc = ctypes.util.find_library("jemalloc")
    ranks = []
    for rank in range(hosts.count):
        allocator = [f"LD_PRELOAD={jemalloc}", f"MALLOC_CONF={TUNING}"] if jemalloc else []
        words = ["env", "GLOO_SOCKET_IFNAME=eth0", "OMP_NUM_THREADS=1", *allocator, options.python,
                 ROOT / "bench/torch_step.py", "--model", net, "--batch", batch, "--threads", 1,
                 "--iterations", options.iterations, "--warm-up", WARM_UP, "--ranks", hosts.count, "--rank", rank,
                 "--master", hosts.address(0), *(["--channels-last"] if layout == "nhwc" else [])]
        ranks.append(subprocess.Popen([str(hosts.shell), hosts.address(rank), shlex.join(str(word) for word in words)],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    outputs = [rank.communicate() for rank in ranks]
    for rank, (_, errors) in zip(ranks, outputs):
        if rank.returncode != 0:
            sys.exit(f"{net} under PyTorch: {errors}")
    wire = (hosts.sent() - before) / (options.iterations + WARM_UP)
    seconds = max(json.loads(output)["step_seconds"] for output, _ in outputs)
    return Measured(seconds, wire)


def known(value, form):
    return "" if math.isnan(value) else format(value, form)


def bench(options, hosts, net, batch):
    rows = {strategy: [] for strategy in options.strategies}
    for _ in range(options.rounds):
        for strategy in options.strategies:
            name, _, layout = strategy.partition("-")
            rows[strategy].append(measure_ddp(options, hosts, net, batch, layout) if name == "ddp"
                                  else measure(options, hosts, net, batch, strategy))
    first = rows[options.strategies[0]]
    for strategy, runs in rows.items():
        last = runs[-1]  # nothing is measured any more
        seconds = statistics.median(run.seconds for run in runs)
        ratio = statistics.median(one.seconds / run.seconds for one, run in zip(first, runs))
        limited = options.rate not in ("none", "here")
        link = last.bytes / options.ranks * 8 / bits_per_second(options.rate) if limited else math.nan
        computing = statistics.median(run.computing for run in runs)
        least = max(computing, link) if link > 0 else computing
        line = (f"| {net} | {batch} | {options.rate} | {strategy} | {seconds:.3f} | {ratio:.2f} | "
                f"{known(last.bytes / 2**20, '.1f')} | {last.wire / 2**20:.1f} | {known(link, '.3f')} | "
                f"{known(computing, '.3f')} | {known(seconds / least, '.2f')} | {known(last.overlap, '.1f')} |")
        line += "".join(f" {one:.3f} ({100 * (one / seconds - 1):+.1f} %) |" for one in last.predicted)
        yield line


def write_table(options, heading, rows):
    """Prints the heading and what rows(hosts) yields, a line each, and writes OUT.md where it is asked for."""
    hosts = Here(options.ranks) if options.rate == "here" else Hosts(options.ranks, options.rate)
    lines = list(heading)
    print("\n".join(lines))
    try:
        for line in rows(hosts):
            print(line, flush=True)
            lines.append(line)
    finally:
        hosts.down()
    if options.out:
        pathlib.Path(options.out + ".md").write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cortado", type=lambda text: pathlib.Path(text).resolve(), required=True)
    parser.add_argument("--rate", default="1gbit", help="of every link: 100mbit, 1gbit, 10gbit, none; here: shared memory, no hosts")
    parser.add_argument("--nets", nargs="+", default=["alexnet:32", "vgg-16:8", "inception-v3:8", "resnet-50:8"])
    parser.add_argument("--strategies", nargs="+", default=["data", "model", "owt", "auto"],
                        help='"data --no-late-updates" gives cortado further options')
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--predict", action="store_true", help="print what costs measured here promise, too")
    parser.add_argument("--python", default="/usr/bin/python3", help="the Python that has PyTorch")
    parser.add_argument("--out", help="also write OUT.md")
    options = parser.parse_args()
    if options.ranks > (os.cpu_count() or 1) and not all("--compute model" in one for one in options.strategies):
        parser.error(f"--ranks {options.ranks}: this machine has {os.cpu_count()} cores, one a rank; more go with "
                     '"data --compute model --machine FILE" alone')
    if options.rate == "here" and any(one.startswith("ddp") for one in options.strategies):
        parser.error("ddp runs over a network: give a --rate")
    lines = ["| net | batch of a rank | link | strategy | step s | times faster | MiB sent | MiB on the wire "
             "| s at the link's rate | computing s | step over the larger | R % |",
             "|---|--:|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    if options.predict:
        lines = [lines[0] + " predicted s, nothing hidden | simulated s |", lines[1] + "--:|--:|"]
    write_table(options, lines, lambda hosts: (line for net in options.nets
                                               for line in bench(options, hosts, net.split(":")[0], int(net.split(":")[1]))))


if __name__ == "__main__":
    main()
