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


class Programs(Case):
    def test_runs_as_it_is(self):
        self.write("net.prototxt", LENET)
        self.write("solver.prototxt", 'net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" test_iter: 1 test_interval: 100')
        file = self.write("program.py", PROGRAM)
        import cortado

        folder = pathlib.Path(cortado.__file__).parent
        path = os.pathsep.join([str(folder.parent), str(folder / "programs")])
        done = subprocess.run(
            [sys.executable, "-B", file], cwd=self.folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("('conv1', (8, 6, 10, 10))", done.stdout)
        self.assertTrue(done.stdout.endswith("(2, 3, 4, 4)\n"), done.stdout)
        self.assertTrue((self.folder / "net.gv").exists())


if __name__ == "__main__":
    sys.exit(unittest.main())
