#!/usr/bin/env python3
"""Trains with less memory by computing tensors again: `cortado time --memory-limit` beside PyTorch's checkpoint.

    bench/recompute.py --cortado build/cortado
    bench/recompute.py --cortado build/cortado --models u-net:2 resnet-50:8 --rounds 5 --out report/recompute

Each round times once, in turns: Cortado without recomputation, under parts of the memory that this takes
(--parts), and with `--recompute all`; PyTorch without checkpoints and with its blocks, or its stages, checkpointed
(torch.utils.checkpoint, one segment each), in the faster of its layouts, as installed and tuned (jemalloc, which keeps
what it has: faster, but more memory). Memory is the peak resident size of the process. The least time of the rounds
counts. `--out NAME` writes NAME.md and NAME.json. Needs Debian's python3-torch, python3-torchvision and libjemalloc2.
"""

import argparse
import ctypes.util
import json
import os
import pathlib
import sys
import tempfile

from compare_torch import HERE, MODELS, TUNING, run

USUAL = ["u-net:2", "u-net-3d:2", "vgg-16-bn:8", "resnet-50:16"]
BLOCKS_ARE_STAGES = ("u-net", "u-net-3d")
SHAPES = {"u-net": "3x512x512,512x512", "u-net-3d": "1x64x64x64,64x64x64"}


def cortado(arguments, model, batch, options):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "time.json"
        command = [arguments.cortado, "time", "--model", MODELS / model / "train_val.prototxt", "--batch", batch,
                   "--iterations", str(arguments.iterations), "--threads", str(arguments.threads), "--json", path,
                   *(("--input-shape", SHAPES[model]) if model in SHAPES else ()), *options]
        _, peak = run([str(word) for word in command])
        times = json.loads(path.read_text())
        return {"seconds": times["step_seconds"], "peak_mib": peak}


def torch(arguments, model, batch, segments, tuned, layout, iterations):
    command = [arguments.python, HERE / "recompute_torch.py", "--model", model, "--batch", batch, "--iterations",
               iterations, "--threads", arguments.threads, "--segments", segments, *layout]
    environment = dict(os.environ, OMP_NUM_THREADS=str(arguments.threads))
    if tuned:
        environment |= {"LD_PRELOAD": ctypes.util.find_library("jemalloc"), "MALLOC_CONF": TUNING}
    output, peak = run([str(word) for word in command], environment)
    return {"seconds": json.loads(output)["step_seconds"], "peak_mib": peak}


def faster_layout(arguments, model, batch):
    """PyTorch's for this model, as options."""
    layouts = ([], ["--channels-last"])
    seconds = [torch(arguments, model, batch, "none", True, layout, 1)["seconds"] for layout in layouts]
    return layouts[seconds.index(min(seconds))]


def ways(arguments, model, batch):
    """What is compared: by name, a function that runs it once."""
    whole = cortado(arguments, model, batch, [])["peak_mib"]
    found = {"cortado": lambda: cortado(arguments, model, batch, [])}
    for part in arguments.parts:
        limit = f"{int(part * whole)}MiB"
        found[f"cortado, {limit}"] = lambda limit=limit: cortado(arguments, model, batch, ["--memory-limit", limit])
    found["cortado, all"] = lambda: cortado(arguments, model, batch, ["--recompute", "all"])
    layout = faster_layout(arguments, model, batch)
    for segments in ("none", "blocks") if model in BLOCKS_ARE_STAGES else ("none", "blocks", "stages"):
        for how in ("tuned", "as installed"):
            found[f"torch, {segments}, {how}"] = lambda segments=segments, tuned=how == "tuned": torch(
                arguments, model, batch, segments, tuned, layout, arguments.iterations)
    return found


def measure(arguments, model, batch):
    runs = {}
    contenders = ways(arguments, model, batch)
    for turn in range(arguments.rounds):
        for name, way in contenders.items():
            result = way()
            runs.setdefault(name, []).append(result)
            print(f"{model} {turn + 1}/{arguments.rounds} {name:28} {1e3 * result['seconds']:9.1f} ms "
                  f"{result['peak_mib']:8.0f} MiB", file=sys.stderr, flush=True)
    return {name: {key: min(result[key] for result in results) for key in ("seconds", "peak_mib")}
            for name, results in runs.items()}


def table(model, batch, results):
    lines = [f"### {model}, batch {batch}", "", "| | ms | times as long | MiB resident |", "|---|---|---|---|"]
    for name, result in results.items():
        whole = results["cortado" if name.startswith("cortado") else "torch, none, tuned"]
        lines.append(f"| {name} | {1e3 * result['seconds']:.1f} | {result['seconds'] / whole['seconds']:.2f} | "
                     f"{result['peak_mib']:.0f} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cortado", required=True, help="the command that is measured")
    parser.add_argument("--models", nargs="+", default=USUAL, metavar="MODEL:BATCH")
    parser.add_argument("--parts", nargs="+", type=float, default=[0.75, 0.6, 0.5],
                        help="limits, of what Cortado takes without")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--python", default="/usr/bin/python3", help="one that has torch")
    parser.add_argument("--out", help="write OUT.md and OUT.json")
    arguments = parser.parse_args()
    texts, all_results = [], {}
    for one in arguments.models:
        model, batch = one.split(":")
        all_results[one] = measure(arguments, model, batch)
        texts.append(table(model, batch, all_results[one]))
        print(texts[-1], flush=True)
        if arguments.out:
            pathlib.Path(arguments.out).parent.mkdir(parents=True, exist_ok=True)
            pathlib.Path(arguments.out + ".md").write_text("\n".join(texts))
            pathlib.Path(arguments.out + ".json").write_text(json.dumps(all_results, indent=2) + "\n")


if __name__ == "__main__":
    main()
