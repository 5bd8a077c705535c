"""What the tests of the Python package share."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError:
    print("this Python has no numpy")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "models"

# LeNet on 12x12 images, in either phase.
LENET = """name: "small-lenet"
layer { name: "data" type: "Input" top: "data" top: "label"
  input_param { shape { dim: 8 dim: 1 dim: 12 dim: 12 } shape { dim: 8 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 6 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "ip1" type: "InnerProduct" bottom: "pool1" top: "ip1"
  inner_product_param { num_output: 16 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
  inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
"""

DEPLOY = """name: "deploy"
force_backward: true
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 4 dim: 3 dim: 8 dim: 8 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 5 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "ip" type: "InnerProduct" bottom: "conv1" top: "ip"
  inner_product_param { num_output: 6 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
"""


def samples(count=8, seed=0):
    """Images of LENET, and labels that can be learned."""
    random = np.random.default_rng(seed)
    labels = np.arange(count) % 4
    images = random.normal(0, 0.2, (count, 1, 12, 12))
    for image, label in zip(images, labels):
        image[0, 3 * label : 3 * label + 3] += 1
    return images.astype(np.float32), labels.astype(np.float32)


def lenet_by_numpy(images, weights):
    """Scores of LENET, written anew: `weights` as conv1/weight, conv1/bias, ip1/..., ip2/..."""
    windows = np.lib.stride_tricks.sliding_window_view(images.astype(float), (3, 3), axis=(2, 3))
    conv = np.einsum("nchwij,fcij->nfhw", windows, weights["conv1/weight"]) + weights["conv1/bias"][:, None, None]
    pool = conv.reshape(len(images), 6, 5, 2, 5, 2).max((3, 5))
    hidden = np.maximum(pool.reshape(len(images), -1) @ weights["ip1/weight"].T + weights["ip1/bias"], 0)
    return hidden @ weights["ip2/weight"].T + weights["ip2/bias"]


def softmax(scores):
    exponents = np.exp(scores - scores.max(1, keepdims=True))
    return exponents / exponents.sum(1, keepdims=True)


def cross_entropy(scores, labels):
    return -np.log(softmax(scores)[np.arange(len(labels)), labels.astype(int)]).mean()


class Case(unittest.TestCase):
    """A test in a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def near(self, one, other, within=1e-5):
        np.testing.assert_allclose(one, other, rtol=within, atol=within)

    def same(self, one, other):
        np.testing.assert_array_equal(one, other)

    def command(self, *arguments, fails=False):
        """What the command prints; with `fails` its error."""
        done = subprocess.run(
            [os.environ["CORTADO"], *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, timeout=300
        )
        self.assertEqual(done.returncode, 2 if fails else 0, done.stderr)
        return done.stderr if fails else done.stdout


def torch_or_skip():
    try:
        import torch
    except ImportError:
        raise unittest.SkipTest("this Python has no PyTorch") from None
    return torch
