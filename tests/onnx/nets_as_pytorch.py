#!/usr/bin/env python3
"""Nets of torchvision, exported to ONNX by PyTorch and converted by `cortado convert`, give PyTorch's outputs.

    tests/onnx/nets_as_pytorch.py --cortado build/dev/cortado [NAME...]

Weights are random, and so are the statistics of batch norms; inputs are small. `cortado extract` runs the converted net
on data in HDF5 files. Then the net goes back to ONNX, which onnx.checker must accept, is converted again and must give
the same. Without names all nets are compared; it says how long that took. Needs Debian's python3-torch,
python3-torchvision, python3-onnx and python3-h5py; exits 77 where they are missing.
"""

import argparse
import io
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

try:
    import h5py
    import numpy as np
    import onnx
    import torch
    import torchvision.models as tv
except ImportError as error:
    print(f"skipped: {error} (Debian's packages belong to /usr/bin/python3; this is {sys.executable})")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
import safetensors_io  # noqa: E402, F401: training_as_pytorch.py takes it from here
from each_net import judge_each  # noqa: E402
from random_net import make  # noqa: E402

BATCH, TOLERANCE = 2, 1e-5
# name: (maker, pixels a side). The nets with fixed fully connected layers after a flatten take their own size.
NETS = {
    "alexnet": (tv.alexnet, 224),
    "vgg11": (tv.vgg11, 224),
    "vgg11_bn": (tv.vgg11_bn, 224),
    "resnet18": (tv.resnet18, 64),
    "resnet50": (tv.resnet50, 64),
    "resnext50_32x4d": (tv.resnext50_32x4d, 64),
    "wide_resnet50_2": (tv.wide_resnet50_2, 64),
    "squeezenet1_0": (tv.squeezenet1_0, 64),
    "squeezenet1_1": (tv.squeezenet1_1, 64),
    "mobilenet_v2": (tv.mobilenet_v2, 64),
    "mobilenet_v3_small": (tv.mobilenet_v3_small, 64),
    "mobilenet_v3_large": (tv.mobilenet_v3_large, 64),
    "googlenet": (lambda: tv.googlenet(aux_logits=False, init_weights=False, transform_input=True), 64),
    "inception_v3": (lambda: tv.inception_v3(aux_logits=False, init_weights=False, transform_input=True), 96),
    "densenet121": (tv.densenet121, 64),
    "shufflenet_v2_x1_0": (tv.shufflenet_v2_x1_0, 64),
    "mnasnet1_0": (tv.mnasnet1_0, 64),
    "regnet_y_400mf": (tv.regnet_y_400mf, 64),
    "regnet_x_400mf": (tv.regnet_x_400mf, 64),
    "efficientnet_b0": (tv.efficientnet_b0, 64),
    "efficientnet_v2_s": (tv.efficientnet_v2_s, 64),
    "fcn_resnet50": (lambda: segmenter(tv.segmentation.fcn_resnet50), 64),
    "deeplabv3_resnet50": (lambda: segmenter(tv.segmentation.deeplabv3_resnet50), 64),
    "deeplabv3_mobilenet_v3_large": (lambda: segmenter(tv.segmentation.deeplabv3_mobilenet_v3_large), 64),
}
# Nets that are refused, and what the message says.
REFUSED = {"convnext_tiny": (tv.convnext_tiny, 64, "Erf")}


def segmenter(maker):
    return OneOutput(maker(weights=None, weights_backbone=None))


class OneOutput(torch.nn.Module):
    """A segmentation net without its dictionary."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, images):
        return self.net(images)["out"]


def export(net, images, opset):
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net, images, buffer, opset_version=opset, input_names=["images"], output_names=["scores"],
                          dynamic_axes={"images": {0: "N"}, "scores": {0: "N"}} if opset == 13 else None)
    return buffer.getvalue()


class Cortado:
    def __init__(self, program, folder):
        self.program, self.folder = pathlib.Path(program).resolve(), folder

    def __call__(self, *words):
        result = subprocess.run([str(self.program), *map(str, words)], cwd=self.folder, capture_output=True, text=True)
        if result.returncode != 0:
            raise RuntimeError(f"cortado {' '.join(map(str, words))}: {result.stderr.strip()}")
        return result.stdout

    def outputs(self, prefix, images):
        """What the converted net gives for the images, which an HDF5Data layer brings in place of its Input layer."""
        with h5py.File(self.folder / "images.h5", "w") as file:
            file["images"] = images
        (self.folder / "images.txt").write_text("images.h5\n")
        data = (f'layer {{ name: "images" type: "HDF5Data" top: "images" '
                f'hdf5_data_param {{ source: "images.txt" batch_size: {len(images)} }} }}\n')
        text = (self.folder / f"{prefix}.prototxt").read_text()
        text, count = re.subn(r'layer \{\n  name: "images"\n.*?\n\}\n', lambda _: data, text, count=1, flags=re.S)
        assert count == 1, text[:300]
        (self.folder / "run.prototxt").write_text(text)
        self("extract", "--model", "run.prototxt", "--weights", f"{prefix}.caffemodel", "--blobs", "scores", "--format", "npy",
             "--out", "scores.npy", "--force")
        return np.load(self.folder / "scores.npy")


def compare(name, program, opset):
    size = NETS[name][1]
    net, images = make(NETS[name][0]), torch.randn(BATCH, 3, size, size, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        expected = net(images).numpy()
    worst = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        cortado = Cortado(program, folder)
        (folder / "model.onnx").write_bytes(export(net, images, opset))
        cortado("convert", "model.onnx", "--output", "net", "--batch", BATCH)
        cortado("convert", "net.prototxt", "--weights", "net.caffemodel", "--output", "back.onnx")
        onnx.checker.check_model(onnx.load(str(folder / "back.onnx")))
        cortado("convert", "back.onnx", "--output", "again", "--batch", BATCH)
        for prefix in ("net", "again"):
            ours = cortado.outputs(prefix, images.numpy()).reshape(expected.shape)
            worst[prefix] = np.abs(ours - expected).max() / max(1, np.abs(expected).max())
    return worst


def refusal(name, program, opset):
    """The line that refuses a net."""
    maker, size, expected = REFUSED[name]
    net, images = make(maker), torch.randn(BATCH, 3, size, size)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "model.onnx").write_bytes(export(net, images, opset))
        try:
            Cortado(program, folder)("convert", "model.onnx", "--output", "net", "--batch", BATCH)
        except RuntimeError as error:
            line = str(error).splitlines()[-1]
            if expected in line and "node" in line:
                return line[line.index("model.onnx: "):]
            raise
    raise RuntimeError(f"it is converted, though {expected} was to be refused")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cortado", required=True, help="the program")
    parser.add_argument("--opset", type=int, default=13, help="of the export, 13 to 17; the batch is open in 13")
    parser.add_argument("names", nargs="*", help="which nets (default: all)")
    arguments = parser.parse_args()

    def judge(name):
        if name in REFUSED:
            return True, f"refused: {refusal(name, arguments.cortado, arguments.opset)}"
        worst = compare(name, arguments.cortado, arguments.opset)
        return all(difference < TOLERANCE for difference in worst.values()), ", ".join(
            f"{prefix} {difference:.1e}" for prefix, difference in worst.items())

    return judge_each(arguments.names or [*NETS, *REFUSED], judge)


if __name__ == "__main__":
    sys.exit(main())
