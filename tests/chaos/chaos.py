#!/usr/bin/env python3
"""Trains on ranks while faults happen at random moments, and compares the end with a training that nothing disturbed.

    tests/chaos/chaos.py CORTADO [--runs N] [--seed S] [--faults N] [--here] [--keep]

Each run trains a small net with --restarts, and meets between half of and all of so many faults; faults.py has them.
A third of the runs has its ranks on hosts of their own (network namespaces), half of the runs is --reproducible. What
this machine cannot do is left out, and said: hosts and disks need root, a clock that jumps needs Debian's faketime.

Where the command itself has ended (killed, or for want of space or memory, which no restart mends), it is started by hand from
the newest snapshot, as its user would. A run fails where the command ends otherwise, the last snapshot has other bytes
than that of the calm training, a process is left, or the run takes over two minutes and 20 calm trainings. One seed gives one choice of
faults; the moments at which they meet the training vary."""

import argparse
import dataclasses
import glob
import hashlib
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench"))
sys.dont_write_bytecode = True

from faults import Disk, Jumps, choices, meet, send  # noqa: E402
from hosts import Hosts  # noqa: E402

STALL_SECONDS, MOST_RESTARTS = 10, 1000
SNAPSHOTS = 40  # of a training
LEAST_LIMIT, CALM_RUNS = 120, 20  # of a run: so many seconds, and so many calm trainings
PEER_SECONDS = 8  # a host is lost when it has been silent for so long
SOLVER = """net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" momentum: 0.9 random_seed: 7
snapshot_prefix: "kept/s" display: 0
"""


class Fault(Exception):
    """What a run must not do."""


def make_folder(cortado, folder):
    shutil.copy(HERE.parent / "mpi/train_val.prototxt", folder / "net.prototxt")
    (folder / "solver.prototxt").write_text(SOLVER)
    (folder / "kept").mkdir(exist_ok=True)
    subprocess.run([cortado, "data", "generate", "shapes_lmdb", "--samples", "120"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a run trains. Equal ones end alike where nothing disturbs them."""

    ranks: int
    strategy: str
    reproducible: bool

    @property
    def iterations(self):
        """So many that faults find the training at work; three ranks on two cores are slow."""
        return 3000 if self.ranks == 2 else 400

    def command(self, cortado, *more, iterations=None, snapshot=None):
        iterations = iterations or self.iterations
        return [cortado, "train", "--solver", "solver.prototxt", "--threads", "1", "--ranks", str(self.ranks), "--strategy",
                self.strategy, "--snapshot-format", "cortado", "--set", f"max_iter={iterations}", "--set",
                f"snapshot={iterations // SNAPSHOTS if snapshot is None else snapshot}", *["--reproducible"] * self.reproducible, *more]


def last_snapshot(folder, iteration):
    """SHA-256 of the snapshot of the last iteration; None where there is none."""
    file = folder / f"kept/s_iter_{iteration}.safetensors"
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else None


def run_calm(cortado, folder, kind, **length):
    subprocess.run(kind.command(cortado, **length), cwd=folder, check=True, stdout=subprocess.DEVNULL)


def newest_iteration(job):
    return max((int(re.search(r"_iter_(\d+)", file.name)[1]) for file in job.snapshots()), default=0)


class CalmRuns:
    """The end of the training without faults, and the seconds that it took, by its kind."""

    def __init__(self, cortado):
        self.cortado, self.ends = cortado, {}

    def end(self, kind):
        if kind not in self.ends:
            with tempfile.TemporaryDirectory(prefix="cortado-calm-") as name:
                folder = pathlib.Path(name)
                make_folder(self.cortado, folder)
                begin = time.monotonic()
                run_calm(self.cortado, folder, kind)
                self.ends[kind] = last_snapshot(folder, kind.iterations), time.monotonic() - begin
        return self.ends[kind]


class Job:
    """A training in a folder, and the processes that it has."""

    def __init__(self, cortado, folder, kind, hosts, jumps, **length):
        self.cortado, self.folder, self.kind, self.hosts, self.jumps, self.length = cortado, folder, kind, hosts, jumps, length
        self.log = open(folder / "out.txt", "ab")
        self.process, self.by_hand = None, 0
        self.name = pathlib.Path(cortado).name[:15]  # as the kernel keeps it

    def start(self, *more):
        words = self.kind.command(self.cortado, "--restarts", str(MOST_RESTARTS), "--stall-timeout", str(STALL_SECONDS), *more, **self.length)
        if self.hosts:
            words += ["--peer-timeout", str(PEER_SECONDS), *self.hosts.options()]
            words = [self.hosts.shell, self.hosts.address(0), "exec " + shlex.join(words)]
        environment = {**os.environ, **(self.jumps.environment() if self.jumps else {})}
        self.process = subprocess.Popen(words, cwd=self.folder, stdout=self.log, stderr=self.log, env=environment)

    def text(self):
        return (self.folder / "out.txt").read_text(errors="replace")

    def processes(self):
        """(process id, name, rank or None) of all but the command."""
        found = []
        for entry in glob.glob("/proc/[0-9]*"):
            try:
                if os.readlink(entry + "/cwd") != str(self.folder):
                    continue
                name = pathlib.Path(entry, "comm").read_text().strip()
                environment = pathlib.Path(entry, "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            pid = int(entry[6:])
            if pid == self.process.pid or not (name == self.name or re.match("mpiexec|mpirun|hydra|orted|prted|prterun", name)):
                continue
            ranks = [int(word.split(b"=")[1]) for word in environment
                     if re.fullmatch(rb"(PMI_RANK|OMPI_COMM_WORLD_RANK)=\d+", word)]
            found.append((pid, name, ranks[0] if ranks and name == self.name else None))
        return found

    def snapshots(self):
        """Files to go on from, the newest first."""
        number = lambda file: int(re.search(r"_iter_(\d+)", file.name)[1])
        return sorted(self.folder.glob("kept/s_iter_*.safetensors"), key=number, reverse=True)

    def go_on_by_hand(self):
        """From the newest sound snapshot or, where there is none, from the beginning."""
        self.wait_until_none_is_left()
        self.by_hand += 1
        for file in self.folder.glob("kept/*.tmp"):  # of processes that were killed
            file.unlink()
        newest = [f"kept/{file.name}" for file in self.snapshots()[:1]]
        self.start(*(["--snapshot", *newest] if newest else []))

    def wait_until_none_is_left(self):
        """A host that was cut off learns late that its launcher is gone: by TCP's next try to say so."""
        end = time.monotonic() + (90 if self.hosts else 20)
        while self.processes():
            if time.monotonic() > end:
                raise Fault(f"processes are left: {self.processes()}")
            time.sleep(0.05)

    def end_all(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid, _, _ in self.processes() if self.process else []:
            send(pid, signal.SIGKILL)
        self.log.close()


def check_end(job, code):
    """A command that has ended by a fault which no restart mends is started by hand."""
    if code == -signal.SIGKILL:
        return
    errors = re.findall(r"^cortado: error: (.*)$", job.text(), re.M)
    if code == 2 and errors and re.search("No space left|out of memory|no more threads|fewer threads|no sound earlier snapshot", errors[-1]):
        if "no sound earlier snapshot" in errors[-1]:
            for file in job.snapshots():
                file.unlink()
        return
    if code == 3 and errors and "0 of " in errors[-1]:
        return  # the launcher's process was killed before it had started any
    raise Fault(f"the command ended with exit code {code}: {errors[-1:] or 'no message'}")


def draw_run(draw, most_faults, disk, folder, can):
    """(kind, hosts or None, jumps or None, faults)"""
    kind = Kind(draw.choice([2, 3]), draw.choice(["data", "model", "owt"]), draw.random() < 0.5)
    hosts = Hosts(kind.ranks, "none") if draw.random() < 1 / 3 and can.hosts else None
    jumps = Jumps(folder) if draw.random() < 1 / 4 and can.jumps else None
    possible = choices(disk, jumps, hosts, kind.reproducible)
    return kind, hosts, jumps, [draw.choice(possible) for _ in range(draw.randint((most_faults + 1) // 2, most_faults))]


def run(cortado, calm, seed, most_faults, folder, disk, can):
    """Returns how many faults it met."""
    draw = random.Random(seed)
    kind, hosts, jumps, faults = draw_run(draw, most_faults, disk, folder, can)
    expected, seconds = calm.end(kind)
    limit = LEAST_LIMIT + CALM_RUNS * seconds
    longest_calm = min(3, 0.8 * seconds / len(faults))  # between two faults
    make_folder(cortado, folder)
    disk.mount(folder / "kept")
    job, met = Job(cortado, folder, kind, hosts, jumps), []
    begin = time.monotonic()
    print(f"seed {seed}: {kind.ranks} {'hosts' if hosts else 'ranks'}, {kind.strategy}{', reproducible' * kind.reproducible}: "
          f"{' '.join(faults)}", end="", flush=True)
    try:
        job.start()
        due = time.monotonic() + draw.uniform(0, longest_calm)
        while True:
            if time.monotonic() - begin > limit:
                raise Fault(f"it takes over {limit:.0f} s")
            code = job.process.poll()
            if code == 0:
                break
            if code is not None:
                check_end(job, code)
                job.go_on_by_hand()
            elif faults and time.monotonic() >= due:
                if meet(job, faults[0], draw, 2 * PEER_SECONDS):
                    met.append(faults.pop(0))
                due = time.monotonic() + draw.uniform(0, longest_calm)
            time.sleep(0.02)
        job.wait_until_none_is_left()
        if last_snapshot(folder, kind.iterations) != expected:
            raise Fault("the last snapshot is not that of the calm training")
        return len(met)
    finally:
        job.end_all()
        if hosts:
            hosts.remove()
        restarts = len(re.findall(r"starting again on", job.text()))
        print(f"; met {len(met)}, {restarts} restarts, {job.by_hand} by hand, {time.monotonic() - begin:.0f} s",
              flush=True)


class Abilities:
    """What this machine can do to a training besides killing it. Says what it cannot."""

    def __init__(self, disk):
        self.jumps = Jumps.LIBRARY.exists()
        try:
            Hosts(1, "none").remove()
            self.hosts = True
        except (OSError, subprocess.CalledProcessError):
            self.hosts = False
        for there, what in ((disk.kind, "disks: no file system can be mounted"), (disk.kind != "tmpfs", "a slow disk: no loop device"),
                            (self.jumps, "jumps of the clock: no faketime"), (self.hosts, "hosts: no network namespaces")):
            if not there:
                print(f"left out: {what}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cortado")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--faults", type=int, default=10)
    parser.add_argument("--here", action="store_true", help="on ranks of this machine alone")
    parser.add_argument("--keep", action="store_true", help="leave the folders of runs that failed")
    arguments = parser.parse_args()
    cortado = str(pathlib.Path(arguments.cortado).resolve())
    first = random.randrange(1 << 30) if arguments.seed is None else arguments.seed
    calm, met, failed, disk = CalmRuns(cortado), 0, [], Disk()
    can = Abilities(disk)
    can.hosts &= not arguments.here
    for seed in range(first, first + arguments.runs):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="cortado-chaos-")).resolve()
        try:
            met += run(cortado, calm, seed, arguments.faults, folder, disk, can)
        except Fault as fault:
            failed.append(seed)
            print(f"seed {seed} FAILED: {fault}")
            print("".join("  | " + line + "\n" for line in (folder / "out.txt").read_text(errors="replace").split("\n")[-40:]))
        finally:
            if arguments.keep and failed[-1:] == [seed]:
                print(f"its folder: {folder}")
            else:
                disk.unmount(folder / "kept")
                shutil.rmtree(folder, ignore_errors=True)
    print(f"{arguments.runs} runs, {met} faults met in those that passed, {len(failed)} failed{': seeds ' + str(failed) if failed else ''}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
