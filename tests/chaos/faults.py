"""What may happen to a training (chaos.py), and what a machine must have for it.

    rank      SIGKILL of a rank                     pause     SIGSTOP of a rank, SIGCONT within a second
    stop      SIGSTOP of a rank for good            launcher  SIGKILL of the launcher, or of its process
    command   SIGKILL of the command itself         damage    bytes of the newest snapshot change, then a rank is killed
    memory    a rank gets no more memory for a while
    disk      the disk is full for a while          slow      the disk does not answer for a while
    clock     the clock jumps by up to a day
    down      a host's link is down for a while     loss      it loses one packet in twenty to five for a while
    narrow    it gets 2 Mbit/s, after a queue of up to 200 ms, for a while
    cut       it is down until the host is lost; of --reproducible runs alone, since fewer ranks go on
"""

import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import time

ANYWHERE = ["rank", "rank", "pause", "stop", "launcher", "command", "damage", "memory"]
DISK_BYTES = 64 << 20


def choices(disk, jumps, hosts, reproducible):
    """Kinds of faults that can happen here."""
    return (ANYWHERE + (["disk"] if disk.kind else []) + (["slow"] if disk.kind == "ext4" else [])
            + (["clock"] if jumps else []) + (["down", "narrow"] + ["loss"] * bool(shutil.which("nft")) + ["cut"] * reproducible if hosts else []))


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def tried(*words):
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


class Disk:
    """A file system of a run's own: ext4 in a file, or else in memory (tmpfs), or none."""

    def __init__(self):
        self.kind = None
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for self.kind in ("ext4", "tmpfs"):
                if self.mount(folder / self.kind):
                    self.unmount(folder / self.kind)
                    return
        self.kind = None

    def mount(self, folder):
        folder.mkdir(exist_ok=True)
        if self.kind != "ext4":
            return self.kind is None or tried("mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "chaos", folder)
        image = folder.parent / "disk"
        with open(image, "wb") as file:
            file.truncate(DISK_BYTES)
        return tried("mkfs.ext4", "-q", "-m", "0", image) and tried("mount", "-o", "loop", image, folder)

    def unmount(self, folder):
        if self.kind:
            tried("umount", folder)


class Jumps:
    """The clock of a training's processes, by Debian's faketime."""

    LIBRARY = pathlib.Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")

    def __init__(self, folder):
        self.file = folder / "clock"
        self.to(0)

    def to(self, seconds):
        replacement = self.file.with_suffix(".new")
        replacement.write_text(f"{seconds:+d}\n")
        replacement.rename(self.file)

    def environment(self):
        return {"LD_PRELOAD": str(self.LIBRARY), "FAKETIME_TIMESTAMP_FILE": str(self.file), "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_RESET": "1"}


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


def freeze_disk(job, draw):
    if tried("fsfreeze", "-f", job.folder / "kept"):
        time.sleep(draw.uniform(0.3, 3))
        tried("fsfreeze", "-u", job.folder / "kept")


def deny_memory(pid, draw):
    """What the process has stays; more than 1 to 64 MiB it cannot get."""
    try:
        pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[0])
        _, most = resource.prlimit(pid, resource.RLIMIT_AS)
        resource.prlimit(pid, resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << draw.randint(20, 26)), most))
        time.sleep(draw.uniform(0.3, 1))
        resource.prlimit(pid, resource.RLIMIT_AS, (most, most))
    except (OSError, ProcessLookupError):
        pass  # it has ended


def disturb_link(hosts, kind, draw, until_lost):
    link, seconds = draw.randrange(hosts.count), draw.uniform(0.2, 3)
    disturbed = {"loss": lambda: hosts.lossy_link(link, draw.randint(5, 20)), "narrow": lambda: hosts.slow_link(link, "2mbit", "200ms")}
    with disturbed.get(kind, lambda: hosts.down_link(link))():
        time.sleep(until_lost if kind == "cut" else seconds)


def meet_rank(job, kind, victim, draw):
    if kind == "memory":
        deny_memory(victim, draw)
        return
    if kind == "damage":
        damage_newest(job, draw)
    send(victim, signal.SIGSTOP if kind in ("pause", "stop") else signal.SIGKILL)
    if kind == "pause":
        time.sleep(draw.uniform(0.1, 1))
        send(victim, signal.SIGCONT)


def meet(job, kind, draw, until_lost):
    """Brings a fault about; false where there was nothing that it could happen to. A cut lasts for `until_lost` seconds."""
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
    elif kind == "slow":
        freeze_disk(job, draw)
    elif kind == "clock":
        job.jumps.to(draw.choice([-1, 1]) * draw.choice([2, 3600, 86400]))
    elif kind in ("down", "loss", "narrow", "cut"):
        disturb_link(job.hosts, kind, draw, until_lost)
    elif not ranks:
        return False
    else:
        meet_rank(job, kind, pick(ranks), draw)
    return True
