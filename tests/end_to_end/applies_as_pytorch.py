#!/usr/bin/env python3
"""Classifies images and extracts blobs in Cortado, and compares them with PyTorch and NumPy.

    tests/end_to_end/applies_as_pytorch.py --cortado build/cortado

Images of several sizes, grey, in colour and with alpha, are written as PNG files. NumPy prepares them as Caffe's
classification example does (channels, bilinear resize, mean), PyTorch runs the net by its own reading of the model
file. Compared are the scores of `classify`, plain and oversampled, and the blobs of `extract` in NumPy's and HDF5
files. Needs Debian's python3-torch and python3-h5py; exits 77 where they are missing.
"""

import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

try:
    import h5py
    import numpy as np
    import torch
except ImportError as error:
    print(f"skipped: {error} (Debian's packages belong to /usr/bin/python3; this is {sys.executable})")
    sys.exit(77)

from caffe_net import CaffeNet
from same_losses import initialize, write_weights

HEIGHT, WIDTH = 20, 24
MEAN, SCALE = np.array([104.0, 117.0, 123.0]), 1 / 64
NET = """name: "applied"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 3 dim: 3 dim: 20 dim: 24 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 8 kernel_size: 5 stride: 2 pad: 1 } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "norm1" type: "LRN" bottom: "conv1" top: "norm1" lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 } }
layer { name: "pool1" type: "Pooling" bottom: "norm1" top: "pool1" pooling_param { pool: MAX kernel_size: 3 stride: 2 } }
layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
  convolution_param { num_output: 12 kernel_size: 3 pad: 1 group: 2 } }
layer { name: "relu2" type: "ReLU" bottom: "conv2" top: "conv2" }
layer { name: "fc" type: "InnerProduct" bottom: "conv2" top: "fc" inner_product_param { num_output: 7 } }
layer { name: "prob" type: "Softmax" bottom: "fc" top: "prob" }
"""


def write_png(path, image):
    """An image of rows x columns x channels: 1 grey, 3 red, green and blue, 4 with alpha."""
    height, width, channels = image.shape
    rows = b"".join(b"\0" + image[y].tobytes() for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def draw_images(random):
    """Smooth ones, so that no rounding of a pixel makes a difference that the net would blow up."""
    images = []
    for height, width, channels in ((20, 24, 3), (33, 51, 3), (12, 70, 1), (20, 24, 1), (40, 18, 4)):
        coarse = torch.tensor(random.uniform(0, 255, (1, channels, 4, 5)))
        smooth = torch.nn.functional.interpolate(coarse, (height, width), mode="bilinear", align_corners=True)
        images.append(smooth[0].permute(1, 2, 0).round().numpy().astype(np.uint8))
    return images


def taps(size, wanted):
    """Per output pixel: the two nearest input pixels and the weight of the second one."""
    centre = np.clip((np.arange(wanted) + 0.5) * size / wanted - 0.5, 0, size - 1)
    first = np.minimum(np.floor(centre).astype(int), max(size - 2, 0))
    return first, np.minimum(first + 1, size - 1), centre - first


def resized(image, height, width):
    if image.shape[:2] == (height, width):
        return image
    top, bottom, down = taps(image.shape[0], height)
    left, right, across = taps(image.shape[1], width)
    across, down = across[None, :, None], down[:, None, None]
    rows = image[:, left] * (1 - across) + image[:, right] * across
    return np.floor(rows[top] * (1 - down) + rows[bottom] * down + 0.5).astype(np.uint8)


def prepared(image, height, width):
    """What the net reads: channels blue, green, red; height x width; less the mean."""
    colour = np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image[:, :, 2::-1]
    return ((resized(colour, height, width) - MEAN) * SCALE).transpose(2, 0, 1)


def crops(image, height, width):
    big = prepared(image, height, width)
    below, right = height - HEIGHT, width - WIDTH
    places = [(0, 0), (0, right), (below, 0), (below, right), (below // 2, right // 2)]
    cut = [big[:, y:y + HEIGHT, x:x + WIDTH] for y, x in places]
    return cut + [crop[:, :, ::-1] for crop in cut]


def blobs_of(net, samples):
    with torch.no_grad():
        blobs, _ = net.forward(data=torch.tensor(np.array(samples)).float())
    return {name: values.numpy() for name, values in blobs.items()}


class Comparison:
    def __init__(self):
        self.failures = 0

    def near(self, what, ours, theirs, tolerance):
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        difference = np.abs(ours - theirs).max() if ours.shape == theirs.shape else np.inf
        good = difference <= tolerance  # false for NaN
        print(f"{'' if good else 'FAILED: '}{what}: {ours.shape}, largest difference {difference:.1e}")
        self.failures += not good


def run(program, folder, *words):
    command = [program, *words[:1], "--model", "deploy.prototxt", "--weights", "weights.h5", "--mean-value",
               ",".join(map(str, MEAN)), "--scale", str(SCALE), "--threads", "2", *words[1:]]
    result = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} failed ({result.returncode}): {result.stderr.strip()}")


def scores(folder):
    """Of out.json, image by image, class by class."""
    images = json.loads((folder / "out.json").read_text())["images"]
    return [[p["score"] for p in sorted(image["predictions"], key=lambda p: p["class"])] for image in images]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cortado", required=True, help="the program")
    arguments = parser.parse_args()
    program = pathlib.Path(arguments.cortado).resolve()
    torch.manual_seed(3)
    images = draw_images(np.random.default_rng(3))
    compare = Comparison()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "deploy.prototxt").write_text(NET)
        names = [f"{i}.png" for i in range(len(images))]
        for name, image in zip(names, images):
            write_png(folder / name, image)
        net = CaffeNet(folder / "deploy.prototxt", "TEST", initialize)
        expected = blobs_of(net, [prepared(image, HEIGHT, WIDTH) for image in images])
        write_weights(folder / "weights.h5", net.parameters)

        run(program, folder, "classify", "--top", 7, "--json", "out.json", *names)
        compare.near("classify", scores(folder), expected["prob"], 1e-3)

        run(program, folder, "classify", "--top", 7, "--json", "out.json", "--oversample", "--resize", "27,31", *names)
        ten = [blobs_of(net, crops(image, 27, 31))["prob"].mean(axis=0) for image in images]
        compare.near("classify --oversample", scores(folder), ten, 1e-3)

        wanted = ["data", "conv1", "pool1", "conv2", "fc"]
        run(program, folder, "extract", "--blobs", ",".join(wanted), "--format", "npy", "--out", "features", *names)
        run(program, folder, "extract", "--blobs", ",".join(wanted), "--format", "hdf5", "--out", "all.h5", *names)
        with h5py.File(folder / "all.h5") as file:
            for blob in wanted:
                ours = np.load(folder / "features" / f"{blob}.npy")
                # A pixel may be rounded the other way.
                compare.near(f"extract {blob}", ours, expected[blob], 1.01 * SCALE if blob == "data" else 0.02)
                compare.near(f"extract {blob}, HDF5 against NumPy", file[blob][:], ours, 0)
        same = [i for i, image in enumerate(images) if image.shape[:2] == (HEIGHT, WIDTH)]
        ours = np.load(folder / "features" / "data.npy")
        compare.near("pixels of images that are not resized", ours[same], expected["data"][same], 1e-6)
    return 1 if compare.failures else 0


if __name__ == "__main__":
    sys.exit(main())
