"""Hosts of this machine, made of network namespaces on a switch of their own. Needs root and iproute2."""

import contextlib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

BURSTS = [(5e9, "256kb limit 8mb"), (5e8, "128kb limit 1mb"), (0, "64kb limit 512kb")]  # reach 0.95 of the rate
# Packets are work for the cores here, which cards and switches do in a cluster: with 1500 bytes, 12 % of their time.
MTU = 9000


def run(command, **options):
    return subprocess.run(shlex.split(command) if isinstance(command, str) else [str(w) for w in command],
                          check=True, capture_output=True, text=True, **options)


class Hosts:
    """Network namespaces ctdPID-0, ctdPID-1, ... with addresses 10.77.0.10 and up, on a switch of their own, ctdPID-sw. Those of
    processes that have ended are removed before."""

    def __init__(self, count, rate):
        burst = None if rate == "none" else burst_of(rate)
        self.count = count
        self.folder = tempfile.TemporaryDirectory(prefix="cortado-network-")
        self.name, self.switch = f"ctd{os.getpid()}-", f"ctd{os.getpid()}-sw"
        self.down()
        run(f"ip netns add {self.switch}")
        run(f"ip -n {self.switch} link add br0 type bridge")
        run(f"ip -n {self.switch} link set br0 up")
        if pathlib.Path("/proc/sys/net/bridge").exists():  # packets are not shown to the firewall
            run(f"ip netns exec {self.switch} sysctl -q -w net.bridge.bridge-nf-call-iptables=0")
        for i in range(count):
            run(f"ip netns add {self.name}{i}")
            run(f"ip -n {self.name}{i} link add eth0 type veth peer name p{i} netns {self.switch}")
            run(f"ip -n {self.name}{i} link set lo up")
            run(f"ip -n {self.name}{i} addr add {self.address(i)}/24 dev eth0")
            run(f"ip -n {self.name}{i} link set eth0 mtu {MTU} up")
            run(f"ip -n {self.switch} link set p{i} mtu {MTU} master br0 up")
            if burst:
                run(f"ip netns exec {self.name}{i} tc qdisc replace dev eth0 root tbf rate {rate} burst {burst}")
                run(f"ip netns exec {self.switch} tc qdisc replace dev p{i} root tbf rate {rate} burst {burst}")
        self.shell = pathlib.Path(self.folder.name) / "rsh"
        self.shell.write_text(RSH.replace("NAME", self.name))
        self.shell.chmod(0o755)

    @staticmethod
    def address(i):
        return f"10.77.0.{10 + i}"

    def launcher(self):
        hosts = ",".join(self.address(i) for i in range(self.count))
        return (f"/usr/bin/mpiexec.hydra -disable-auto-cleanup -launcher rsh -launcher-exec {self.shell} -hosts {hosts} "
                "-ppn 1 -iface eth0 -genv UCX_TLS tcp,self -genv UCX_NET_DEVICES eth0")

    def options(self):
        return ["--no-bind", "--launch", self.launcher()]

    def within(self, command):
        return run([str(self.shell), self.address(0), shlex.join(str(word) for word in command)])

    def remove(self):
        self.down()
        self.folder.cleanup()

    def sent(self):
        total = 0
        for i in range(self.count):
            text = run(f"ip netns exec {self.name}{i} cat /sys/class/net/eth0/statistics/tx_bytes").stdout
            total += int(text)
        return total

    @contextlib.contextmanager
    def down_link(self, i):
        """Nothing reaches host i, nor leaves it, within the `with`."""
        run(f"ip -n {self.switch} link set p{i} down")
        try:
            yield
        finally:
            run(f"ip -n {self.switch} link set p{i} up")

    @contextlib.contextmanager
    def lossy_link(self, i, percent):
        """So many of the packets to and from host i are lost within the `with`. Needs nft(8)."""
        nft = f"ip netns exec {self.name}{i} nft"
        run(f"{nft} add table inet loss")
        try:
            for hook in ("input", "output"):
                run([*nft.split(), f"add chain inet loss {hook} {{ type filter hook {hook} priority 0; }}"])
                run(f"{nft} add rule inet loss {hook} meta oifname != lo meta iifname != lo numgen random mod 100 < {percent} drop")
            yield
        finally:
            run(f"{nft} delete table inet loss")

    @contextlib.contextmanager
    def slow_link(self, i, rate, queue):
        """Host i receives at `rate` and through a queue of `queue` (tc-tbf(8)'s latency) within the `with`. For links without a rate."""
        run(f"ip netns exec {self.switch} tc qdisc replace dev p{i} root tbf rate {rate} burst 32kb latency {queue}")
        try:
            yield
        finally:
            run(f"ip netns exec {self.switch} tc qdisc del dev p{i} root")

    @staticmethod
    def down():
        names = run("ip netns list").stdout.split()
        for name in names:
            owner = re.fullmatch(r"ctd(\d+)-(sw|\d+)", name)
            if owner and (int(owner[1]) == os.getpid() or not pathlib.Path("/proc", owner[1]).exists()):
                run(f"ip netns del {name}")


# Stands in for ssh in the launcher: runs a command in the namespace of an address, on one core, under its own host name.
RSH = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do case "$1" in -l|-o|-p) shift 2;; *) shift;; esac; done
i=$(( ${1##*.} - 10 )); shift
exec ip netns exec NAME$i unshare --uts sh -c 'hostname ctd$0; exec taskset -c $(($0 % $(nproc --all))) /bin/sh -c "$1"' $i "$*"
"""


def bits_per_second(rate):
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg])bit", rate)
    if not found:
        raise SystemExit(f"{sys.argv[0]}: '{rate}' is no rate of a link; give one as 100mbit or 1gbit, or none")
    return float(found[1]) * {"k": 1e3, "m": 1e6, "g": 1e9}[found[2]]


def burst_of(rate):
    return next(text for least, text in BURSTS if bits_per_second(rate) >= least)
