#!/usr/bin/env python3
"""Runs the commands that pages show in blocks of sh, in order, in a fresh copy of what a clone has: each must end with 0.

    tests/readme/readme_commands.py CORTADO PAGE...

What pages call files of yours (MNIST's, photographs, an old net and its weights) is made first. The copy of
examples/shapes has smaller batches: that commands end, and that files of the one are what the next one reads, does not
depend on them. Commands that measure are given less time.
"""

import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("examples", "models", "machines")

OLD_NET = """name: "old"
layers { layer { name: "data" type: "data" source: "photographs_lmdb" batchsize: 2 cropsize: 20 } top: "data" top: "label" }
layers { layer { name: "conv" type: "conv" num_output: 4 kernelsize: 3 } bottom: "data" top: "conv" }
layers { layer { name: "score" type: "innerproduct" num_output: 2 } bottom: "conv" top: "score" }
layers { layer { name: "loss" type: "softmax_loss" } bottom: "score" bottom: "label" }
"""
DEPLOY = """name: "small"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 24 dim: 24 } } }
layer { name: "score" type: "InnerProduct" bottom: "data" top: "score"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "score" top: "prob" }
"""
TRAIN = """layer { name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param { shape { dim: 2 dim: 3 dim: 24 dim: 24 } shape { dim: 2 } } }
layer { name: "score" type: "InnerProduct" bottom: "data" top: "score"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" }
"""


def blocks(text):
    """The commands of blocks that begin with ```sh, continued lines joined, comments left out."""
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M):
        for line in block.replace("\\\n", " ").splitlines():
            command = re.sub(r"\s#.*", "", line).strip()
            if command and not command.startswith("#"):
                yield command


def png(path, shade):
    """A picture of 30 x 30 in one colour."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes([shade, 255 - shade, 7]) * 30 for _ in range(30))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 30, 30, 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def shrink(folder):
    """Smaller batches, fewer of them in a test; nothing that a command names changes."""
    for name, pattern, small in (("train_val.prototxt", r"batch_size: \d+", "batch_size: 8"),
                                 ("solver.prototxt", r"test_iter: \d+", "test_iter: 2")):
        file = folder / "examples/shapes" / name
        text, count = re.subn(pattern, small, file.read_text())
        if count == 0:
            sys.exit(f"{file}: nothing is '{pattern}'")
        file.write_text(text)


def in_less_time(command):
    return command + " --seconds 1" if re.match(r"cortado machine\b(?!.*--seconds)", command) else command


def make_files_of_yours(folder, run):
    for label, name in enumerate(("cats", "dogs")):
        for i in range(3):
            png(folder / "photographs" / name / f"{i}.png", 100 * label + 10 * i)
    (folder / "train-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, 5, 28, 28) + bytes(5 * 28 * 28))
    (folder / "train-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, 5) + bytes(range(5)))
    (folder / "old.prototxt").write_text(OLD_NET)
    (folder / "deploy.prototxt").write_text(DEPLOY)
    (folder / "labels.txt").write_text("cats\ndogs\n")
    (folder / "small.prototxt").write_text(TRAIN)
    (folder / "small_solver.prototxt").write_text(
        'net: "small.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 1 snapshot_prefix: "net"')
    run("cortado train --solver small_solver.prototxt")
    (folder / "net_iter_1.caffemodel").rename(folder / "net.caffemodel")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    pages = sys.argv[2:]
    commands = [command for page in pages for command in blocks((ROOT / page).read_text())]
    if len(commands) < 15:
        sys.exit(f"{', '.join(pages)} show {len(commands)} commands in blocks of sh; more are expected")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name in FOLDERS:
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.caffemodel", "*.solverstate"))
        environment = {"CORTADO_CACHE": f"{folder}/cache"} | os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}"}

        def run(command):
            print(f"$ {command}", flush=True)
            result = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                    capture_output=True, text=True, timeout=300)
            if result.returncode != 0:
                sys.exit(f"ended with {result.returncode}:\n{(result.stdout + result.stderr)[-3000:]}")

        shrink(folder)
        make_files_of_yours(folder, run)
        for command in commands:
            run(in_less_time(command))
    print(f"{len(commands)} commands")


if __name__ == "__main__":
    main()
