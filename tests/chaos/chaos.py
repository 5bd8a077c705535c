#!/usr/bin/env python3
"""Trains on ranks while faults happen at random moments, and compares the end with a training that nothing disturbed.

    tests/chaos/chaos.py CORTADO [--runs N] [--seed S] [--faults N] [--keep]

Each run trains a small net with --restarts, and meets between half of and all of so many faults:

    rank      SIGKILL of a rank                     pause     SIGSTOP of a rank, SIGCONT within a second
    stop      SIGSTOP of a rank for good            launcher  SIGKILL of the launcher, or of its process
    command   SIGKILL of the command itself         damage    bytes of the newest snapshot change, then a rank is killed
    disk      the disk is full for a while (a tmpfs of the run's own; needs root, else "rank")

Where the command itself has ended (killed, or for want of space, which no restart mends), it is started by hand from
the newest snapshot, as its user would. A run fails where the command ends otherwise, the last snapshot has other bytes
than that of the calm training, a process is left, or the run takes over two minutes and 20 calm trainings. One seed gives one choice of
faults; the moments at which they meet the training vary."""

import argparse
import glob
import hashlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ITERATIONS, SNAPSHOT, STALL_SECONDS = 400, 10, 10
LEAST_LIMIT, CALM_RUNS = 120, 20  # of a run: so many seconds, and so many calm trainings
FAULTS = ["rank", "rank", "pause", "stop", "launcher", "command", "damage", "disk"]
DISK_BYTES = 64 << 20
SOLVER = f"""net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" momentum: 0.9 random_seed: 7
max_iter: {ITERATIONS} snapshot: {SNAPSHOT} snapshot_prefix: "kept/s" display: 0
"""


class Fault(Exception):
    """What a run must not do."""


def make_folder(cortado, folder):
    shutil.copy(HERE.parent / "mpi/train_val.prototxt", folder / "net.prototxt")
    (folder / "solver.prototxt").write_text(SOLVER)
    (folder / "kept").mkdir()
    subprocess.run([cortado, "data", "generate", "shapes_lmdb", "--samples", "120"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)


def command(cortado, ranks, strategy, *more):
    return [cortado, "train", "--solver", "solver.prototxt", "--threads", "1", "--ranks", str(ranks), "--strategy",
            strategy, "--snapshot-format", "cortado", *more]


def last_snapshot(folder):
    file = folder / f"kept/s_iter_{ITERATIONS}.safetensors"
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else None


class CalmRuns:
    """The end of the training without faults, and the seconds that it took, by ranks and strategy."""

    def __init__(self, cortado):
        self.cortado, self.ends = cortado, {}

    def end(self, ranks, strategy):
        if (ranks, strategy) not in self.ends:
            with tempfile.TemporaryDirectory(prefix="cortado-calm-") as name:
                folder = pathlib.Path(name)
                make_folder(self.cortado, folder)
                begin = time.monotonic()
                subprocess.run(command(self.cortado, ranks, strategy), cwd=folder, check=True,
                               stdout=subprocess.DEVNULL)
                self.ends[ranks, strategy] = last_snapshot(folder), time.monotonic() - begin
        return self.ends[ranks, strategy]


class Job:
    """A training in a folder, and the processes that it has."""

    def __init__(self, cortado, folder, ranks, strategy):
        self.cortado, self.folder, self.ranks, self.strategy = cortado, folder, ranks, strategy
        self.log = open(folder / "out.txt", "ab")
        self.process, self.by_hand = None, 0

    def start(self, *more):
        words = command(self.cortado, self.ranks, self.strategy, "--restarts", "100", "--stall-timeout",
                        str(STALL_SECONDS), *more)
        self.process = subprocess.Popen(words, cwd=self.folder, stdout=self.log, stderr=self.log)

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
            if pid == self.process.pid or not re.match("cortado|mpiexec|mpirun|hydra|orted|prted|prterun", name):
                continue
            ranks = [int(word.split(b"=")[1]) for word in environment
                     if re.fullmatch(rb"(PMI_RANK|OMPI_COMM_WORLD_RANK)=\d+", word)]
            found.append((pid, name, ranks[0] if ranks and name == "cortado" else None))
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
        end = time.monotonic() + 20
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


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def damage_newest(job, draw):
    for file in job.snapshots()[:1]:
        try:
            size = file.stat().st_size
            with open(file, "r+b") as content:
                content.seek(draw.randrange(size))
                content.write(draw.randbytes(8))
        except (OSError, ValueError):
            pass  # it was just replaced


def fill_disk(job, draw):
    """No byte is left; room again after a while. The filler lies beside the snapshots."""
    filler = job.folder / "kept/filler"
    try:
        with open(filler, "wb", buffering=0) as file:
            while file.write(b"\0" * (1 << 16)):
                pass
    except OSError:
        pass
    time.sleep(draw.uniform(0.3, 1))
    filler.unlink()


def meet(job, kind, draw, has_disk):
    """Brings a fault about; false where there was nothing that it could happen to."""
    if kind == "disk" and not has_disk:
        kind = "rank"
    processes = job.processes()
    ranks = [pid for pid, _, rank in processes if rank is not None]
    others = [pid for pid, _, rank in processes if rank is None]
    choice = draw.random()
    pick = lambda pids: pids[int(choice * len(pids))]
    if kind == "launcher":
        if not others:
            return False
        send(pick(others), signal.SIGKILL)
    elif kind == "command":
        job.process.kill()
    elif kind == "disk":
        fill_disk(job, draw)
    elif not ranks:
        return False
    else:
        if kind == "damage":
            damage_newest(job, draw)
        victim = pick(ranks)
        send(victim, signal.SIGSTOP if kind in ("pause", "stop") else signal.SIGKILL)
        if kind == "pause":
            time.sleep(draw.uniform(0.1, 1))
            send(victim, signal.SIGCONT)
    return True


def check_end(job, code):
    """A command that has ended by a fault which no restart mends is started by hand."""
    if code == -signal.SIGKILL:
        return
    errors = re.findall(r"^cortado: error: (.*)$", job.text(), re.M)
    if code == 2 and errors and re.search("No space left|no sound earlier snapshot", errors[-1]):
        if "no sound earlier snapshot" in errors[-1]:
            for file in job.snapshots():
                file.unlink()
        return
    if code == 3 and errors and "0 of " in errors[-1]:
        return  # the launcher's process was killed before it had started any
    raise Fault(f"the command ended with exit code {code}: {errors[-1:] or 'no message'}")


def run(cortado, calm, seed, most_faults, folder, has_disk):
    draw = random.Random(seed)
    ranks, strategy = draw.choice([2, 3]), draw.choice(["data", "model", "owt"])
    faults = [draw.choice(FAULTS) for _ in range(draw.randint((most_faults + 1) // 2, most_faults))]
    expected, seconds = calm.end(ranks, strategy)
    limit = LEAST_LIMIT + CALM_RUNS * seconds
    longest_calm = min(3, 1.5 * seconds / len(faults))  # between two faults
    make_folder(cortado, folder)
    if has_disk:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "chaos", folder / "kept"], check=True)
    job, met = Job(cortado, folder, ranks, strategy), []
    begin = time.monotonic()
    print(f"seed {seed}: {ranks} ranks, {strategy}: {' '.join(faults)}", end="", flush=True)
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
                if meet(job, faults[0], draw, has_disk):
                    met.append(faults.pop(0))
                due = time.monotonic() + draw.uniform(0, longest_calm)
            time.sleep(0.02)
        job.wait_until_none_is_left()
        if last_snapshot(folder) != expected:
            raise Fault("the last snapshot is not that of the calm training")
    finally:
        job.end_all()
        restarts = len(re.findall(r"starting again on", job.text()))
        print(f"; met {len(met)}, {restarts} restarts, {job.by_hand} by hand, {time.monotonic() - begin:.0f} s",
              flush=True)


def may_mount():
    """Whether this process may have a file system of its own to fill."""
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run(["mount", "-t", "tmpfs", "chaos", folder], stderr=subprocess.DEVNULL, check=False).returncode:
            return False
        subprocess.run(["umount", folder], check=True)
        return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cortado")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--faults", type=int, default=10)
    parser.add_argument("--keep", action="store_true", help="leave the folders of runs that failed")
    arguments = parser.parse_args()
    cortado = str(pathlib.Path(arguments.cortado).resolve())
    first = random.randrange(1 << 30) if arguments.seed is None else arguments.seed
    calm, failed, has_disk = CalmRuns(cortado), [], may_mount()
    if not has_disk:
        print("a full disk is left out: a file system of its own needs root")
    for seed in range(first, first + arguments.runs):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="cortado-chaos-")).resolve()
        try:
            run(cortado, calm, seed, arguments.faults, folder, has_disk)
        except Fault as fault:
            failed.append(seed)
            print(f"seed {seed} FAILED: {fault}")
            print("".join("  | " + line + "\n" for line in (folder / "out.txt").read_text(errors="replace").split("\n")[-40:]))
        finally:
            if has_disk and not (arguments.keep and failed[-1:] == [seed]):
                subprocess.run(["umount", folder / "kept"], stderr=subprocess.DEVNULL, check=False)
            if arguments.keep and failed[-1:] == [seed]:
                print(f"its folder: {folder}")
            else:
                shutil.rmtree(folder, ignore_errors=True)
    print(f"{arguments.runs} runs, {len(failed)} failed{': seeds ' + str(failed) if failed else ''}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
