#!/usr/bin/env python3
"""Trains nets of models/ on CIFAR-10 by their own solver files, with several seeds, and prints what accuracy they reach.

    bench/accuracy.py --cortado build/release/cortado --data cifar10-jpeg.tar.gz --work runs
    bench/accuracy.py --cortado build/release/cortado --data cifar10-jpeg.tar.gz --work runs --nets cifar10_quick
        --variants "" "--precision bf16" "--ranks 2 --threads 1 --strategy data" --seeds 1 2 3 --out accuracy

The data are an archive of `train/CLASS/*.jpg` and `test/CLASS/*.jpg`. A variant is options of `cortado train`. Each
training is a folder below --work, with its log and snapshots. One that was stopped goes on from its newest snapshot,
one that is done is not done again: start this script again after whatever ended it. `--set max_iter=1000` shortens
all of them; use another --work then. cifar10_quick takes about 3 minutes of 2 cores a seed.

Besides nets of models/, --nets takes recipes, which need NumPy and Pillow: resnet-20-cosine trains resnet-20 for 60 epochs
with crops of padded images and flips, labels smoothed by 0.1, Nesterov's momentum, five epochs of warm-up and the cosine
policy; resnet-20-mixup does so with MixUp in place of smoothed labels; resnet-20-cosine:1024 takes batches of 1024 and the
rate in proportion; resnet-20-cosine:128:120 trains for 120 epochs; fast-cifar is that of bench/fast_cifar.py.
"""

import argparse
import json
import pathlib
import re
import shlex
import statistics
import subprocess
import sys

from cifar_images import padded_databases, unpack
from papers.svg import draw

ROOT = pathlib.Path(__file__).resolve().parents[1]


def prepare(cortado, archive, work):
    """Databases and mean image where the nets' files look for them, below `work`."""
    home = work / "examples/cifar10"
    if (home / "mean.binaryproto").exists():
        return
    work.mkdir(parents=True, exist_ok=True)
    unpack(archive, work)
    home.mkdir(parents=True, exist_ok=True)
    for part in ("train", "test"):
        database = home / f"cifar10_{part}_lmdb"
        if not database.exists():
            folder = next((work / "images").rglob(part))
            subprocess.run([cortado, "data", "folders", folder, database, "--shuffle"], check=True)
    subprocess.run([cortado, "data", "mean", home / "cifar10_train_lmdb", home / "mean.binaryproto"], check=True)
    (work / "models").symlink_to(ROOT / "models")


# Means of blue, green and red over CIFAR-10's training images.
MEANS = "mean_value: 114 mean_value: 123 mean_value: 125"
RECIPES = ("resnet-20-cosine", "resnet-20-mixup")
PADS = {"resnet-20-cosine": 4, "resnet-20-mixup": 4, "fast-cifar": 2}  # of the images that are cropped
BATCH, RECIPE_EPOCHS, SMOOTHING = 128, 60, 0.1


def recipe_solver(batch, epochs):
    """The rate is in proportion to the batch, as in Goyal et al., "Accurate, Large Minibatch SGD" (2017)."""
    epoch = -(-50_000 // batch)
    return {"type": '"Nesterov"', "base_lr": 0.1 * batch / BATCH, "lr_policy": '"cosine"', "warmup_iter": 5 * epoch,
            "max_iter": epochs * epoch, "momentum": 0.9, "weight_decay": 0.0005, "test_iter": 100, "test_interval": 5 * epoch,
            "test_initialization": "false", "display": 100, "snapshot": 5 * epoch}


def split_recipe(net):
    """Name and options of a net of --nets."""
    name, *words = net.split(":")
    return name, words


def replaced(pattern, by, text, count=1):
    text, found = re.subn(pattern, lambda match: match.expand(by), text, count=count, flags=re.S)
    if found != count:
        sys.exit(f"{sys.argv[0]}: models/resnet-20/train_val.prototxt has {found} of '{pattern}', not {count}")
    return text


def recipe(name, work, batch=BATCH, epochs=RECIPE_EPOCHS):
    """Writes the recipe's net and solver below `work`; returns the solver's path from there."""
    folder = work / "recipes" / f"{name}-{batch}-{epochs}"
    folder.mkdir(parents=True, exist_ok=True)
    net = (ROOT / "models/resnet-20/train_val.prototxt").read_text()
    net = replaced(f"batch_size: {BATCH}", f"batch_size: {batch} shuffle: true", net)
    net = replaced(r"examples/cifar10/cifar10_(train|test)_lmdb", rf"padded{PADS[name]}_\1_lmdb", net, 2)
    net = replaced(r"mean_file: \S+", f"crop_size: 32 {MEANS}", net, 2)
    if name == "resnet-20-mixup":
        net = replaced("mirror: true", "mirror: true mixup_alpha: 0.2", net)
    loss = r'(layer \{\n  name: "loss"\n  type: "SoftmaxWithLoss"\n)(.*?\n\})'
    if name == "resnet-20-cosine":
        net = replaced(loss, rf"\1  loss_param {{ label_smoothing: {SMOOTHING} }}\n\2", net)
    else:
        net = mixed_losses(net, loss)
    (folder / "train_val.prototxt").write_text(net)
    solver = "".join(f"{key}: {value}\n" for key, value in recipe_solver(batch, epochs).items())
    (folder / "solver.prototxt").write_text(f'net: "{folder.relative_to(work)}/train_val.prototxt"\n{solver}')
    return folder.relative_to(work) / "solver.prototxt"


# The loss of MixUp: that of each label, times its share (docs/reference/data.md). Tests have the plain loss.
MIXED = """layer {
  name: "rest"
  type: "Power"
  bottom: "lambda"
  top: "rest"
  power_param { scale: -1 shift: 1 }
  include { phase: TRAIN }
}
layer {
  name: "loss"
  type: "SoftmaxWithLoss"
  bottom: "fc"
  bottom: "label"
  top: "loss"
  include { phase: TEST }
}
"""
for label, share in (("label", "lambda"), ("label2", "rest")):
    MIXED += f"""layer {{
  name: "loss_{label}"
  type: "SoftmaxWithLoss"
  bottom: "fc"
  bottom: "{label}"
  top: "loss_{label}"
  loss_weight: 0
  include {{ phase: TRAIN }}
}}
layer {{
  name: "part_{label}"
  type: "Scale"
  bottom: "loss_{label}"
  bottom: "{share}"
  top: "part_{label}"
  loss_weight: 1
  scale_param {{ axis: 0 }}
  include {{ phase: TRAIN }}
}}
"""


def mixed_losses(net, loss):
    net = replaced(r'(top: "label"\n)(  include \{ phase: TRAIN \})', r'\1  top: "label2"\n  top: "lambda"\n\2', net)
    return replaced(loss, MIXED.rstrip(), net)


def history(folder):
    """Accuracies by iteration, and the seconds of all iterations. What a training that went on did again counts once."""
    tests, seconds = {}, {}
    for log in sorted(folder.glob("log*.jsonl"), key=lambda log: int(log.stem.removeprefix("log"))):
        for line in log.read_text().splitlines():
            event = json.loads(line)
            if "test_net" in event:
                tests |= {event["iteration"]: out["value"] for out in event["outputs"] if out["name"] == "accuracy"}
            elif "seconds" in event:
                seconds[event["iteration"]] = event["seconds"]
    return {iteration: tests[iteration] for iteration in sorted(tests)}, sum(seconds.values())


def solver_of(net, work, folder, seed):
    """Solver and initial weights, or None, relative to `work`."""
    name, options = split_recipe(net)
    if name in RECIPES:
        return recipe(name, work, *map(int, options)), None
    if name == "fast-cifar":
        import fast_cifar  # needs NumPy and Pillow
        epochs = int(options[0]) if options else fast_cifar.EPOCHS
        widths = [int(width) for width in options[1].split(",")] if options[1:] else fast_cifar.WIDTHS
        return fast_cifar.write_recipe(work, folder, seed, epochs, widths)
    return f"models/{net}/solver.prototxt", None


def newest_snapshot(folder):
    states = folder.glob("net_iter_*.solverstate")
    return max(states, key=lambda state: int(state.stem.rsplit("_", 1)[1]), default=None)


def train(cortado, work, net, variant, seed, settings):
    """The folder of the training, which is done."""
    name = "_".join([net, *variant.replace("--", "").split(), f"seed{seed}"])
    folder = work / name.replace(",", "x")  # --weights takes several files, with commas between
    folder.mkdir(exist_ok=True)
    solver, weights = solver_of(net, work, folder, seed)
    done = folder / "accuracy.json"
    if not done.exists():
        log = folder / f"log{len(list(folder.glob('log*')))}.jsonl"
        state = newest_snapshot(folder)
        command = [cortado, "train", "--solver", solver, "--log", log.relative_to(work)]
        for setting in (f"random_seed={seed}", f"snapshot_prefix={folder.relative_to(work)}/net", *settings):
            command += ["--set", setting]
        command += shlex.split(variant)
        if state:
            command += ["--snapshot", state.relative_to(work)]
        elif weights:
            command += ["--weights", weights]
        with open(folder / "output.txt", "a") as output:
            begin = output.tell()
            if subprocess.run(command, cwd=work, stdout=output, stderr=output).returncode:
                sys.exit(f"{sys.argv[0]}: training failed; see the end of {output.name}")
        if "Optimization stopped early" in (folder / "output.txt").read_text()[begin:]:
            sys.exit(f"{sys.argv[0]}: {net} was stopped by a signal; start again and it goes on from its newest snapshot")
        tests, _ = history(folder)
        if not tests:
            sys.exit(f"{sys.argv[0]}: {net} was never tested: its solver's max_iter is below its test_interval")
        done.write_text(json.dumps(list(tests.items())[-1]))
    return folder


def measured(folders, seeds):
    """Of the trainings of a net, one a seed: accuracies at the end, accuracies after each part of the training, minutes."""
    histories = [history(folder) for folder in folders]
    return {"seeds": seeds, "accuracies": [list(tests.values())[-1] for tests, _ in histories],
            "curves": [list(tests.items()) for tests, _ in histories],
            "minutes": [seconds / 60 for _, seconds in histories]}


def curves(rows):
    """A picture of accuracies over parts of a training, a line for each training, named by what they do not share."""
    labels = [[row["net"], row["variant"], f"seed {seed}"] for row in rows for seed in row["seeds"]]
    differ = [part == 0 or len({label[part] for label in labels}) > 1 for part in range(3)]
    names, points = [], {}
    for row in rows:
        for seed, curve in zip(row["seeds"], row["curves"]):
            label = [row["net"], row["variant"], f"seed {seed}"]
            names.append(" ".join(text for text, differs in zip(label, differ) if differs and text))
            last = curve[-1][0]
            for iteration, accuracy in curve:
                points.setdefault(round(100 * iteration / last), {})[names[-1]] = f"{100 * accuracy:.2f}"
    table = [{"% of the training": str(part), **dict.fromkeys(names), **points[part]} for part in sorted(points)]
    return draw("Accuracy on the test images", table, kind="lines", x=("% of the training",), series=names, unit="%")


def write_out(path, table, rows, picture=None):
    """Prints the table, and writes it, the figures and a picture where a path is given."""
    print("\n".join(table))
    if path:
        path.with_suffix(".md").write_text("\n".join(table) + "\n")
        path.with_suffix(".json").write_text(json.dumps(rows, indent=1))
        if picture:
            path.with_suffix(".svg").write_text(picture)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cortado", required=True, type=pathlib.Path)
    parser.add_argument("--data", required=True, type=pathlib.Path, help="the archive of images")
    parser.add_argument("--work", required=True, type=pathlib.Path, help="folder of databases and trainings")
    parser.add_argument("--nets", nargs="+", default=["cifar10_quick"])
    parser.add_argument("--variants", nargs="+", default=["", "--precision bf16"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--set", action="append", default=[], dest="settings", help="as that of cortado train")
    parser.add_argument("--out", type=pathlib.Path, help="write the table to OUT.md, figures to OUT.json, curves to OUT.svg")
    arguments = parser.parse_args()
    cortado, work = arguments.cortado.resolve(), arguments.work.resolve()
    prepare(cortado, arguments.data, work)
    for name, pad in PADS.items():
        if any(split_recipe(net)[0] == name for net in arguments.nets):
            padded_databases(cortado, arguments.data, work, pad)

    rows = []
    for net in arguments.nets:
        for variant in arguments.variants:
            folders = [train(cortado, work, net, variant, seed, arguments.settings) for seed in arguments.seeds]
            rows.append({"net": net, "variant": variant, **measured(folders, arguments.seeds)})
            print(net, variant or "(none)", rows[-1]["accuracies"], file=sys.stderr, flush=True)
    table = ["| net | options | " + " | ".join(f"seed {seed}, %" for seed in arguments.seeds) + " | mean, % | minutes a seed |",
             "|---|---|" + "--:|" * (len(arguments.seeds) + 2)]
    for row in rows:
        cells = [f"{100 * accuracy:.2f}" for accuracy in row["accuracies"]]
        table.append(f"| {row['net']} | {row['variant'] or 'none'} | {' | '.join(cells)} | "
                     f"{100 * statistics.mean(row['accuracies']):.2f} | {statistics.mean(row['minutes']):.1f} |")
    write_out(arguments.out, table, rows, curves(rows))


if __name__ == "__main__":
    main()
