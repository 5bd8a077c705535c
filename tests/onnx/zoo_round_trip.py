#!/usr/bin/env python3
"""Nets of the zoo go to ONNX and back, and give the same outputs.

    tests/onnx/zoo_round_trip.py --runner build/dev/tests/onnx/onnx_run [--onnxruntime FOLDER] [NAME...]

onnx_run gives each net random weights and inputs, exports it, imports what it wrote and runs both. onnx.checker must
accept the model, and infer the shapes of its outputs. With --onnxruntime, a folder where `npm install --ignore-scripts
onnxruntime-node` was run, that runtime must give the outputs, too. Without names all nets are compared; it says how long
that took. Needs Debian's python3-onnx; exits 77 where it is missing.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
    import onnx
except ImportError as error:
    print(f"skipped: {error} (Debian's packages belong to /usr/bin/python3; this is {sys.executable})")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/golden"))
import safetensors_io  # noqa: E402

TOLERANCE = 1e-5


def difference(before, after):
    """The largest one between outputs of the same names, relative to their largest value."""
    if sorted(before) != sorted(after):
        raise ValueError(f"outputs {sorted(before)} became {sorted(after)}")
    return max(float(np.abs(before[key] - after[key].reshape(before[key].shape)).max() / max(1, np.abs(before[key]).max())) for key in before)


def run_onnxruntime(modules, folder):
    """What the runtime gives. Its command ends with 1 and a line where it refuses the model."""
    program = ["node", str(pathlib.Path(__file__).with_name("run_onnx.js")), str(folder)]
    done = subprocess.run(program, env={**os.environ, "NODE_PATH": str(modules / "node_modules")}, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"onnxruntime: {done.stderr.strip()}")
    return safetensors_io.read(folder / "onnxruntime.safetensors")[0]


def compare(name, arguments, folder):
    subprocess.run([arguments.runner.resolve(), "--net", ROOT / "models" / name / "deploy.prototxt", folder, "1"], check=True)
    model = onnx.load(str(folder / "back.onnx"))
    onnx.checker.check_model(model, full_check=True)
    before, _ = safetensors_io.read(folder / "output.safetensors")
    if not all(np.isfinite(values).all() and values.any() for values in before.values()):
        raise ValueError("the net's own outputs are all zero or not finite")
    found = {"there and back": difference(before, safetensors_io.read(folder / "again.safetensors")[0])}
    if arguments.onnxruntime:
        found["onnxruntime"] = difference(before, run_onnxruntime(arguments.onnxruntime.resolve(), folder))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", required=True, type=pathlib.Path, help="onnx_run")
    parser.add_argument("--onnxruntime", type=pathlib.Path, help="the folder that has node_modules/onnxruntime-node")
    parser.add_argument("names", nargs="*", help="which nets (default: all)")
    arguments = parser.parse_args()
    names = arguments.names or sorted(path.parent.name for path in (ROOT / "models").glob("*/deploy.prototxt"))
    failures, start = 0, time.monotonic()
    for name in names:
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as temporary:
            try:
                found = compare(name, arguments, pathlib.Path(temporary))
                good = all(value < TOLERANCE for value in found.values())
                line = "largest difference " + ", ".join(f"{which} {value:.1e}" for which, value in found.items())
            except Exception as problem:  # noqa: BLE001: one net must not hide the others
                good, line = False, str(problem).splitlines()[-1]
        print(f"{'' if good else 'FAILED: '}{name}: {line} ({time.monotonic() - begin:.1f} s)", flush=True)
        failures += not good
    print(f"{len(names)} nets, {failures} faults, {time.monotonic() - start:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
