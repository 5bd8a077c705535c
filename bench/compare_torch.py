#!/usr/bin/env python3
"""Trains the same nets with Cortado and with PyTorch, in turns, and prints how their images/s compare.

    bench/compare_torch.py --cortado build/cortado
    bench/compare_torch.py --cortado build/cortado --models resnet-50 --rounds 5 --out report/compare
    bench/compare_torch.py --cortado build/cortado --precision bf16
    bench/compare_torch.py --cortado build/cortado --models resnet-50 lenet --batch 1 --inference --iterations 30

In every round each contender runs once, so that a machine that changes its speed changes it for all of them:
`cortado time`, and PyTorch contiguous and channels_last, each as installed and tuned (jemalloc preloaded, never
giving memory back); in bf16 by autocast and, tuned, with weights in bf16, too. With --batch or --inference TorchScript, tuned, is a
contender, too. Ratios are taken within a round; their
median is the result. Peak memory is the largest resident set the process ever had. Without --cortado, only PyTorch
is measured. `--out NAME` writes NAME.md and NAME.json. Needs Debian's python3-torch, python3-torchvision and, for
tuning, libjemalloc2.
"""

import argparse
import ctypes.util
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE.parent / "models"
BATCHES = {"alexnet": 64, "vgg-a": 16, "vgg-16": 16, "resnet-50": 16, "inception-v3": 16}
USUAL = list(BATCHES)  # what is compared when no nets are named
BATCHES |= {"vgg-16-bn": 16, "resnet-18": 16, "resnext-50-32x4d": 16, "squeezenet-1.1": 16,
            "mobilenet-v2": 16, "mnasnet-1.0": 16, "resnet-20": 128, "resnet-110": 128,
            "efficientnet-b0": 16, "regnet-y-1.6gf": 16, "googlenet-bn": 16, "shufflenet-v2-x1.0": 16,
            "lenet": 64, "cifar10_quick": 100}
SHAPES = {model: ("--input-shape", shape) for shape, models in {
    "3x32x32": ("cifar10_quick", "cifar10_full", "resnet-20", "resnet-110"), "1x28x28": ("lenet",)}.items()
    for model in models}  # of nets whose files name a database
TUNING = "oversize_threshold:1,background_thread:true,metadata_thp:auto,dirty_decay_ms:-1,muzzy_decay_ms:-1"

CORTADO = "cortado"
TUNED = ("contiguous, tuned", "channels_last, tuned")
CONVERTED = ("contiguous, converted, tuned", "channels_last, converted, tuned")  # weights in bf16, too
SCRIPTED = ("contiguous, scripted, tuned", "channels_last, scripted, tuned")
INSTALLED = ("contiguous, as installed", "channels_last, as installed")


class Failed(Exception):
    """A program that failed, with its error message."""


def run(command, environment=None):
    """(standard output, peak resident MiB) of a program. Throws Failed."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=output, stderr=errors, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        for stream in (output, errors):
            stream.seek(0)
        if process.returncode != 0:
            raise Failed(f"{' '.join(map(str, command))} failed ({process.returncode}): {errors.read().strip()}")
        return output.read(), usage.ru_maxrss / 1024


def batch_of(model, arguments):
    return arguments.batch or BATCHES[model]


def common(model, arguments):
    return ["--batch", str(batch_of(model, arguments)), "--iterations", str(arguments.iterations),
            "--threads", str(arguments.threads), "--precision", arguments.precision]


def time_cortado(program, model, arguments):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "time.json"
        file = "deploy.prototxt" if arguments.inference else "train_val.prototxt"
        shape = () if arguments.inference else SHAPES.get(model, ())
        _, peak = run([program, "time", "--model", MODELS / model / file, "--json", path, *shape, *common(model, arguments)])
        times = json.loads(path.read_text())
    return {"step_seconds": times["step_seconds"], "percent_of_peak": times.get("percent_of_peak"), "peak_mib": peak}


def tuned(arguments):
    return (TUNED + (CONVERTED if arguments.precision == "bf16" else ())
            + (SCRIPTED if arguments.batch or arguments.inference else ()))


def time_torch(variant, model, arguments):
    command = [arguments.python, HERE / "torch_step.py", "--model", model, *common(model, arguments)]
    environment = dict(os.environ, OMP_NUM_THREADS=str(arguments.threads))
    if variant.startswith("channels_last"):
        command.append("--channels-last")
    command += [f"--{way}" for way in ("converted", "scripted") if way in variant]
    if arguments.inference:
        command.append("--inference")
    if variant in tuned(arguments):
        environment |= {"LD_PRELOAD": arguments.jemalloc, "MALLOC_CONF": TUNING}
    output, peak = run(command, environment)
    return {"step_seconds": json.loads(output)["step_seconds"], "peak_mib": peak}


def measure(model, arguments):
    """{contender: [one result a round]}; every other round runs the contenders backwards. A way in which PyTorch has no
    operator for bf16 is passed over."""
    contenders = ([CORTADO] if arguments.cortado else []) + list(tuned(arguments)) + list(INSTALLED)
    results = {contender: [] for contender in contenders}
    for number in range(arguments.rounds):
        for contender in list(results) if number % 2 == 0 else list(results)[::-1]:
            try:
                result = (time_cortado(arguments.cortado, model, arguments) if contender == CORTADO
                          else time_torch(contender, model, arguments))
            except Failed as failed:
                if "not implemented for 'BFloat16'" not in str(failed):
                    raise
                print(f"{model:14} {contender}: {str(failed).splitlines()[-1]}", file=sys.stderr)
                del results[contender]
                continue
            results[contender].append(result)
            print(f"{model:14} round {number + 1}  {contender:28} {result['step_seconds']:8.4f} s/step "
                  f"{batch_of(model, arguments) / result['step_seconds']:8.2f} images/s {result['peak_mib']:7.0f} MiB",
                  file=sys.stderr, flush=True)
    return results


def median(values):
    return statistics.median(values)


def best(results, variants):
    """The variant of PyTorch with the smallest median step."""
    return min((v for v in variants if v in results), key=lambda variant: median(r["step_seconds"] for r in results[variant]))


def summarize(model, results, arguments):
    """One row of the table: medians, and medians of the ratios taken round by round."""
    batch = batch_of(model, arguments)
    row = {"model": model, "batch": batch}
    for label, variants in (("tuned", tuned(arguments)), ("installed", INSTALLED)):
        if not any(v in results for v in variants):
            raise Failed(f"{model}: PyTorch failed in every way that is {label}")
        variant = best(results, variants)
        row[label] = {"variant": variant,
                      "images_per_second": batch / median(r["step_seconds"] for r in results[variant]),
                      "peak_mib": median(r["peak_mib"] for r in results[variant])}
        if CORTADO in results:
            row[label]["ratio"] = median(theirs["step_seconds"] / ours["step_seconds"]
                                         for theirs, ours in zip(results[variant], results[CORTADO], strict=True))
    if CORTADO in results:
        row[CORTADO] = {"images_per_second": batch / median(r["step_seconds"] for r in results[CORTADO]),
                        "peak_mib": median(r["peak_mib"] for r in results[CORTADO])}
        peaks = [r["percent_of_peak"] for r in results[CORTADO]]
        row[CORTADO]["percent_of_peak"] = None if None in peaks else median(peaks)
    return row


def cell(value, form):
    return "" if value is None else format(value, form)


def markdown(rows):
    lines = ["| model | batch | Cortado images/s | PyTorch tuned | PyTorch as installed | Cortado / tuned "
             "| Cortado / installed | Cortado MiB | PyTorch MiB (tuned) | Cortado, % of FMA peak |",
             "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for row in rows:
        ours, tuned, installed = row.get(CORTADO, {}), row["tuned"], row["installed"]
        layout = {label: row[label]["variant"].rsplit(",", 1)[0] for label in ("tuned", "installed")}
        lines.append(" | ".join([
            f"| {row['model']}", str(row["batch"]), cell(ours.get("images_per_second"), ".2f"),
            f"{tuned['images_per_second']:.2f} ({layout['tuned']})",
            f"{installed['images_per_second']:.2f} ({layout['installed']})",
            cell(tuned.get("ratio"), ".3f"), cell(installed.get("ratio"), ".3f"), cell(ours.get("peak_mib"), ".0f"),
            f"{tuned['peak_mib']:.0f}", cell(ours.get("percent_of_peak"), ".1f")]) + " |")
    return "\n".join(lines)


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cortado", help="the program to compare; without it only PyTorch is measured")
    parser.add_argument("--models", nargs="+", choices=BATCHES, default=USUAL)
    parser.add_argument("--batch", type=int, help="in place of the one that each net has here")
    parser.add_argument("--inference", action="store_true", help="forward passes without gradients")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=5, help="timed steps of each contender in each round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32", help="of both; PyTorch's by autocast and converted, the best of them")
    parser.add_argument("--python", default="/usr/bin/python3", help="the Python that has PyTorch")
    parser.add_argument("--jemalloc", default=ctypes.util.find_library("jemalloc"), help="library to preload")
    parser.add_argument("--out", help="write OUT.md and OUT.json")
    arguments = parser.parse_args()
    if not arguments.jemalloc:
        parser.error("libjemalloc is not there: install libjemalloc2, or name the library with --jemalloc")
    return arguments


def main():
    arguments = parse_arguments()
    rows, raw = [], {}
    for model in arguments.models:
        raw[model] = measure(model, arguments)
        rows.append(summarize(model, raw[model], arguments))
    table = markdown(rows)
    print(table)
    if arguments.out:
        out = pathlib.Path(arguments.out)
        out.parent.mkdir(parents=True, exist_ok=True)
        title = (f"{processor()}, {arguments.threads} threads, {arguments.rounds} rounds of {arguments.iterations} "
                 f"steps, {arguments.precision}")
        out.with_suffix(".md").write_text(f"{title}\n\n{table}\n")
        out.with_suffix(".json").write_text(json.dumps(
            {"machine": title, "rows": rows, "rounds": raw}, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(str(failed))
