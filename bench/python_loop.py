#!/usr/bin/env python3
"""Compares a loop of solver.step(1) in Python, as programs for pycaffe have it, with `cortado train` on the same solver.

    bench/python_loop.py --cortado build/release/cortado --package build/release/python

The net is cifar10_quick at batch 100 (--model, --batch name another of the zoo) on DummyData, so that reading costs nothing
and hides nothing. Each round runs, in turns, the command for few and for many iterations, whose difference leaves out its
start, and the loop after as many first steps. It prints images/s of each round, and the median of the ratios (loop / command).
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

MODELS = pathlib.Path(__file__).resolve().parents[1] / "models"
SOLVER = """net: "net.prototxt" base_lr: 0.001 lr_policy: "fixed" momentum: 0.9 weight_decay: 0.004 random_seed: 1
max_iter: {iterations} snapshot_after_train: false
"""


def net_text(model, batch):
    """The training net, with a DummyData layer in place of its Data layers."""
    deploy = (MODELS / model / "deploy.prototxt").read_text()
    shape = " ".join(f"dim: {extent}" for extent in [batch, *re.findall(r"dim: (\d+)", deploy)[1:4]])
    data = (f'layer {{ name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param {{\n'
            f'  shape {{ {shape} }} shape {{ dim: {batch} }}\n'
            f'  data_filler {{ type: "constant" value: 0.5 }} data_filler {{ type: "constant" value: 3 }} }} }}\n')
    layers = re.findall(r"^layer \{\n.*?^\}\n", (MODELS / model / "train_val.prototxt").read_text(), re.S | re.M)
    kept = [layer for layer in layers if 'type: "Data"' not in layer and "phase: TEST" not in layer]
    return data + "".join(kept)


def command_seconds(program, folder, iterations, threads):
    (folder / "command.prototxt").write_text(SOLVER.format(iterations=iterations))
    begin = time.perf_counter()
    subprocess.run([program, "train", "--solver", "command.prototxt", "--threads", str(threads)], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


LOOP = """
import sys, time
import cortado.caffe as caffe
solver = caffe.get_solver("loop.prototxt")
few, many = int(sys.argv[1]), int(sys.argv[2])
for _ in range(few):
    solver.step(1)
begin = time.perf_counter()
for _ in range(many - few):
    solver.step(1)
print(time.perf_counter() - begin)
"""


def loop_seconds(package, folder, few, many, threads):
    (folder / "loop.prototxt").write_text(SOLVER.format(iterations=many))
    environment = {**os.environ, "PYTHONPATH": package, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run([sys.executable, "-c", LOOP, str(few), str(many)], cwd=folder, env=environment, check=True,
                          capture_output=True, text=True)
    return float(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cortado", required=True, help="the program")
    parser.add_argument("--package", required=True, help="the folder that has the package cortado")
    parser.add_argument("--model", default="cifar10_quick")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--few", type=int, default=20)
    parser.add_argument("--many", type=int, default=220)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    program, package = (str(pathlib.Path(path).resolve()) for path in (arguments.cortado, arguments.package))
    images, ratios = (arguments.many - arguments.few) * arguments.batch, []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "net.prototxt").write_text(net_text(arguments.model, arguments.batch))
        for number in range(arguments.rounds):
            def command():
                few, many = (command_seconds(program, folder, n, arguments.threads) for n in (arguments.few, arguments.many))
                return images / (many - few)

            def loop():
                return images / loop_seconds(package, folder, arguments.few, arguments.many, arguments.threads)

            if number % 2 == 0:
                by_command, by_loop = command(), loop()
            else:
                by_loop, by_command = loop(), command()
            ratios.append(by_loop / by_command)
            print(f"command {by_command:.0f} images/s, loop {by_loop:.0f} images/s, ratio {ratios[-1]:.3f}", flush=True)
    print(f"median ratio {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()
