#!/usr/bin/env python3
"""Nets of the zoo go to ONNX and back, and give the same outputs.

    tests/onnx/zoo_round_trip.py --runner build/dev/tests/onnx/onnx_run [NAME...]

onnx_run gives each net random weights and inputs, exports it, imports what it wrote and runs both. onnx.checker must
accept the model, and infer the shapes of its outputs. Without names all nets are compared. Needs Debian's python3-onnx;
exits 77 where it is missing.
"""

import argparse
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


def compare(name, runner, folder):
    subprocess.run([runner, "--net", ROOT / "models" / name / "deploy.prototxt", folder, "1"], check=True)
    model = onnx.load(str(folder / "back.onnx"))
    onnx.checker.check_model(model, full_check=True)
    before, _ = safetensors_io.read(folder / "output.safetensors")
    after, _ = safetensors_io.read(folder / "again.safetensors")
    if sorted(before) != sorted(after):
        raise ValueError(f"outputs {sorted(before)} became {sorted(after)}")
    if not all(np.isfinite(values).all() and values.any() for values in before.values()):
        raise ValueError("the net's own outputs are all zero or not finite")
    return max(float(np.abs(before[key] - after[key]).max() / max(1, np.abs(before[key]).max())) for key in before)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", required=True, type=pathlib.Path, help="onnx_run")
    parser.add_argument("names", nargs="*", help="which nets (default: all)")
    arguments = parser.parse_args()
    names = arguments.names or sorted(path.parent.name for path in (ROOT / "models").glob("*/deploy.prototxt"))
    failures = 0
    for name in names:
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as temporary:
            try:
                difference = compare(name, arguments.runner.resolve(), pathlib.Path(temporary))
                good, line = difference < TOLERANCE, f"largest difference {difference:.1e}"
            except Exception as problem:  # noqa: BLE001: one net must not hide the others
                good, line = False, str(problem).splitlines()[-1]
        print(f"{'' if good else 'FAILED: '}{name}: {line} ({time.monotonic() - begin:.1f} s)", flush=True)
        failures += not good
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
