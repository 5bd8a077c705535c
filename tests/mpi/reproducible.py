#!/usr/bin/env python3
"""Trains nets with --reproducible on every number of ranks and threads, cut every way, and compares the SHA-256 of
the snapshots with that of one rank and one thread.

    tests/mpi/reproducible.py CORTADO [OTHER...] [--nets a,b] [--ranks 1,2] [--threads 1,2] [--strategies data,mixed]
                              [--iterations N] [--hosts N] [--pairs] [--results FILE]

OTHER: commands of other builds with the same instruction set, such as one with another MPI. `mixed` cuts convolutions
and inner products of a multiple of 8 outputs by channel, or by samples and channel on an even number of ranks above 2,
and all other layers by samples. Nets learn from random data that the seed gives. --hosts N (root; MPICH): ranks are placed
in turn on N network namespaces. --pairs: in place of all cases each number of ranks once under each strategy, with numbers of
threads and ways (each command in shared memory, and the first on hosts) in turns; of the usual ranks, strategies and
threads any two meet, and meet every way. --results FILE: digests are kept there, and a case that a build has ended is
not run again: all nets take hours. Ends with 1 where bits differ."""

import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
sys.dont_write_bytecode = True

from hosts import Hosts  # noqa: E402

# Net file; samples of a batch; shape of a sample; shape of its labels.
NETS = {
    "shapes": ("examples/shapes/train_val.prototxt", 16, [3, 32, 32], []),
    "cifar10_full": ("models/cifar10_full/train_val.prototxt", 16, [3, 32, 32], []),
    "resnet-20": ("models/resnet-20/train_val.prototxt", 8, [3, 32, 32], []),
    "resnet-50": ("models/resnet-50/train_val.prototxt", 8, [3, 32, 32], []),
    "u-net": ("models/u-net/train_val.prototxt", 8, [1, 16, 16], [16, 16]),
}
READERS = {"Data", "HDF5Data", "ImageData"}


def layers_of(text):
    """The text of each layer."""
    layers, at = [], 0
    for found in re.finditer(r"^layer \{", text, re.M):
        if found.start() < at:
            continue
        depth, at = 1, found.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        layers.append(text[found.start():at])
    return layers


def field(layer, name):
    found = re.search(rf'\b{name}: "?([^"\s]+)', layer)
    return found[1] if found else None


def version(cortado):
    return subprocess.run([cortado, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def make_folder(folder, net, iterations):
    file, batch, sample, label = NETS[net]
    shape = lambda extents: "shape { " + " ".join(f"dim: {extent}" for extent in extents) + " }"
    data = (f'layer {{ name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param {{ '
            f'{shape([batch, *sample])} {shape([batch, *label])} '
            f'data_filler {{ type: "gaussian" }} data_filler {{ type: "constant" value: 1 }} }} }}')
    layers = [layer for layer in layers_of((ROOT / file).read_text())
              if field(layer, "type") not in READERS and "phase: TEST" not in layer]
    (folder / "net.prototxt").write_text("\n".join([f'name: "{net}"', data, *layers]) + "\n")
    (folder / "solver.prototxt").write_text(
        f'net: "net.prototxt" base_lr: 0.001 lr_policy: "fixed" momentum: 0.9 weight_decay: 0.0005 random_seed: 7 '
        f'max_iter: {iterations} snapshot_prefix: "s" display: 0\n')
    return layers


def write_mixed(folder, net, layers, ranks):
    rules = {"*": {"n": ranks}}
    for layer in layers:
        if field(layer, "type") in ("Convolution", "InnerProduct", "Deconvolution") and \
                int(field(layer, "num_output")) % 8 == 0 and int(field(layer, "group") or 1) == 1:
            samples = 2 if ranks > 2 and ranks % 2 == 0 else 1
            rules[field(layer, "name")] = {"n": samples, "c": ranks // samples}
    (folder / "mixed.json").write_text(json.dumps(
        {"format": "cortado-strategy", "version": 1, "net": net, "ranks": ranks, "layers": rules}))
    return "mixed.json"


def digest(case, folder, net, layers, iterations, hosts):
    file = folder / f"s_iter_{iterations}.safetensors"
    file.unlink(missing_ok=True)
    words = [case.cortado, "train", "--solver", "solver.prototxt", "--snapshot-format", "cortado", "--reproducible",
             "--threads", str(case.threads), "--ranks", str(case.ranks)]
    if case.ranks > 1:
        mixed = case.strategy == "mixed"
        words += ["--strategy", write_mixed(folder, net, layers, case.ranks) if mixed else case.strategy]
    if case.on_hosts:
        words = [hosts.shell, hosts.address(0), "exec " + shlex.join([*words, *hosts.options()])]
    # Threads that wait leave their core to others: there are more of them than cores. Open MPI refuses root without.
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive",
                   "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    if done.returncode:
        return "exit code {}: {}".format(done.returncode, done.stdout.decode(errors="replace")[-600:])
    return hashlib.sha256(file.read_bytes()).hexdigest()


class Results:
    """Digests of the cases that have ended, by what was run; in a file where one is named."""

    def __init__(self, file):
        self.file = file
        lines = file.read_text().splitlines() if file and file.exists() else []
        self.digests = dict(line.rsplit(" ", 1) for line in lines)

    def digest(self, run, *case):
        name = " ".join(map(str, case))
        if name in self.digests:
            return self.digests[name]
        found = run()
        if len(found) == 64:
            self.digests[name] = found
            if self.file:
                with self.file.open("a") as file:
                    file.write(f"{name} {found}\n")
        return found


class Case(NamedTuple):
    cortado: str
    on_hosts: bool
    ranks: int
    threads: int
    strategy: str

    def __str__(self):
        where = " on hosts" if self.on_hosts else ""
        return f"{self.ranks} ranks of {self.threads} threads{where}, {self.strategy}"


def ways(arguments):
    """(command, whether its ranks are on hosts)."""
    if not arguments.hosts:
        return [(command, False) for command in arguments.cortado]
    if not arguments.pairs:
        return [(command, True) for command in arguments.cortado]
    return [*((command, False) for command in arguments.cortado), (arguments.cortado[0], True)]


def all_cases(arguments):
    for command, on_hosts in ways(arguments):
        for ranks in arguments.ranks:
            for strategy in arguments.strategies if ranks > 1 else ["single"]:
                for threads in arguments.threads:
                    yield Case(command, on_hosts and ranks > 1, ranks, threads, strategy)


def pairs(arguments):
    """All with one rank; of several ranks each strategy once, ways and threads in turns."""
    yield from (case for case in all_cases(arguments) if case.ranks == 1)
    every_way = ways(arguments)
    for i, ranks in enumerate(ranks for ranks in arguments.ranks if ranks > 1):
        for j, strategy in enumerate(arguments.strategies):
            way = every_way[(i + j) % len(every_way)]
            threads = arguments.threads[(i // 2 + j) % len(arguments.threads)]
            yield Case(*way, ranks, threads, strategy)


def cases(arguments):
    """The first is what all others are compared with."""
    first = Case(arguments.cortado[0], False, 1, 1, "single")
    others = dict.fromkeys((pairs if arguments.pairs else all_cases)(arguments))
    return [first, *(case for case in others if case != first)]


def differing(net, arguments, hosts, results):
    """How many of the net's cases end in other bits than the first."""
    failed, expected = 0, None
    with tempfile.TemporaryDirectory(prefix="cortado-reproducible-") as name:
        folder = pathlib.Path(name)
        layers = make_folder(folder, net, arguments.iterations)
        for case in cases(arguments):
            began = time.monotonic()
            found = results.digest(
                lambda: digest(case, folder, net, layers, arguments.iterations, hosts),
                net, arguments.iterations, arguments.hosts if case.on_hosts else 0, case.cortado, version(case.cortado),
                case.ranks, case.threads, case.strategy)
            expected = expected or found
            same = found == expected and len(found) == 64
            failed += not same
            print(f"{net}, {case}: {found[:16] if same else found}{'' if same else '  DIFFERS'}  "
                  f"{time.monotonic() - began:.1f} s", flush=True)
    return failed


def main():
    words = lambda text: text.split(",")
    numbers = lambda text: [int(word) for word in text.split(",")]
    parser = argparse.ArgumentParser()
    parser.add_argument("cortado", nargs="+")
    parser.add_argument("--nets", type=words, default=["shapes", "cifar10_full", "resnet-20", "u-net"])
    parser.add_argument("--ranks", type=numbers, default=[1, 2, 3, 4, 8])
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--strategies", type=words, default=["data", "model", "owt", "mixed"])
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--hosts", type=int, default=0)
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--results", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.cortado = [str(pathlib.Path(command).resolve()) for command in arguments.cortado]
    results = Results(arguments.results)
    begin = time.monotonic()
    hosts = Hosts(arguments.hosts, "none") if arguments.hosts else None
    with contextlib.ExitStack() as at_end:
        if hosts:
            at_end.callback(hosts.remove)
        failed = sum(differing(net, arguments, hosts, results) for net in arguments.nets)
    print(f"{failed} differ; {time.monotonic() - begin:.0f} s")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
