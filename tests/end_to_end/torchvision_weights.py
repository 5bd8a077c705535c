#!/usr/bin/env python3
"""Weights of torchvision's nets go to nets of the zoo and back by `cortado convert --layout torchvision`.

    tests/end_to_end/torchvision_weights.py --cortado build/dev/cortado [NAME...]

A state_dict of random weights and statistics becomes a .safetensors file, with PyTorch's counts of batches, in no order.
The zoo's net gives PyTorch's outputs with what it becomes; the way back gives the same tensors, bit for bit, which
load_state_dict() takes. Without names all nets are compared; it says how long that took. Needs Debian's python3-torch,
python3-torchvision and python3-h5py; exits 77 where they are missing.
"""

import argparse
import collections
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
    import torch
    import torchvision.models as tv
except ImportError as error:
    print(f"skipped: {error} (Debian's packages belong to /usr/bin/python3; this is {sys.executable})")
    sys.exit(77)

from each_net import judge_each
from random_net import make

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
BATCH, TOLERANCE = 2, 1e-5
# name in the zoo: (maker, pixels a side, blob of the scores)
NETS = {
    "alexnet": (tv.alexnet, 224, "fc8"),
    "vgg-a": (tv.vgg11, 224, "fc8"),
    "vgg-16": (tv.vgg16, 224, "fc8"),
    "vgg-16-bn": (tv.vgg16_bn, 224, "fc8"),
    "resnet-18": (tv.resnet18, 64, "fc"),
    "resnet-50": (tv.resnet50, 64, "fc"),
    "wrn-50-2": (tv.wide_resnet50_2, 64, "fc"),
    "resnext-50-32x4d": (tv.resnext50_32x4d, 64, "fc"),
    "densenet-121": (tv.densenet121, 64, "fc"),
    "googlenet-bn": (lambda: tv.googlenet(aux_logits=True, init_weights=False), 64, "fc"),
    # 107 pixels are as 299: either rounding of windows gives the same.
    "inception-v3": (lambda: tv.inception_v3(aux_logits=True, init_weights=False), 107, "fc"),
    "mobilenet-v2": (tv.mobilenet_v2, 64, "fc"),
    "mnasnet-1.0": (tv.mnasnet1_0, 64, "fc"),
    "shufflenet-v2-x1.0": (tv.shufflenet_v2_x1_0, 64, "fc"),
    "squeezenet-1.1": (tv.squeezenet1_1, 64, "scores"),
    "efficientnet-b0": (tv.efficientnet_b0, 64, "fc"),
    "regnet-y-1.6gf": (tv.regnet_y_1_6gf, 64, "fc"),
}
LEFT_OUT = re.compile(r"aux[12]\.|AuxLogits\.|.*num_batches_tracked$")  # what the zoo's nets have not


def write_safetensors(path, tensors):
    """As the format's description says; sorted by name, as its library does."""
    header, blocks, at = {}, [], 0
    for name in sorted(tensors):
        values = tensors[name].numpy()
        kind = {"float32": "F32", "int64": "I64"}[str(values.dtype)]
        header[name] = {"dtype": kind, "shape": list(values.shape), "data_offsets": [at, at + values.nbytes]}
        blocks.append(values.tobytes())
        at += values.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blocks))


def read_safetensors(path):
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = torch.tensor(np.frombuffer(data[begin:end], np.float32).reshape(entry["shape"]))
    return tensors


class Cortado:
    def __init__(self, program, folder):
        self.program, self.folder = pathlib.Path(program).resolve(), folder

    def __call__(self, *words):
        result = subprocess.run([str(self.program), *map(str, words)], cwd=self.folder, capture_output=True, text=True)
        if result.returncode != 0:
            raise RuntimeError(f"cortado {' '.join(map(str, words))}: {result.stderr.strip()}")
        return result.stdout

    def outputs(self, name, weights, images, blob):
        with h5py.File(self.folder / "images.h5", "w") as file:
            file["data"] = images
        (self.folder / "images.txt").write_text("images.h5\n")
        data = (f'layer {{ name: "data" type: "HDF5Data" top: "data" '
                f'hdf5_data_param {{ source: "images.txt" batch_size: {len(images)} }} }}\n')
        text, count = re.subn(r'layer \{\n  name: "data"\n.*?\n\}\n', lambda _: data,
                              (MODELS / name / "deploy.prototxt").read_text(), count=1, flags=re.S)
        assert count == 1, text[:300]
        (self.folder / "run.prototxt").write_text(text)
        self("extract", "--model", "run.prototxt", "--weights", weights, "--blobs", blob, "--format", "npy", "--out", "scores.npy")
        return np.load(self.folder / "scores.npy")


def compare(name, program):
    _, size, blob = NETS[name]
    net, images = make(NETS[name][0]), torch.randn(BATCH, 3, size, size, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        expected = net(images).numpy()
    state = net.state_dict()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        cortado = Cortado(program, folder)
        write_safetensors(folder / "torch.safetensors", state)
        model = MODELS / name / "deploy.prototxt"
        cortado("convert", model, "--weights", "torch.safetensors", "--layout", "torchvision", "--output", "net.caffemodel")
        cortado("convert", model, "--weights", "net.caffemodel", "--layout", "torchvision", "--output", "back.safetensors")
        back = read_safetensors(folder / "back.safetensors")
        ours = cortado.outputs(name, "net.caffemodel", images.numpy(), blob).reshape(expected.shape)
    wanted = {tensor: values for tensor, values in state.items() if not LEFT_OUT.match(tensor)}
    if set(back) != set(wanted):
        raise RuntimeError(f"other tensors: {sorted(set(back) ^ set(wanted))[:4]}")
    different = [tensor for tensor in wanted if not torch.equal(back[tensor], wanted[tensor])]
    if different:
        raise RuntimeError(f"other values or shapes: {different[:4]}")
    loaded = collections.OrderedDict(back)
    loaded._metadata = state._metadata  # MNASNet asks for its version, which no safetensors file has
    missing, unexpected = make(NETS[name][0]).load_state_dict(loaded, strict=False)
    if unexpected or any(not LEFT_OUT.match(tensor) for tensor in missing):
        raise RuntimeError(f"load_state_dict misses {missing[:4]}, has not expected {unexpected[:4]}")
    return len(wanted), np.abs(ours - expected).max() / max(1, np.abs(expected).max())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cortado", required=True, help="the program")
    parser.add_argument("names", nargs="*", help="which nets (default: all)")
    arguments = parser.parse_args()

    def judge(name):
        tensors, difference = compare(name, arguments.cortado)
        return difference < TOLERANCE, f"{tensors} tensors, largest difference of outputs {difference:.1e}"

    return judge_each(arguments.names or list(NETS), judge)


if __name__ == "__main__":
    sys.exit(main())
