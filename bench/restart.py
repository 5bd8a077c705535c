#!/usr/bin/env python3
"""Seconds until a training whose rank was killed trains again, and the iterations that it lost.

    bench/restart.py --cortado build/release/cortado --model models/alexnet/train_val.prototxt --batch 16

Trains the model on constant data, one rank on each of two hosts (network namespaces; needs root), with --restarts. After some iterations
rank 1 is killed, `--times` times. Printed are the seconds from the kill to the end of the first iteration after the restart, that
iteration, and the last one before. A snapshot is never written: what the ranks go on from is what the ones that are left have kept."""

import argparse
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True

from hosts import Hosts  # noqa: E402

DUMMY = """layer {{ name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param {{
  shape {{ dim: {batch} {sizes} }} shape {{ dim: {batch} }} }} }}
"""


def without_data(text, batch, sizes):
    """The net's text with one layer of constant data in place of its own."""
    layers = re.split(r"^(?=layer\s*\{)", text, flags=re.M)
    kept = [layer for layer in layers if not re.search(r'type:\s*"(Image)?Data"', layer)]
    dummy = DUMMY.format(batch=batch, sizes=" ".join(f"dim: {size}" for size in sizes))
    return kept[0] + dummy + "".join(kept[1:])


class Output:
    """(seconds, iteration) of every line that tells of one, as it came."""

    def __init__(self, process):
        self.iterations, self.lines = [], []
        self.thread = threading.Thread(target=self.read, args=(process,), daemon=True)
        self.thread.start()

    def read(self, process):
        for line in process.stdout:
            self.lines.append(line)
            found = re.search(r"[Ii]teration (\d+)\b.*loss", line)
            if found:
                self.iterations.append((time.monotonic(), int(found[1])))

    def wait_for(self, count, process, seconds=120):
        end = time.monotonic() + seconds
        while len(self.iterations) < count:
            if process.poll() is not None or time.monotonic() > end:
                sys.exit("the training does not go on:\n" + "".join(self.lines[-20:]))
            time.sleep(0.01)


def process_of_rank(rank, folder):
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").resolve() == folder and f"PMI_RANK={rank}".encode() in (entry / "environ").read_bytes().split(b"\0") \
                    and (entry / "comm").read_text().strip().startswith("cortado"):
                return int(entry.name)
        except OSError:
            pass
    sys.exit(f"there is no rank {rank}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cortado", default="build/release/cortado", help="the program")
    parser.add_argument("--model", default="models/alexnet/train_val.prototxt", help="a net of images")
    parser.add_argument("--batch", type=int, default=16, help="samples of an iteration")
    parser.add_argument("--sample", type=int, nargs=3, default=[3, 227, 227], help="channels, height and width")
    parser.add_argument("--rate", default="1gbit", help="of the hosts' links")
    parser.add_argument("--strategy", default="data", help="one that keeps the weights on both ranks loses at most one iteration")
    parser.add_argument("--times", type=int, default=3, help="kills")
    arguments = parser.parse_args()
    program = pathlib.Path(arguments.cortado).resolve()
    hosts = Hosts(2, arguments.rate)
    try:
        with tempfile.TemporaryDirectory(prefix="cortado-restart-") as name:
            folder = pathlib.Path(name).resolve()
            (folder / "net.prototxt").write_text(without_data(pathlib.Path(arguments.model).read_text(), arguments.batch, arguments.sample))
            (folder / "solver.prototxt").write_text('net: "net.prototxt" base_lr: 0.001 lr_policy: "fixed" momentum: 0.9\n'
                                                    'max_iter: 1000000 display: 1 snapshot_prefix: "s"\n')
            words = [program, "train", "--solver", "solver.prototxt", "--ranks", "2", "--threads", "1", "--strategy", arguments.strategy,
                     "--restarts", str(arguments.times), *hosts.options()]
            process = subprocess.Popen([hosts.shell, hosts.address(0), "exec " + shlex.join(map(str, words))], cwd=folder,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            output = Output(process)
            try:
                for turn in range(arguments.times):
                    output.wait_for(len(output.iterations) + 5, process)
                    subprocess.run(["kill", "-9", str(process_of_rank(1, folder))], check=True)
                    killed = time.monotonic()
                    time.sleep(0.3)  # what was on its way
                    seen = len(output.iterations)
                    before = output.iterations[-1]
                    output.wait_for(seen + 1, process)
                    at, first = output.iterations[seen]
                    print(f"kill {turn + 1}: {at - killed:.1f} s until iteration {first}; the last before was {before[1]}", flush=True)
            finally:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
                print("".join(line for line in output.lines if "estart" in line or "kept" in line), end="")
    finally:
        hosts.remove()


if __name__ == "__main__":
    main()
