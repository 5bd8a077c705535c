#!/usr/bin/env python3
"""Shows that what Cortado's weights differ by from exact arithmetic is rounding: which ties it decided.

    tests/end_to_end/decided_ties.py --cortado build/release/cortado cifar10_full --iterations 10 --images DIR/CLASS/*.jpg
    tests/end_to_end/decided_ties.py --cortado build/release/cortado googlenet --iterations 1

A ReLU decides which elements pass, a maximum which element of a window does. Where two values differ by less than the rounding
of float32, implementations that sum in another order decide otherwise, and the gradient takes another way: a jump, not a
small difference. The net is trained in double precision (PyTorch's functions, caffe_net.py) twice: by its own decisions, and by
those that Cortado made, read from Cortado's blobs (`cortado extract`). If Cortado is far from the first and near the second,
ties are all that parts them. Every decision that differs first is printed with its margin. Takes 2 to 5 minutes; not part of
the usual tests. Needs Debian's python3-torch and python3-h5py; images, which are drawn at random where none are given, python3-pil.
"""

import argparse
import glob
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import h5py
import numpy as np
import torch
import torch.nn.functional as F

from caffe_net import CaffeNet
from same_losses import datasets, write_weights

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
# Images of a batch, extent, learning rate, weight decay: those of the solvers.
NETS = {"cifar10_full": (100, 32, 0.001, 0.004), "googlenet": (8, 224, 0.01, 0.0002)}
MOMENTUM = 0.9
LEFT_OUT = ("Data", "Accuracy", "Dropout")


class DecidedNet(CaffeNet):
    """Keeps what ReLUs and maxima decide, and what they looked at; or takes given decisions."""

    def __init__(self, *arguments, given=None, **options):
        super().__init__(*arguments, **options)
        self.given, self.made, self.seen = given, {}, {}

    def ReLU(self, layer, bottoms):
        name, x = layer.get("name"), bottoms[0]
        self.made[name], self.seen[name] = x > 0, x.detach()
        return x * (self.given or self.made)[name].to(x.dtype)

    def Pooling(self, layer, bottoms):
        options, name, x = layer.get("pooling_param"), layer.get("name"), bottoms[0]
        if options.get("pool", "MAX") != "MAX":
            return super().Pooling(layer, bottoms)
        top, self.made[name] = maxima(x, options)
        self.seen[name] = x.detach()
        return x.flatten(2).gather(2, self.given[name].flatten(2)).view(top.shape) if self.given else top


def maxima(x, options):
    return F.max_pool2d(x, options.get("kernel_size"), options.get("stride", 1), options.get("pad", 0), ceil_mode=True,
                        return_indices=True)


def read_images(patterns, count, extent):
    """N x 3 x H x W, blue first, their mean subtracted; labels by folder."""
    files = sorted(file for pattern in patterns for file in glob.glob(pattern))
    random.Random(1).shuffle(files)
    if not files:
        return torch.randn(count, 3, extent, extent) * 50, torch.randint(1000, (count,))
    from PIL import Image
    classes = sorted({pathlib.Path(file).parent.name for file in files})
    pixels = [np.asarray(Image.open(file).convert("RGB"))[:, :, ::-1].copy() for file in files[:count]]
    data = torch.stack([torch.from_numpy(image).permute(2, 0, 1).float() for image in pixels])
    return data - data.mean(0, keepdim=True), torch.tensor([classes.index(pathlib.Path(f).parent.name) for f in files[:count]])


class Trial:
    def __init__(self, name, data, labels, folder, program):
        self.batch, _, self.rate, self.decay = NETS[name]
        self.data, self.labels, self.folder, self.program = data, labels, folder, program
        head, *layers = (MODELS / name / "train_val.prototxt").read_text().split("\nlayer {\n")
        layers = [layer for layer in layers if re.search(r'type: "(\w+)"', layer).group(1) not in LEFT_OUT]
        self.text = [head, None] + layers
        self.path = self.write_net("net", range(len(data) // self.batch))
        net = CaffeNet(self.path, initialize=self.initialize)
        with torch.no_grad():
            net.forward(data=data[:1], label=labels[:1])
        self.start = {key: values.detach().clone() for key, values in net.parameters.items()}

    def initialize(self, name, kind, shape):
        """The file's fillers."""
        layer, role = name.rsplit("/", 1)
        own = next(text for text in self.text[2:] if f'name: "{layer}"' in text)
        if role == "bias":
            return torch.full(shape, float((re.findall(r"value: ([\d.e-]+)", own) or [0])[-1]))
        std = re.search(r"std: ([\d.e-]+)", own)
        if std:
            return torch.randn(shape) * float(std.group(1))
        return (torch.rand(shape) * 2 - 1) * (3 * shape[0] / torch.Size(shape).numel()) ** 0.5

    def write_net(self, name, batches):
        """A net that reads these batches alone."""
        files = []
        for b in batches:
            files.append(f"{self.folder}/batch{b}.h5")
            if not pathlib.Path(files[-1]).exists():
                with h5py.File(files[-1], "w") as file:
                    file["data"] = self.part(self.data, b).numpy()
                    file["label"] = self.part(self.labels, b).float().numpy()
        (self.folder / f"{name}.txt").write_text("\n".join(files) + "\n")
        self.text[1] = (f'  name: "data"\n  type: "HDF5Data"\n  top: "data"\n  top: "label"\n  hdf5_data_param '
                        f'{{ source: "{self.folder}/{name}.txt" batch_size: {self.batch} }}\n}}')
        path = self.folder / f"{name}.prototxt"
        path.write_text("\nlayer {\n".join(self.text))
        return path

    def part(self, values, b):
        return values[b * self.batch:(b + 1) * self.batch]

    def exactly(self, iterations, given=None):
        """Weights, decisions and what was looked at in double precision."""
        weights = {key: values.double().requires_grad_() for key, values in self.start.items()}
        history, nets = {}, []
        for b in range(iterations):
            net = DecidedNet(self.path, initialize=lambda name, kind, shape: weights[name],
                             given=given[b] if given else None)
            _, loss = net.forward(data=self.part(self.data, b).double(), label=self.part(self.labels, b))
            loss.backward()
            nets.append(net)
            with torch.no_grad():
                for name, w in weights.items():
                    lr_mult, decay_mult = net.multipliers[name]
                    step = self.rate * lr_mult * (w.grad + self.decay * decay_mult * w)
                    history[name] = MOMENTUM * history[name] + step if name in history else step
                    w -= history[name]
                    w.grad = None
        return {key: values.detach() for key, values in weights.items()}, nets

    def run(self, *words):
        result = subprocess.run([self.program, *map(str, words), "--threads", "1"], capture_output=True, text=True)
        if result.returncode != 0:
            sys.exit(f"cortado {words[0]} failed: {result.stderr.strip()}")

    def by_cortado(self, iterations):
        """The weights after each iteration."""
        write_weights(self.folder / "start.h5", self.start)
        (self.folder / "solver.prototxt").write_text(
            f'net: "{self.path}" base_lr: {self.rate} lr_policy: "fixed" momentum: {MOMENTUM} weight_decay: {self.decay} '
            f'max_iter: {iterations} snapshot: 1 snapshot_format: HDF5 snapshot_prefix: "{self.folder}/out"\n')
        self.run("train", "--solver", self.folder / "solver.prototxt", "--weights", self.folder / "start.h5")
        weights = [self.folder / "start.h5"]
        weights += [self.folder / f"out_iter_{i + 1}.caffemodel.h5" for i in range(iterations)]
        with h5py.File(weights[-1]) as file:
            last = {name: torch.from_numpy(file[dataset][()]).double() for name, dataset in datasets(self.start)}
        return last, [self.decisions(b, weights[b]) for b in range(iterations)]

    def decisions(self, b, weights):
        """What Cortado's ReLUs and maxima decide on batch b, from the blobs after and before them."""
        net = CaffeNet(self.write_net("one", [b]))
        deciding = [layer for layer in net.layers if layer.get("type") == "ReLU" or
                    layer.get("type") == "Pooling" and layer.get("pooling_param").get("pool", "MAX") == "MAX"]
        blobs = sorted({layer.get("top" if layer.get("type") == "ReLU" else "bottom") for layer in deciding})
        names = [str(self.folder / f"blob{i}.npy") for i in range(len(blobs))]
        self.run("extract", "--model", self.folder / "one.prototxt", "--weights", weights, "--blobs", ",".join(blobs),
                 "--format", "npy", "--out", ",".join(names), "--force")
        values = {blob: torch.from_numpy(np.load(name)) for blob, name in zip(blobs, names)}
        return {layer.get("name"): values[layer.get("top")] > 0 if layer.get("type") == "ReLU" else
                maxima(values[layer.get("bottom")], layer.get("pooling_param"))[1] for layer in deciding}


def difference(ours, exact):
    """The largest of all weights, relative to the largest of their blob."""
    return max((((ours[name] - exact[name]).abs().max() / exact[name].abs().max()).item(), name) for name in exact)


def print_first_ties(nets, decisions, most=5):
    for b, net in enumerate(nets):
        for name, made in net.made.items():
            places = (made != decisions[b][name]).nonzero()
            if not len(places):
                continue
            at, seen = tuple(places[0].tolist()), net.seen[name]
            scale = seen.abs().max().item()
            if made.dtype == torch.bool:
                margin, what = abs(seen[at].item()), "from 0"
            else:
                plane = seen.flatten(2)[at[0], at[1]]
                margin, what = abs((plane[made[at]] - plane[decisions[b][name][at]]).item()), "between two of a window"
            print(f"  iteration {b}, {name}: {len(places)} of {made.numel()} decided otherwise; the first, {at}, was "
                  f"{margin:.1e} {what}, {margin / scale:.1e} of the blob's largest")
            most -= 1
            if most == 0:
                return


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("net", choices=NETS)
    parser.add_argument("--cortado", required=True, type=pathlib.Path)
    parser.add_argument("--iterations", type=int, default=1)
    parser.add_argument("--images", nargs="*", default=[], help="files or patterns FOLDER/CLASS/*.jpg, all of the net's extent")
    arguments = parser.parse_args()
    torch.manual_seed(3)
    batch, extent, _, _ = NETS[arguments.net]
    with tempfile.TemporaryDirectory() as folder:
        data, labels = read_images(arguments.images, batch * arguments.iterations, extent)
        trial = Trial(arguments.net, data, labels, pathlib.Path(folder), arguments.cortado.resolve())
        ours, decisions = trial.by_cortado(arguments.iterations)
        exact, nets = trial.exactly(arguments.iterations)
        print_first_ties(nets, decisions)
        by_ours, _ = trial.exactly(arguments.iterations, given=decisions)
        apart, near = difference(ours, exact), difference(ours, by_ours)
        print(f"{arguments.net}, {arguments.iterations} iterations: Cortado differs from exact arithmetic by {apart[0]:.1e} ({apart[1]}), "
              f"from exact arithmetic with Cortado's decisions by {near[0]:.1e} ({near[1]})")
    return 0 if near[0] < 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())
