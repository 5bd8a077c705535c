#!/usr/bin/env python3
"""Trains a U-Net to find cell borders in electron micrographs, with Cortado and with PyTorch, and prints what each reaches.

    bench/membrane.py --cortado build/release/cortado --data membrane-30.tar --work runs
    bench/membrane.py --cortado build/release/cortado --data membrane-30.tar --work runs --out membrane
        --variants "" "--ranks 4 --threads 1 --strategy h2w2.json" torch --seeds 1 2 3

The data are an archive of `image/N.png` and `label/N.png`, where borders are 0. Images 0 to 23, in eight orientations, are
learned from; the other six are tested. The net is that of models/u-net with --maps feature maps in its first level. A
variant is options of `cortado train`, or `torch` and options of its own: `torch --device cuda`. h2w2.json, which this script
writes, cuts all layers in height and width over four ranks. Both frameworks learn by stochastic gradient descent from
weights of the same distribution. Printed are the share of pixels that are right, and what is marked as border and is one, over
what is either (IoU), both after the last iteration. A training that was stopped goes on from its newest snapshot, one
that is done is not done again. Needs Debian's python3-numpy, python3-pil and python3-h5py; `torch`
python3-torch and python3-torchvision."""

import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import time

import h5py
import numpy
from PIL import Image

from accuracy import newest_snapshot, write_out

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "models"))
from generator.prototxt import text  # noqa: E402
from generator.unet import Segmentation  # noqa: E402

IMAGES, LEARNED, EDGE = 30, 24, 512
LEVELS, CLASSES = 4, 2
BATCH = 2
RATE, MOMENTUM, DECAY, POWER = 0.1, 0.9, 0.0001, 0.9


def read(folder, number):
    """An image, about between -1 and 1, and for each pixel 1 where a border is."""
    image, label = (numpy.asarray(Image.open(folder / kind / f"{number}.png").convert("L")) for kind in ("image", "label"))
    return (image.astype(numpy.float32) - 128) / 64, (label == 0).astype(numpy.float32)


def orientations(values):
    """A square in its eight orientations."""
    for mirrored in (values, values[:, ::-1]):
        for turns in range(4):
            yield numpy.ascontiguousarray(numpy.rot90(mirrored, turns))


def write_dataset(path, pairs):
    images, labels = zip(*pairs)
    with h5py.File(path, "w") as file:
        file["data"] = numpy.stack(images)[:, None]
        file["label"] = numpy.stack(labels)[:, None]


def prepare(archive, work):
    """Files of HDF5 below `work`: one of each orientation to learn from, one to test."""
    folder = work / "membrane"
    if (folder / "done").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)
    source = next(folder.rglob("image")).parent
    pairs = [read(source, number) for number in range(IMAGES)]
    turned = [list(zip(orientations(image), orientations(label))) for image, label in pairs[:LEARNED]]
    files = [f"membrane/train{i}.h5" for i in range(8)]
    for i, file in enumerate(files):
        write_dataset(work / file, [all_of_one[i] for all_of_one in turned])
    write_dataset(work / "membrane/test.h5", pairs[LEARNED:])
    (folder / "train.txt").write_text("".join(f"{file}\n" for file in files))
    (folder / "test.txt").write_text("membrane/test.h5\n")
    (folder / "done").touch()


def write_recipe(options):
    """Net, solver and strategy below the work folder."""
    net = Segmentation("membrane", "U-Net", [1, EDGE, EDGE], options.maps, LEVELS, CLASSES, BATCH)
    train_val = net.files()["train_val.prototxt"].replace("examples/membrane", "membrane")
    (options.work / "train_val.prototxt").write_text(train_val)
    solver = {"net": "train_val.prototxt", "base_lr": RATE, "lr_policy": "poly", "power": POWER, "momentum": MOMENTUM,
              "weight_decay": DECAY, "max_iter": options.iterations, "display": 10, "test_iter": (IMAGES - LEARNED) // BATCH,
              "test_interval": 100, "test_initialization": False, "snapshot": 200}
    (options.work / "solver.prototxt").write_text(text(solver))
    (options.work / "h2w2.json").write_text(json.dumps(
        {"format": "cortado-strategy", "version": 1, "net": "U-Net", "ranks": 4, "layers": {"*": {"h": 2, "w": 2}}}))


def run(command, work, output):
    with open(output, "a") as file:
        if subprocess.run(command, cwd=work, stdout=file, stderr=file).returncode:
            sys.exit(f"{sys.argv[0]}: '{command[1]}' failed; see the end of {output}")


def scores_of_cortado(options, folder, variant, seed):
    """The scores of the test images after training."""
    home, output = folder.relative_to(options.work), folder / "output.txt"
    scores = folder / "scores.npy"
    if not scores.exists():
        command = [options.cortado, "train", "--solver", "solver.prototxt", "--set", f"random_seed={seed}", "--set",
                   f"snapshot_prefix={home}/net", *shlex.split(variant)]
        state = newest_snapshot(folder)
        run(command + (["--snapshot", state.relative_to(options.work)] if state else []), options.work, output)
        weights = home / f"net_iter_{options.iterations}.caffemodel"
        run([options.cortado, "extract", "--model", "train_val.prototxt", "--weights", weights, "--blobs", "score", "--format",
             "npy", "--out", scores.relative_to(options.work)], options.work, output)
    return numpy.load(scores)


def torch_net(maps):
    import torch
    from recompute_torch import UNet

    net = UNet(lambda module: module, [maps << level for level in range(LEVELS + 1)], CLASSES, channels=1)
    for layer in net.modules():
        if isinstance(layer, (torch.nn.Conv2d, torch.nn.ConvTranspose2d)):
            torch.nn.init.kaiming_normal_(layer.weight)
            torch.nn.init.zeros_(layer.bias)
    return net


def torch_batches(files, iterations):
    """Images and labels of an iteration; every image once before one comes again."""
    import torch
    images, labels = (torch.cat([torch.from_numpy(h5py.File(file)[name][:]) for file in files]) for name in ("data", "label"))
    order = []
    for _ in range(iterations):
        if len(order) < BATCH:
            order = torch.randperm(len(images)).tolist()
        chosen, order = order[:BATCH], order[BATCH:]
        yield images[chosen], labels[chosen][:, 0].long()


def scores_of_torch(options, folder, variant, seed):
    import torch
    words = argparse.ArgumentParser(prog="torch")
    words.add_argument("--device", default="cpu")
    words.add_argument("--threads", type=int, default=2)
    words.add_argument("--channels-last", action="store_true")
    given = words.parse_args(shlex.split(variant)[1:])
    torch.set_num_threads(given.threads)
    torch.manual_seed(seed)
    layout = torch.channels_last if given.channels_last else torch.contiguous_format
    net = torch_net(options.maps).to(given.device, memory_format=layout)
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE, momentum=MOMENTUM, weight_decay=DECAY)
    files = [options.work / file for file in (options.work / "membrane/train.txt").read_text().split()]
    for iteration, (images, labels) in enumerate(torch_batches(files, options.iterations)):
        for group in optimizer.param_groups:
            group["lr"] = RATE * (1 - iteration / options.iterations) ** POWER
        optimizer.zero_grad()
        scores = net(images.to(given.device, memory_format=layout))
        torch.nn.functional.cross_entropy(scores, labels.to(given.device)).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        images = torch.from_numpy(h5py.File(options.work / "membrane/test.h5")["data"][:])
        return torch.cat([net(image[None].to(given.device)).cpu() for image in images]).numpy()


def quality(scores, work):
    """Share of right pixels, and intersection over union of the borders."""
    found = scores.argmax(1) == 1
    truth = h5py.File(work / "membrane/test.h5")["label"][:, 0] == 1
    return {"pixels": float((found == truth).mean()), "iou": float((found & truth).sum() / (found | truth).sum())}


def trained(options, variant, seed):
    recipe = f"maps{options.maps}_iterations{options.iterations}"
    folder = options.work / "_".join([recipe, *variant.replace("--", "").split(), f"seed{seed}"])
    done = folder / "quality.json"
    if not done.exists():
        folder.mkdir(exist_ok=True)
        began = time.monotonic()
        scores = (scores_of_torch if variant.startswith("torch") else scores_of_cortado)(options, folder, variant, seed)
        done.write_text(json.dumps(quality(scores, options.work) | {"seconds": time.monotonic() - began}))
    return json.loads(done.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cortado", required=True, type=pathlib.Path)
    parser.add_argument("--data", required=True, type=pathlib.Path, help="the archive of images")
    parser.add_argument("--work", required=True, type=pathlib.Path, help="folder of datasets and trainings")
    parser.add_argument("--maps", type=int, default=16)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--variants", nargs="+", default=["", "torch"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--out", type=pathlib.Path, help="write the table to OUT.md, the figures to OUT.json")
    options = parser.parse_args()
    options.cortado, options.work = options.cortado.resolve(), options.work.resolve()
    prepare(options.data, options.work)
    write_recipe(options)
    rows = []
    for variant in options.variants:
        for seed in options.seeds:
            rows.append({"variant": variant or "(none)", "seed": seed} | trained(options, variant, seed))
            print(rows[-1], file=sys.stderr, flush=True)
    lines = ["| options | seed | pixels, % | IoU of borders | s |", "|---|--:|--:|--:|--:|"]
    lines += [f"| {row['variant']} | {row['seed']} | {100 * row['pixels']:.2f} | {row['iou']:.3f} | {row['seconds']:.0f} |"
              for row in rows]
    write_out(options.out, lines, rows)


if __name__ == "__main__":
    main()
