#!/usr/bin/env python3
"""A program that was written for pycaffe runs as it is."""

import os
import pathlib
import subprocess
import sys
import unittest

from support import LENET, Case

PROGRAM = """
import caffe
import caffe.io
import caffe.proto.caffe_pb2 as messages
import numpy as np
from caffe import layers as L, params as P
from caffe.proto import caffe_pb2
from google.protobuf import text_format
from caffe.draw import draw_net_to_file

assert messages is caffe_pb2 is caffe.proto.caffe_pb2
caffe.set_mode_cpu()
solver = caffe.SGDSolver("solver.prototxt")
print([(name, blob.data.shape) for name, blob in solver.net.blobs.items()])
solver.net.blobs["label"].data[...] = np.arange(8) % 4
for it in range(3):
    solver.net.blobs["data"].data[...] = np.eye(12)[np.arange(8) % 4][:, None, :, None] * np.ones((8, 1, 12, 12))
    solver.step(1)
solver.test_nets[0].share_with(solver.net)
solver.test_nets[0].forward(start="conv1")
net = caffe.Net("net.prototxt", caffe.TEST)
for name in net.params:
    net.params[name][0].data.flat = solver.net.params[name][0].data.flat
    net.params[name][1].data[...] = solver.net.params[name][1].data
for name in net.inputs:
    net.blobs[name].data[...] = solver.net.blobs[name].data
net.forward()
solver.net.forward()
assert np.allclose(net.blobs["ip2"].data, solver.net.blobs["ip2"].data, atol=1e-5)
param = caffe_pb2.NetParameter()
text_format.Merge(open("net.prototxt").read(), param)
draw_net_to_file(param, "net.gv")
n = caffe.NetSpec()
n.data = L.DummyData(shape=[dict(dim=[2, 3, 8, 8])])
n.pool = L.Pooling(n.data, pool=P.Pooling.AVE, kernel_size=2, stride=2)
with open("spec.prototxt", "w") as file:
    file.write(str(n.to_proto()))
print(caffe.Net("spec.prototxt", caffe.TEST).forward()["pool"].shape)
"""


# The tutorial of multilabel classification: a data layer in a module of its own.
LAYERS = """
import caffe
import numpy as np

class MultilabelData(caffe.Layer):
    def setup(self, bottom, top):
        self.params = eval(self.param_str)
        self.batch = self.params["batch_size"]
        self.random = np.random.RandomState(0)
        top[0].reshape(self.batch, 3, 6, 6)
        top[1].reshape(self.batch, 2)

    def forward(self, bottom, top):
        for itt in range(self.batch):
            labels = self.random.randint(0, 2, 2)
            image = self.random.normal(0, 0.1, (3, 6, 6))
            image[0] += labels[0]
            image[2] += labels[1]
            top[0].data[itt, ...] = image
            top[1].data[itt, ...] = labels

    def reshape(self, bottom, top):
        pass

    def backward(self, top, propagate_down, bottom):
        pass
"""
MULTILABEL = """
import caffe
from caffe import layers as L, params as P

n = caffe.NetSpec()
n.data, n.label = L.Python(module="multilabel_layers", layer="MultilabelData", ntop=2, param_str=str(dict(batch_size=8)))
n.score = L.InnerProduct(n.data, num_output=2, weight_filler=dict(type="xavier"))
n.loss = L.SigmoidCrossEntropyLoss(n.score, n.label)
with open("net.prototxt", "w") as f:
    f.write(str(n.to_proto()))
with open("solver.prototxt", "w") as f:
    f.write('train_net: "net.prototxt" base_lr: 0.1 lr_policy: "fixed" momentum: 0.9')
solver = caffe.SGDSolver("solver.prototxt")
for itt in range(4):
    solver.step(10)
    right = ((solver.net.blobs["score"].data > 0) == (solver.net.blobs["label"].data > 0)).mean()
print("right", right)
"""


class Programs(Case):
    def run_program(self, text):
        import cortado

        folder = pathlib.Path(cortado.__file__).parent
        path = os.pathsep.join([str(folder.parent), str(folder / "programs")])
        program = [sys.executable, "-B", self.write("program.py", text)]
        done = subprocess.run(program, cwd=self.folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_multilabel(self):
        self.write("multilabel_layers.py", LAYERS)
        self.assertGreaterEqual(float(self.run_program(MULTILABEL).stdout.split("right ")[1]), 0.9)

    def test_runs_as_it_is(self):
        self.write("net.prototxt", LENET)
        self.write("solver.prototxt", 'net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" test_iter: 1 test_interval: 100')
        done = self.run_program(PROGRAM)
        self.assertIn("('conv1', (8, 6, 10, 10))", done.stdout)
        self.assertTrue(done.stdout.endswith("(2, 3, 4, 4)\n"), done.stdout)
        self.assertTrue((self.folder / "net.gv").exists())


if __name__ == "__main__":
    sys.exit(unittest.main())
