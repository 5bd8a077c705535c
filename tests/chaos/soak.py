#!/usr/bin/env python3
"""Trains for hours while something happens every minute, then compares the end with a training that nothing disturbed.

    tests/chaos/soak.py CORTADO [--minutes 90] [--seed S] [--ranks 2] [--every 60]

Faults are those of chaos.py, one at a random moment of every minute. At the end the training is asked to stop (SIGINT),
and a calm training of as many iterations must end in the same bytes. It takes as long again or less.
"""

import argparse
import collections
import pathlib
import random
import re
import signal
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import chaos  # noqa: E402
from faults import Disk, Jumps, choices, meet  # noqa: E402
from hosts import Hosts  # noqa: E402

LONG = {"iterations": 1_000_000_000, "snapshot": 200}
KEPT = 5  # snapshots; the others are removed as a user would


def remove_old(job):
    for file in job.snapshots()[KEPT:]:
        file.unlink(missing_ok=True)


def go_on(job, code):
    chaos.check_end(job, code)
    job.go_on_by_hand()


def disturb(job, seconds, every, draw, possible):
    """Meets a fault in each `every` seconds until `seconds` have passed; returns how many of each kind."""
    met, begin = collections.Counter(), time.monotonic()
    for turn in range(int(seconds / every)):
        due, kind = begin + (turn + draw.uniform(0, 0.8)) * every, draw.choice(possible)
        while time.monotonic() < begin + (turn + 1) * every:
            code = job.process.poll()
            if code is not None:
                go_on(job, code)
            if kind and time.monotonic() > due and meet(job, kind, draw, 2 * chaos.PEER_SECONDS):
                met[kind] += 1
                kind = None
            time.sleep(0.05)
        remove_old(job)
        before = chaos.newest_iteration(job)
        print(f"{(time.monotonic() - begin) / 60:.0f} min: iteration {before}, {sum(met.values())} faults, {job.by_hand} starts by hand", flush=True)
    return met


def stop(job):
    """Asks for the end until there is one that was asked for."""
    while True:
        code = job.process.poll()
        if code is None:
            job.process.send_signal(signal.SIGINT)
            job.process.wait(chaos.LEAST_LIMIT)
        elif code == 0:
            return
        else:
            go_on(job, code)
            time.sleep(5)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cortado")
    parser.add_argument("--minutes", type=float, default=90)
    parser.add_argument("--every", type=float, default=60, help="seconds between faults")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--ranks", type=int, default=2)
    arguments = parser.parse_args()
    cortado = str(pathlib.Path(arguments.cortado).resolve())
    seed = random.randrange(1 << 30) if arguments.seed is None else arguments.seed
    draw, disk = random.Random(seed), Disk()
    can = chaos.Abilities(disk)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="cortado-soak-") as name, tempfile.TemporaryDirectory(prefix="cortado-soak-") as calm_name:
        folder, calm_folder = pathlib.Path(name).resolve(), pathlib.Path(calm_name).resolve()
        kind = chaos.Kind(arguments.ranks, "data", True)
        hosts, jumps = Hosts(kind.ranks, "none") if can.hosts else None, Jumps(folder) if can.jumps else None
        chaos.make_folder(cortado, folder)
        disk.mount(folder / "kept")
        job = chaos.Job(cortado, folder, kind, hosts, jumps, **LONG)
        try:
            job.start()
            met = disturb(job, arguments.minutes * 60, arguments.every, draw, choices(disk, jumps, hosts, True))
            stop(job)
            job.wait_until_none_is_left()
            end = chaos.newest_iteration(job)
            restarts = len(re.findall("starting again on", job.text()))
            chaos.make_folder(cortado, calm_folder)
            chaos.run_calm(cortado, calm_folder, kind, iterations=end, snapshot=0)
            same = chaos.last_snapshot(folder, end) == chaos.last_snapshot(calm_folder, end)
        finally:
            job.end_all()
            disk.unmount(folder / "kept")
            if hosts:
                hosts.remove()
    print(f"{end} iterations, {dict(met)}, {restarts} restarts, {job.by_hand} starts by hand; "
          f"{'the same bytes as' if same else 'OTHER BYTES THAN'} the calm training's")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
