#!/usr/bin/env python3
"""The blocks of Python in docs/how-to/python.md run, and the names in docs/reference/python.md are there."""

import contextlib
import inspect
import io
import os
import pathlib
import re
import sys
import unittest

from support import ROOT, Case, np

import cortado
import cortado.caffe as caffe

TRAIN_VAL = """name: "small"
layer { name: "data" type: "Data" top: "data" top: "label" data_param { source: "none" batch_size: 4 } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 4 kernel_size: 5 stride: 4 weight_filler { type: "xavier" } } }
layer { name: "ip" type: "InnerProduct" bottom: "conv1" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
INPUT = """force_backward: true
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 16 dim: 16 } } }
"""
LABELS = 'layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 1 } } }'
BODY = """layer { name: "conv5" type: "Convolution" bottom: "data" top: "conv5"
  convolution_param { num_output: 4 kernel_size: 5 weight_filler { type: "xavier" } } }
layer { name: "ip" type: "InnerProduct" bottom: "conv5" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
"""
PROB = 'layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }'
LOSS = 'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }'
SOLVER = """net: "whole.prototxt" base_lr: 0.01 lr_policy: "fixed" snapshot_prefix: "whole" max_iter: 3
test_iter: 1 test_interval: 50
"""


class HowTo(Case):
    def prepare(self):
        from PIL import Image

        self.write("train_val.prototxt", TRAIN_VAL)
        self.write("deploy.prototxt", INPUT + BODY + PROB)
        self.write("whole.prototxt", INPUT + LABELS + BODY + LOSS)
        self.write("solver.prototxt", SOLVER)
        caffe.Net(str(self.folder / "deploy.prototxt"), caffe.TEST).save(str(self.folder / "weights.caffemodel"))
        pixels = np.random.default_rng(0).integers(0, 255, (20, 30, 3), np.uint8)
        Image.fromarray(pixels).save(self.folder / "cat.jpg")

    def test_blocks_run(self):
        try:
            self.prepare()
        except ImportError:
            self.skipTest("this Python has no Pillow")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/how-to/python.md").read_text(), re.S | re.M)
        self.assertGreaterEqual(len(blocks), 7)
        random = np.random.default_rng(0)
        names = {"images": random.normal(size=(12, 1, 28, 28)).astype(np.float32), "labels": np.arange(12, dtype=np.float32) % 3}
        names["loader"] = [(names["images"][:4], names["labels"][:4])]
        for block in blocks:
            if "deploy.prototxt" in block:
                names["images"] = random.normal(size=(1, 3, 16, 16)).astype(np.float32)
            with self.subTest(block=block), contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block, "python.md", "exec"), names)


class Reference(unittest.TestCase):
    def rows(self, heading):
        text = (ROOT / "docs/reference/python.md").read_text().split(f"## {heading}\n")[1].split("\n## ")[0].split("What is copied")[0]
        for row in re.findall(r"^\| (`.*) \| (.*) \|$", text, re.M):
            yield [re.findall(r"`(\w+(?:\.\w+)*)", cell) for cell in row]

    def test_classes(self):
        seen = set()
        for names, members in self.rows("`cortado`"):
            seen |= set(names)
            of = getattr(cortado, names[-1])
            for name in names:
                self.assertTrue(hasattr(cortado, name), name)
            if names[-1].endswith("Error") or "Phase" in names:
                continue
            for member in set(members) - {"open_nets", names[-1]}:
                self.assertTrue(hasattr(of, member), f"{names[-1]}.{member}")
            public = {member for member in dir(of) if not member.startswith("_")}
            self.assertEqual(public - set(members), set(), names[-1])
        self.assertEqual(set(cortado.__all__) - seen, set())

    def test_pycaffe(self):
        text = (ROOT / "docs/reference/python.md").read_text().split("## `cortado.caffe`")[1]
        there, missing = text.split("What differs:")[0], text.split("Not there:")[1]
        for name in caffe.__all__:
            self.assertRegex(there, rf"`{name}\b", name)
        for name in re.findall(r"`(\w+)`", missing):
            self.assertFalse(hasattr(caffe, name), name)
            self.assertFalse(hasattr(caffe.Net, name), name)
        for name in re.findall(r"`draw\.(\w+)`", there):
            self.assertTrue(hasattr(caffe.draw, name), name)
        row = next(line for line in there.splitlines() if "io.Transformer" in line)
        for name in re.findall(r"`(?:io\.)?(\w+)`", row):
            self.assertTrue(hasattr(caffe.io, name), name)

    def test_every_name_of_pycaffes_has_a_test(self):
        tests = [path for path in pathlib.Path(__file__).parent.glob("*_test.py") if path.name != "pages_test.py"]
        words = set(re.findall(r"\w+", "".join(path.read_text() for path in tests)))
        owners = [caffe.Net, caffe.SGDSolver, caffe.NetSpec, caffe.Layer, caffe.Classifier, caffe.Detector, caffe.io.Transformer]
        names = {*caffe.__all__, *(name for owner in owners for name in dir(owner) if not name.startswith("_"))}
        names |= {name for name, value in vars(caffe.io).items()
                  if inspect.isfunction(value) and value.__module__ == caffe.io.__name__ and not name.startswith("_")}
        names |= {"draw_net", "draw_net_to_file", "net_graph"}
        self.assertEqual(sorted(names - words), [])


if __name__ == "__main__":
    sys.exit(unittest.main())
