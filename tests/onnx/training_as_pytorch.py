#!/usr/bin/env python3
"""Nets of torchvision that came through ONNX train as in PyTorch.

    tests/onnx/training_as_pytorch.py --cortado build/dev/cortado [NAME...]

A net with random weights is exported as for training (batch norms stay layers) and converted with --loss. `cortado train`
makes one step of gradient descent on a batch of random images; PyTorch makes the same, in double precision and in its usual
one. PyTorch's nets are exported and converted once more. All weights must be those of double precision within 1e-4, or where
PyTorch's usual step is farther from them than that, within three times its distance: rounding decides some ReLUs otherwise
(decided_ties.py), and batch norms of few samples enlarge that. The step, of all weights together, must be within 6e-2 of its
Euclidean norm.
Dropout and stochastic depth draw random numbers and are left out. Without names all nets are compared; it says how long
that took. Needs what nets_as_pytorch.py needs; exits 77 where it is missing.
"""

import argparse
import copy
import io
import pathlib
import re
import sys
import tempfile
import warnings

from nets_as_pytorch import NETS, Cortado, h5py, judge_each, make, np, safetensors_io, torch, tv

BATCH, RATE, TOLERANCE, STEP_TOLERANCE = 4, 1e-3, 1e-4, 6e-2
SOLVER = f"""net: "train.prototxt" base_lr: {RATE} lr_policy: "fixed" momentum: 0 weight_decay: 0 max_iter: 1
snapshot_prefix: "trained"
"""


def without_chance(net):
    for module in net.modules():
        if isinstance(module, (torch.nn.Dropout, torch.nn.Dropout2d, tv.efficientnet.StochasticDepth)):
            module.p = 0
    return net


def export(net, images):
    """Of the net as it is trained: nothing is folded. Weights are as in eval(), batch norms say their statistics."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net.eval(), images, buffer, opset_version=13, input_names=["images"], output_names=["scores"],
                          training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
    return buffer.getvalue()


def weights_of(cortado, prefix, caffemodel):
    """Of a converted net; batch norms' statistics, which the two count otherwise, are left out."""
    cortado("convert", f"{prefix}.prototxt", "--weights", caffemodel, "--output", f"{caffemodel}.safetensors")
    tensors, _ = safetensors_io.read(cortado.folder / f"{caffemodel}.safetensors")
    return {name: values for name, values in tensors.items() if not re.search("/(mean|variance|factor)$", name)}


def converted(cortado, net, images, prefix):
    (cortado.folder / f"{prefix}.onnx").write_bytes(export(net, images))
    cortado("convert", f"{prefix}.onnx", "--output", prefix, "--batch", BATCH, "--loss")
    return weights_of(cortado, prefix, f"{prefix}.caffemodel")


def train(cortado, images, labels):
    """One step from the weights that were converted, on data of an HDF5Data layer in place of the file's."""
    with h5py.File(cortado.folder / "data.h5", "w") as file:
        file["images"], file["label"] = images.numpy(), labels.numpy().astype(np.float32)
    (cortado.folder / "data.txt").write_text("data.h5\n")
    text = (cortado.folder / "before_train_val.prototxt").read_text()
    layers = re.findall(r"^layer \{\n.*?^\}\n", text, re.S | re.M)
    kept = [layer for layer in layers if 'type: "Data"' not in layer and 'type: "Accuracy"' not in layer]
    data = (f'layer {{ name: "data" type: "HDF5Data" top: "images" top: "label" '
            f'hdf5_data_param {{ source: "data.txt" batch_size: {BATCH} }} }}\n')
    (cortado.folder / "train.prototxt").write_text(data + "".join(kept))
    (cortado.folder / "solver.prototxt").write_text(SOLVER)
    cortado("train", "--solver", "solver.prototxt", "--weights", "before.caffemodel")
    return weights_of(cortado, "before", "trained_iter_1.caffemodel")


def step(net, images, labels, random):
    """One step of gradient descent; returns the labels, which are drawn where none are given."""
    scores = net.train()(images)
    if labels is None:
        labels = torch.randint(scores.shape[1], (BATCH, *scores.shape[2:]), generator=random)
    torch.nn.functional.cross_entropy(scores, labels).backward()
    with torch.no_grad():
        for weight in net.parameters():
            if weight.grad is not None:
                weight -= RATE * weight.grad
    return labels


def difference(values, exact, before):
    """The largest one of a weight, and that of the step relative to its norm."""
    if values.keys() != exact.keys():
        raise RuntimeError(f"other weights: {sorted(values.keys() ^ exact.keys())[:4]}")
    worst = max(float(np.abs(values[key] - exact[key]).max()) for key in exact)
    square = {"difference": 0.0, "norm": 0.0}
    for key in exact:
        square["difference"] += (np.subtract(values[key], exact[key], dtype=float) ** 2).sum()
        square["norm"] += (np.subtract(exact[key], before[key], dtype=float) ** 2).sum()
    return worst, (square["difference"] / square["norm"]) ** 0.5


def compare(name, program):
    size, random = NETS[name][1], torch.Generator().manual_seed(2)
    net = without_chance(make(NETS[name][0]))
    images = torch.randn(BATCH, 3, size, size, generator=random)
    with tempfile.TemporaryDirectory() as temporary:
        cortado = Cortado(program, pathlib.Path(temporary))
        before = converted(cortado, net, images, "before")
        exact = copy.deepcopy(net).double()
        labels = step(net, images, None, random)
        step(exact, images.double(), labels, random)
        theirs, exact = converted(cortado, net, images, "after"), converted(cortado, exact.float(), images, "exact")
        ours = train(cortado, images, labels)
    return difference(ours, exact, before), difference(theirs, exact, before)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cortado", required=True, help="the program")
    parser.add_argument("names", nargs="*", help="which nets (default: all)")
    arguments = parser.parse_args()

    def judge(name):
        (worst, of_step), pytorch = compare(name, arguments.cortado)
        good = worst < max(TOLERANCE, 3 * pytorch[0]) and of_step < STEP_TOLERANCE
        return good, f"weights {worst:.1e}, step {of_step:.1e}; PyTorch itself {pytorch[0]:.1e}, {pytorch[1]:.1e}"

    return judge_each(arguments.names or list(NETS), judge)


if __name__ == "__main__":
    sys.exit(main())
