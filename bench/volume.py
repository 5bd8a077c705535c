#!/usr/bin/env python3
"""Trains a narrow 3D U-Net on a volume cut along depth, height and width, and shows what memory each rank takes.

    bench/volume.py --cortado build/cortado
    bench/volume.py --cortado build/cortado --extent 256 --channels 4 --iterations 5 --out report/volume

Writes one float volume of EXTENT^3 voxels with its labels as HDF5 (0.5 GiB each at 512), trains on it with d2 h2 w2 on 8
ranks and on one rank, and samples the peak resident memory of each process (VmHWM) while they run. The losses of both
must agree. It fails where a rank takes more than a quarter of what one rank takes for the whole. `--out NAME` writes
NAME.md and NAME.json. Needs Debian's python3-h5py and python3-numpy.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import h5py
import numpy

LIMIT = 0.25  # of the whole's
CLASSES = 2


def write_volume(path, extent):
    """A smooth field plane by plane, and as labels where it is positive: no two tiles are equal."""
    phase = numpy.linspace(0, 9, extent, dtype=numpy.float32)
    plane = numpy.sin(phase)[:, None] + numpy.cos(1.7 * phase)[None, :]
    shape = (1, 1, extent, extent, extent)
    with h5py.File(path, "w") as file:
        data = file.create_dataset("data", shape, "f4")
        label = file.create_dataset("label", shape, "u1")
        for d in range(extent):
            values = plane + numpy.sin(2.3 * phase[d])
            data[0, 0, d] = values
            label[0, 0, d] = values > 0


def layer(name, kind, bottoms, options="", tops=None):
    blobs = "".join(f' bottom: "{bottom}"' for bottom in bottoms) + "".join(f' top: "{top}"' for top in tops or [name])
    return f'layer {{ name: "{name}" type: "{kind}"{blobs} {options} }}\n'


def convolution(name, bottom, outputs, kernel=3):
    return layer(name, "Convolution", [bottom],
                 f"convolution_param {{ num_output: {outputs} kernel_size: {kernel} pad: {kernel // 2} "
                 'weight_filler { type: "msra" } }') + \
        layer(f"{name}_relu", "ReLU", [name], tops=[name])


def u_net(source, channels, levels):
    text = 'name: "narrow 3D U-Net"\n' + layer(
        "data", "HDF5Data", [], f'hdf5_data_param {{ source: "{source}" batch_size: 1 }}', ["data", "label"])
    bottom = "data"
    for level in range(levels):
        text += convolution(f"down{level}", bottom, channels << level)
        text += layer(f"pool{level}", "Pooling", [f"down{level}"], "pooling_param { pool: MAX kernel_size: 2 stride: 2 }")
        bottom = f"pool{level}"
    text += convolution("bottom", bottom, channels << levels)
    bottom = "bottom"
    for level in reversed(range(levels)):
        text += layer(f"up{level}", "Deconvolution", [bottom],
                      f"convolution_param {{ num_output: {channels << level} kernel_size: 2 stride: 2 "
                      'weight_filler { type: "msra" } }')
        text += layer(f"join{level}", "Concat", [f"down{level}", f"up{level}"])
        text += convolution(f"merge{level}", f"join{level}", channels << level)
        bottom = f"merge{level}"
    text += layer("score", "Convolution", [bottom],
                  f"convolution_param {{ num_output: {CLASSES} kernel_size: 1 weight_filler {{ type: \"msra\" }} }}")
    return text + layer("loss", "SoftmaxWithLoss", ["score", "label"])


def peaks_below(process):
    """VmHWM in MiB of the processes below one, by their id: those that compute."""
    children, peaks = {}, {}
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:
            continue  # it has ended
        children.setdefault(int(fields["PPid"]), []).append((int(fields["Pid"]), fields))
    waiting = [process]
    while waiting:
        for child, fields in children.get(waiting.pop(), []):
            waiting.append(child)
            if "VmHWM" in fields and fields["Name"].strip().startswith("cortado"):
                peaks[child] = int(fields["VmHWM"].split()[0]) / 1024
    return peaks


def train(arguments, folder, ranks):
    """Seconds, losses, and the peak MiB of each rank, largest first."""
    command = [arguments.cortado, "train", "--solver", folder / "solver.prototxt", "--ranks", ranks, "--threads",
               max(1, arguments.threads // ranks)]
    if ranks > 1:
        command += ["--strategy", folder / "strategy.json"]
    began, peaks = time.monotonic(), {}
    with open(folder / "log", "w+") as log:
        process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=subprocess.STDOUT, cwd=folder)
        while process.poll() is None:
            for child, peak in peaks_below(os.getpid()).items():
                peaks[child] = max(peak, peaks.get(child, 0))
            time.sleep(0.1)
        log.seek(0)
        text = log.read()
    if process.returncode:
        sys.exit(text)
    losses = [float(loss) for loss in re.findall(r"Iteration \d+.*?loss = ([-+.e0-9]+)", text)]
    found = sorted(peaks.values(), reverse=True)[:ranks]  # the launcher, which computes nothing, is the smallest
    return {"seconds": time.monotonic() - began, "losses": losses, "peak_mib": found}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cortado", required=True, help="the command that is measured")
    parser.add_argument("--extent", type=int, default=512, help="voxels along each axis")
    parser.add_argument("--channels", type=int, default=1, help="of the first convolution")
    parser.add_argument("--levels", type=int, default=2, help="poolings")
    parser.add_argument("--iterations", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of all ranks together")
    parser.add_argument("--folder", help="where the volume is written (default: a temporary one)")
    parser.add_argument("--no-whole", action="store_true", help="do not train on one rank")
    parser.add_argument("--out", help="write OUT.md and OUT.json")
    arguments = parser.parse_args()
    arguments.cortado = os.path.abspath(arguments.cortado)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = pathlib.Path(name)
        write_volume(folder / "volume.h5", arguments.extent)
        (folder / "list").write_text(f"{folder / 'volume.h5'}\n")
        (folder / "net.prototxt").write_text(u_net(folder / "list", arguments.channels, arguments.levels))
        (folder / "solver.prototxt").write_text(
            f'net: "{folder / "net.prototxt"}" base_lr: 0.001 lr_policy: "fixed" max_iter: {arguments.iterations} '
            "display: 1 snapshot_after_train: false random_seed: 1\n")
        (folder / "strategy.json").write_text(json.dumps(
            {"format": "cortado-strategy", "version": 1, "ranks": 8, "layers": {"*": {"d": 2, "h": 2, "w": 2}}}))
        results = {"extent": arguments.extent, "volume_mib": 4 * arguments.extent**3 / 2**20,
                   "cut": train(arguments, folder, 8)}
        if not arguments.no_whole:
            results["whole"] = train(arguments, folder, 1)
    report(results, arguments)


def report(results, arguments):
    cut, whole = results["cut"], results.get("whole")
    lines = [f"Volume of {results['extent']}^3 floats: {results['volume_mib']:.0f} MiB, labels beside it. "
             f"{arguments.iterations} iterations, {arguments.threads} threads in all.", "",
             "| | s | peak MiB resident of each rank | losses |", "|---|---|---|---|"]
    for name, run in (("d2 h2 w2, 8 ranks", cut), ("1 rank", whole)):
        if run:
            lines.append(f"| {name} | {run['seconds']:.0f} | {' '.join(f'{peak:.0f}' for peak in run['peak_mib'])} | "
                         f"{' '.join(f'{loss:g}' for loss in run['losses'])} |")
    text, failed = "\n".join(lines) + "\n", []
    if whole:
        part = max(cut["peak_mib"]) / max(whole["peak_mib"])
        text += f"\nThe largest rank takes {part:.3f} of what one rank takes for the whole.\n"
        if part > LIMIT:
            failed.append(f"{part:.3f} is more than {LIMIT}")
        if not numpy.allclose(cut["losses"], whole["losses"], rtol=1e-4):
            failed.append(f"losses differ: {cut['losses']} and {whole['losses']}")
    print(text)
    if arguments.out:
        pathlib.Path(arguments.out).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(arguments.out + ".md").write_text(text)
        pathlib.Path(arguments.out + ".json").write_text(json.dumps(results, indent=2) + "\n")
    if failed:
        sys.exit("FAILED: " + "; ".join(failed))


if __name__ == "__main__":
    main()
