#!/usr/bin/env python3
"""Gives a command random options and values. It must end in time, with an exit code that it documents, and where that is
2 with one line that begins with "cortado: error:".

    fuzz_command.py CORTADO SECONDS [SEED]

Each call runs in a folder of its own, with small files to be named. What would only take long is bounded (--iterations and
the like), and what starts other programs gets programs that do nothing.
"""

import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 60  # seconds of a call
COMMANDS = ["train", "test", "classify", "extract", "time", "verify", "plan", "machine", "simulate", "show", "data", "convert", "device_query",
            "help", "device-query", "", "trian"]
DATA = ["images", "folders", "cifar", "mnist", "leveldb", "generate", "mean"]
NET = """input: "data" input_shape { dim: 2 dim: 3 dim: 8 dim: 8 } input: "label" input_shape { dim: 2 }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param { num_output: 4 kernel_size: 3 } }
layer { name: "fc" type: "InnerProduct" bottom: "conv" top: "fc" inner_product_param { num_output: 3 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" top: "loss" }
"""
FILES = {"net.prototxt": NET, "solver.prototxt": 'net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 2 snapshot_prefix: "s"\n',
         "empty": "", "strategy.json": '{"rules": [{"layers": "*", "cut": {"n": 2}}]}', "broken.json": "{", "words.txt": "a\nb\nc\n",
         "list.txt": "a.jpg 0\nb.png 1\n"}
VALUES = [*FILES, "nosuch", ".", "", "-", "--", "0", "1", "2", "-1", "1e9", "99999999999999999999", "nan", "1:2", "3x8x8", "0x0", "3x8x8,2", "x", "a,b",
          "data", "auto", "owt", "model", "spatial", "random:1", "random:", "n2", "conv=n2", "fc*", "cpu", "gpu:0", "emulated", "f32", "bf16", "caffe",
          "plain", "hdf5", "json", "4MiB", "1gbit", "50%", "lassen", "local", "layer-wise-p100", "devices=1..4", "batch=1,2", "base_lr=1", "base_lr=",
          "no_field=1", "max_iter=1", "\u00e9", "a b", "'", '"', "%s", "$(", "/dev/null", "/dev/full", "/proc/self/mem", "x" * 3000]
LITTLE = ["0", "1", "2", "3", "-1", "x", ""]
BOUNDED = {"--iterations", "--ranks", "--threads", "--reader-threads", "--restarts", "--min-ranks", "--devices", "--batch", "--test-batch", "--rounds",
           "--frontier-points", "--samples", "--most-simulated", "--stall-timeout", "--peer-timeout", "--count", "--size", "--classes", "--seconds"}
PROGRAMS = ["true", "false", "nosuch-launcher", "echo x", "'", "", "sh -c exit"]
GOOD = ["--solver solver.prototxt", "--model net.prototxt", "--batch 2", "--iterations 1", "--ranks 2", "--machine lassen", "--devices 2"]


def options_of(cortado, words):
    text = subprocess.run([cortado, *words, "--help"], capture_output=True, text=True, check=False).stdout
    return [(name, rest) for name, rest in re.findall(r"^ +(?:-\w,)?(--[a-z][\w-]*)([^\n]*)", text, re.M)]


def value(draw, option):
    if option == "--launch":
        return draw.choice(PROGRAMS)
    return draw.choice(LITTLE if option in BOUNDED else VALUES)


def words_of(draw, known, commands):
    command = draw.choice(commands)
    words = command.split()
    for good in draw.sample(GOOD, draw.randrange(4)):
        name = good.split()[0]
        if any(name == option for option, _ in known[command]):
            words += good.split()
    for _ in range(draw.randrange(5)):
        options = known[command] or [("--what", "")]
        option, rest = draw.choice(options) if draw.random() < 0.95 else ("--" + draw.choice(VALUES)[:20], " TEXT")
        words.append(option if draw.random() < 0.9 else f"{option}={value(draw, option)}")
        if re.match(r" ?[A-Z]", rest) and draw.random() < 0.95:
            words.append(value(draw, option))
    for _ in range(draw.choice([0, 0, 0, 1, 2])):
        words.insert(draw.randrange(len(words) + 1), draw.choice(VALUES))
    return words


def fault_of(code, errors, output):
    if code not in (0, 2, 3):
        return f"exit code {code}"
    if "Sanitizer" in errors or "runtime error" in errors:
        return "a sanitizer's report"
    told = [line for line in errors.splitlines() if line.startswith("cortado: error:")]
    if code == 2 and len(told) != 1:
        return f"exit code 2 with {len(told)} lines of errors"
    if code == 0 and told:
        return "an error with exit code 0"
    return "internal error" if "internal error" in errors + output else None


def main():
    cortado, seconds = str(pathlib.Path(sys.argv[1]).resolve()), float(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    commands = [command for command in COMMANDS if command != "data"] + [f"data {kind}" for kind in DATA]
    known = {command: options_of(cortado, command.split()) for command in commands}
    begin, calls, codes = time.monotonic(), 0, {}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": "cache", "HOME": "."}
    while time.monotonic() - begin < seconds:
        draw = random.Random(seed)
        with tempfile.TemporaryDirectory() as folder:
            for name, text in FILES.items():
                pathlib.Path(folder, name).write_text(text)
            words = words_of(draw, known, commands)
            try:
                done = subprocess.run([cortado, *words], cwd=folder, env=environment, capture_output=True, text=True, errors="replace",
                                      stdin=subprocess.DEVNULL, timeout=LIMIT, check=False)
                fault = fault_of(done.returncode, done.stderr, done.stdout)
            except subprocess.TimeoutExpired as late:
                done, fault = late, f"it takes over {LIMIT} s"
        if fault:
            print(done.stderr[-4000:] if isinstance(done.stderr, str) else done.stderr)
            print(f"FAILED: {fault}: seed {seed}: cortado {words}")
            return 1
        calls, seed = calls + 1, seed + 1
        codes[done.returncode] = codes.get(done.returncode, 0) + 1
    print(f"fuzz_command: {calls} calls, exit codes {dict(sorted(codes.items()))}; no fault in {time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
