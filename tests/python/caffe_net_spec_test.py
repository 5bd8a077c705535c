#!/usr/bin/env python3
"""cortado.caffe's NetSpec, and drawings of nets."""

import sys
import unittest
from unittest import mock

from google.protobuf import text_format
from support import LENET, Case, np, samples

import cortado
import cortado.caffe as caffe
from cortado.caffe import draw
from cortado.caffe import layers as L
from cortado.caffe import params as P
from cortado.caffe.proto import caffe_pb2


def spec_of_lenet():
    n = caffe.NetSpec()
    n.data, n.label = L.Input(ntop=2, shape=[dict(dim=[8, 1, 12, 12]), dict(dim=8)])
    n.conv1 = L.Convolution(n.data, num_output=6, kernel_size=3, weight_filler=dict(type="xavier"))
    n.pool1 = L.Pooling(n.conv1, pool=P.Pooling.MAX, kernel_size=2, stride=2)
    n.ip1 = L.InnerProduct(n.pool1, num_output=16, weight_filler=dict(type="xavier"))
    n.relu1 = L.ReLU(n.ip1, in_place=True)
    n.ip2 = L.InnerProduct(n.relu1, num_output=4, weight_filler=dict(type="xavier"))
    n.accuracy = L.Accuracy(n.ip2, n.label, include=dict(phase=caffe.TEST))
    n.loss = L.SoftmaxWithLoss(n.ip2, n.label)
    return n


class Specs(Case):
    def test_a_net_is_that_of_its_text(self):
        written = text_format.Parse(LENET, caffe_pb2.NetParameter())
        made = spec_of_lenet().to_proto()
        self.assertEqual(list(made.layer), list(written.layer))

    def test_its_text_is_a_model_file(self):
        net = caffe.Net(self.write("net.prototxt", str(spec_of_lenet().to_proto())), caffe.TEST)
        images, labels = samples()
        self.assertEqual(set(net.forward(data=images, label=labels)), {"accuracy", "loss"})

    def test_options(self):
        n = caffe.NetSpec()
        n["data"] = L.DummyData(shape=[dict(dim=[2, 3])])
        n.ip = L.InnerProduct(
            n.data, name="first", num_output=5, param=[dict(lr_mult=1, name="w"), dict(lr_mult=2)], bias_filler=dict(type="constant", value=3)
        )
        n.scaled = L.Power(n["ip"], power_param=dict(scale=2), loss_weight=1)
        n.gone = L.Silence(n.ip, ntop=0)
        ip, scaled, silence = n.to_proto().layer[1:]
        self.assertEqual((ip.name, list(ip.top)), ("first", ["ip"]))
        self.assertEqual([param.lr_mult for param in ip.param], [1, 2])
        self.assertEqual(ip.param[0].name, "w")
        self.assertEqual(ip.inner_product_param.bias_filler.value, 3)
        self.assertEqual((scaled.power_param.scale, list(scaled.loss_weight)), (2, [1]))
        self.assertEqual((silence.type, silence.name, list(silence.top)), ("Silence", "gone", []))
        del n.scaled
        self.assertEqual(len(n.to_proto().layer), 3)
        n.update({"again": L.ReLU(n.ip)})
        self.assertEqual(n.to_proto().layer[-1].name, "again")

    def test_tops_without_names(self):
        data = L.DummyData(shape=[dict(dim=[2, 3])])
        relu = L.ReLU(L.ReLU(data), in_place=True)
        net = caffe.to_proto(L.Sigmoid(relu))
        self.assertEqual([layer.name for layer in net.layer], ["DummyData1", "ReLU1", "ReLU2", "Sigmoid1"])
        self.assertEqual(list(net.layer[2].top), ["ReLU1"])
        self.assertEqual(list(net.layer[3].bottom), ["ReLU1"])
        self.assertEqual(relu.to_proto().layer[0].type, "DummyData")

    def test_mistakes(self):
        with self.assertRaises(TypeError):
            L.ReLU("conv1")
        with self.assertRaises(AttributeError):
            caffe.NetSpec().conv1
        with self.assertRaises(AttributeError):
            n = caffe.NetSpec()
            n.data = L.DummyData(no_such_option=1)
            n.to_proto()
        self.assertEqual(P.Eltwise.SUM, caffe_pb2.EltwiseParameter.SUM)


class Drawings(Case):
    def setUp(self):
        super().setUp()
        self.net = text_format.Parse(LENET, caffe_pb2.NetParameter())

    def test_graph(self):
        text = draw.net_graph(self.net, rankdir="TB")
        self.assertTrue(text.startswith('digraph "small-lenet" {\n  rankdir=TB;'))
        for edge in ('"data_blob" -> "conv1_Convolution"', '"conv1_Convolution" -> "conv1_blob" [label="6"]', '"ip2_blob" -> "accuracy_Accuracy"'):
            self.assertIn(edge, text)
        self.assertIn(r"kernel size: 3\nstride: 1\npad: 0", text)
        self.assertIn(r"(MAX Pooling)", text)
        self.assertNotIn("accuracy", draw.net_graph(self.net, phase=caffe.TRAIN))
        self.assertNotIn('label="6"', draw.net_graph(self.net, label_edges=False))

    def test_files(self):
        file = self.folder / "net.gv"
        draw.draw_net_to_file(self.net, str(file))
        self.assertEqual(file.read_text(), draw.net_graph(self.net))
        with mock.patch.dict("os.environ", {"PATH": ""}), self.assertRaisesRegex(FileNotFoundError, "graphviz"):
            draw.draw_net(self.net, ext="png")


if __name__ == "__main__":
    sys.exit(unittest.main())
