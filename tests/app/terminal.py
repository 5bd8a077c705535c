"""The progress of `cortado train` and `cortado time` on terminals of several widths: nothing that is redrawn in place
is wider than the terminal, also when its width changes, alone and on ranks."""
import fcntl
import os
import pathlib
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time

CORTADO, RANKS = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2] == "ranks"

NET = """name: "small"
layer { name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param { shape { dim: 64 dim: 8 dim: 24 dim: 24 } shape { dim: 64 }
    data_filler { type: "gaussian" std: 1 } data_filler { type: "constant" value: 1 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "score" type: "InnerProduct" bottom: "conv" top: "score"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" }
"""
SOLVER = """net: "net.prototxt" base_lr: 0.0001 lr_policy: "fixed" max_iter: 100000000 display: 0
snapshot_prefix: "small" snapshot_after_train: false
"""


def check(good, text):
    if not good:
        sys.exit(f"terminal: {text}")


def set_width(terminal, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


class Run:
    """A command on a terminal of its own. The width changes while it runs."""

    def __init__(self, folder, words, columns):
        self.master, terminal = pty.openpty()
        set_width(self.master, columns)
        self.process = subprocess.Popen([CORTADO, *words], cwd=folder, stdin=terminal, stdout=terminal,
                                        stderr=terminal, start_new_session=True)
        os.close(terminal)
        self.text = ""

    def read(self, seconds):
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            self.text += os.read(self.master, 65536).decode()
        except OSError:  # the other side is closed
            return False
        return True

    def until(self, wanted, limit=120):
        """Reads until `wanted` redraws of a bar have been read since now; gives them."""
        self.text = ""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            open_end = self.read(0.1)
            bars = drawn(self.text)[:-1]  # the last may be cut short
            if len(bars) >= wanted:
                return bars
            check(open_end, f"ended early: {self.text!r}")
        sys.exit(f"terminal: no progress: {self.text!r}")

    def stop(self):
        self.process.terminate()
        while self.process.poll() is None:
            if not self.read(0.1):
                break
        self.process.wait(60)
        os.close(self.master)


def drawn(text):
    return [piece for piece in re.split(r"[\r\n]|\x1b\[K", text) if piece.startswith("[")]


def check_bars(bars, columns, what):
    longest = max(map(len, bars))
    check(longest < columns, f"{what}: {longest} wide on {columns} columns: {max(bars, key=len)!r}")
    for bar in bars:
        check(re.match(r"\[#*\.*\] \d+/\d+  ", bar), f"{what}: {bar!r}")


def check_training(folder, more, what):
    run = Run(folder, ["train", "--solver", "solver.prototxt", "--threads", "1", *more], 120)
    widths = {}
    try:
        for columns in (120, 80, 60, 40, 100):
            set_width(run.master, columns)
            bars = run.until(4)[1:]  # the first may be of the width before
            check_bars(bars, columns, what)
            widths[columns] = max(map(len, bars))
            check("loss" in bars[-1], f"{what}, {columns} columns: {bars[-1]!r}")
            check(columns < 80 or "images/s" in bars[-1], f"{what}, {columns} columns: {bars[-1]!r}")
    finally:
        run.stop()
    check(widths[100] > widths[60], f"{what}: the bar does not grow with the terminal: {widths}")


def check_time(folder):
    run = Run(folder, ["time", "--model", "net.prototxt", "--threads", "1", "--iterations", "1000000"], 60)
    try:
        check_bars(run.until(3), 60, "time")
    finally:
        run.stop()


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "net.prototxt").write_text(NET)
    (folder / "solver.prototxt").write_text(SOLVER)
    check_training(folder, [], "train")
    check_time(folder)
    if RANKS:
        check_training(folder, ["--ranks", "2", "--strategy", "data"], "train on ranks")
