#!/usr/bin/env python3
"""Layers of type Python: what pycaffe's own test_python_layer.py asks for, gradients, losses, data, refusals."""

import os
import sys
import unittest
import weakref

from support import Case, np, torch_or_skip

import cortado
import cortado.caffe as caffe


class SimpleLayer(caffe.Layer):
    """Multiplies by ten."""

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].data.shape)

    def forward(self, bottom, top):
        top[0].data[...] = 10 * bottom[0].data

    def backward(self, top, propagate_down, bottom):
        bottom[0].diff[...] = 10 * top[0].diff


class ExceptionLayer(caffe.Layer):
    """Fails where param_str says."""

    def setup(self, bottom, top):
        if self.param_str == "setup":
            raise RuntimeError("no setup")

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        if self.param_str == "forward" and bottom[0].data.max() > 1:
            raise RuntimeError("no forward")
        top[0].data[...] = bottom[0].data

    def backward(self, top, propagate_down, bottom):
        raise RuntimeError("no backward")


class ParameterLayer(caffe.Layer):
    """Its parameter, whose gradient is one."""

    def setup(self, bottom, top):
        self.blobs.add_blob(1)
        self.blobs[0].data[0] = 0

    def reshape(self, bottom, top):
        top[0].reshape(1)

    def forward(self, bottom, top):
        top[0].data[0] = self.blobs[0].data[0]

    def backward(self, top, propagate_down, bottom):
        self.blobs[0].diff[0] = 1


class PhaseLayer(caffe.Layer):
    def reshape(self, bottom, top):
        top[0].reshape()

    def forward(self, bottom, top):
        top[0].data[()] = self.phase


class CubicLayer(caffe.Layer):
    """y = a x^3 + b, a of each channel."""

    def setup(self, bottom, top):
        self.blobs.add_blob(bottom[0].channels)
        self.blobs.add_blob((1,))
        self.blobs[0].data[...] = 1 + np.arange(bottom[0].channels)
        self.blobs[1].data[...] = 0.5

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        self.x = bottom[0].data  # an array that stays
        top[0].data[...] = self.blobs[0].data[:, None, None] * self.x**3 + self.blobs[1].data[0]

    def backward(self, top, propagate_down, bottom):
        self.blobs[0].diff[...] += (top[0].diff * self.x**3).sum((0, 2, 3))
        self.blobs[1].diff[...] += top[0].diff.sum()
        if propagate_down[0]:
            bottom[0].diff[...] = 3 * self.blobs[0].data[:, None, None] * self.x**2 * top[0].diff


class EuclideanLoss(caffe.Layer):
    """That of pycaffe's examples; it takes its weight from its top's diff."""

    def setup(self, bottom, top):
        if len(bottom) != 2:
            raise Exception("Need two inputs to compute distance.")

    def reshape(self, bottom, top):
        if bottom[0].count != bottom[1].count:
            raise Exception("Inputs must have the same dimension.")
        self.diff = np.zeros_like(bottom[0].data, dtype=np.float32)
        top[0].reshape(1)

    def forward(self, bottom, top):
        self.diff[...] = bottom[0].data - bottom[1].data
        top[0].data[...] = np.sum(self.diff**2) / bottom[0].num / 2.0

    def backward(self, top, propagate_down, bottom):
        for i in range(2):
            if not propagate_down[i]:
                continue
            sign = 1 if i == 0 else -1
            bottom[i].diff[...] = top[0].diff[0] * sign * self.diff / bottom[i].num


class MultilabelData(caffe.Layer):
    """Images with a bar in each of those quarters that the labels name; as the tutorial's layer, its options are a dict."""

    def setup(self, bottom, top):
        options = eval(self.param_str)
        self.random = np.random.default_rng(options["seed"])
        self.batch = options["batch_size"]
        top[0].reshape(self.batch, 1, 8, 8)
        top[1].reshape(self.batch, 4)

    def reshape(self, bottom, top):
        pass

    def forward(self, bottom, top):
        labels = self.random.integers(0, 2, (self.batch, 4))
        top[1].data[...] = labels
        top[0].data[...] = self.random.normal(0, 0.1, top[0].shape)
        for quarter in range(4):
            top[0].data[:, 0, 2 * quarter : 2 * quarter + 2] += labels[:, quarter, None, None]

    def backward(self, top, propagate_down, bottom):
        pass


class AddOneInPlace(caffe.Layer):
    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        top[0].data[...] += 1  # in Caffe both are one blob

    def backward(self, top, propagate_down, bottom):
        pass


class Growing(caffe.Layer):
    def setup(self, bottom, top):
        self.rows = 1

    def reshape(self, bottom, top):
        top[0].reshape(self.rows, 2)

    def forward(self, bottom, top):
        self.rows += 1


def python(name, layer, bottoms=(), tops=(), more="", param_str=""):
    blobs = "".join(f' bottom: "{blob}"' for blob in bottoms) + "".join(f' top: "{blob}"' for blob in tops)
    return (
        f'layer {{ name: "{name}" type: "Python"{blobs} {more}\n'
        f'  python_param {{ module: "caffe_layer_test" layer: "{layer}" param_str: "{param_str}" }} }}\n'
    )


def inputs(*shape, name="data"):
    return f'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ {" ".join(f"dim: {n}" for n in shape)} }} }} }}\n'


def simple_net():
    layers = [python("one", "SimpleLayer", ["data"], ["one"]), python("two", "SimpleLayer", ["one"], ["two"])]
    return "force_backward: true\n" + inputs(10, 9, 8, 7) + "".join(layers) + python("three", "SimpleLayer", ["two"], ["three"])


class LayerCase(Case):
    def net(self, text, phase=caffe.TRAIN):
        return caffe.Net(self.write("net.prototxt", text), phase)


class AsPycaffe(LayerCase):
    def test_forward(self):
        net = self.net(simple_net())
        net.blobs["data"].data[...] = 8
        self.same(net.forward()["three"], np.full((10, 9, 8, 7), 8000))

    def test_backward(self):
        net = self.net(simple_net())
        net.blobs["three"].diff[...] = 7
        self.same(net.backward()["data"], np.full((10, 9, 8, 7), 7000))

    def test_reshape(self):
        net = self.net(simple_net())
        net.blobs["data"].reshape(4, 4, 4, 4)
        net.forward()
        for blob in net.blobs.values():
            self.assertEqual(blob.data.shape, (4, 4, 4, 4))

    def test_exceptions(self):
        text = inputs(2, 3) + python("fails", "ExceptionLayer", ["data"], ["top"], param_str="WHERE")
        with self.assertRaisesRegex(RuntimeError, "no setup"):
            self.net(text.replace("WHERE", "setup"))
        net = self.net("force_backward: true\n" + text.replace("WHERE", "forward"))
        net.blobs["data"].data[...] = 2
        for _ in range(2):
            with self.assertRaisesRegex(RuntimeError, "no forward"):
                net.forward()
        net.blobs["data"].data[...] = 1
        self.same(net.forward()["top"], np.ones((2, 3)))  # the old one does not come back
        with self.assertRaisesRegex(RuntimeError, "no backward"):
            net.backward()

    def test_parameter(self):
        text = "force_backward: true\n" + inputs(10, 9, 8, 7) + python("layer", "ParameterLayer", ["data"], ["top"])
        net = self.net(text)
        net.forward()
        net.backward()
        layer = net.layers[list(net._layer_names).index("layer")]
        self.assertEqual((layer.blobs[0].data[0], layer.blobs[0].diff[0]), (0, 1))
        layer.blobs[0].data[0] += layer.blobs[0].diff[0]
        self.assertEqual(net.forward()["top"][0], 1)
        net.save(str(self.folder / "net.caffemodel"))
        layer.blobs[0].data[0] = -1
        self.assertEqual(net.forward()["top"][0], -1)
        net.copy_from(str(self.folder / "net.caffemodel"))
        self.assertEqual(layer.blobs[0].data[0], 1)
        other = self.net(text)
        other.share_with(net)
        self.assertEqual(other.params["layer"][0].data[0], 1)
        self.assertEqual(other.forward()["top"][0], 1)

    def test_phase(self):
        for phase in (caffe.TRAIN, caffe.TEST):
            net = self.net(python("layer", "PhaseLayer", [], ["phase"]), phase)
            self.assertEqual(net.forward()["phase"], phase)

    def test_layer_type_list(self):
        self.assertIn("Python", caffe.layer_type_list())


class Computing(LayerCase):
    def test_gradients_equal_finite_differences(self):
        text = "force_backward: true\n" + inputs(2, 3, 4, 5) + python("cubic", "CubicLayer", ["data"], ["y"])
        net = self.net(text)
        self.same(net.params["cubic"][0].data, [1, 2, 3])
        random = np.random.default_rng(0)
        x, dy = random.normal(size=(2, 3, 4, 5)), random.normal(size=(2, 3, 4, 5))
        net.blobs["data"].data[...] = x
        net.forward()
        net.blobs["y"].diff[...] = dy
        net.backward()

        def value():
            return float((net.forward()["y"].astype(float) * dy).sum())

        for array, gradient in (
            (net.blobs["data"].data, net.blobs["data"].diff),
            (net.params["cubic"][0].data, net.params["cubic"][0].diff),
            (net.params["cubic"][1].data, net.params["cubic"][1].diff),
        ):
            for at in list(np.ndindex(array.shape))[::7]:
                middle, step = array[at].copy(), 1e-2
                array[at] = middle + step
                after = value()
                array[at] = middle - step
                before = value()
                array[at] = middle
                self.near((after - before) / (2 * step), gradient[at], 2e-3)
                self.assertGreater(abs(gradient[at]), 0)

    def test_loss_trains_as_pytorchs(self):
        torch = torch_or_skip()
        text = inputs(4, 3) + inputs(4, 2, name="goal") + (
            'layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 2 '
            'weight_filler { type: "xavier" } } }\n'
        ) + python("loss", "EuclideanLoss", ["ip", "goal"], ["loss"], "loss_weight: 2")
        self.write("net.prototxt", text)
        solver = caffe.SGDSolver(self.write("solver.prototxt", f'net: "{self.folder}/net.prototxt" base_lr: 0.1 lr_policy: "fixed" momentum: 0.9'))
        random = np.random.default_rng(1)
        x, goal = (random.normal(size=shape).astype(np.float32) for shape in ((4, 3), (4, 2)))
        solver.net.blobs["data"].data[...], solver.net.blobs["goal"].data[...] = x, goal
        weight, bias = (torch.tensor(blob.data.copy(), requires_grad=True) for blob in solver.net.params["ip"])
        optimizer = torch.optim.SGD([weight, bias], 0.1, momentum=0.9)
        for _ in range(5):
            solver.step(1)
            optimizer.zero_grad()
            loss = ((torch.tensor(x) @ weight.T + bias - torch.tensor(goal)) ** 2).sum() / 4
            loss.backward()
            optimizer.step()
            self.near(2 * float(solver.net.blobs["loss"].data), loss.item())
        self.near(solver.net.params["ip"][0].data, weight.detach().numpy())

    def test_multilabel_from_a_data_layer(self):
        data = 'include { phase: PHASE }'
        text = "".join(
            python("data", "MultilabelData", [], ["data", "label"], data.replace("PHASE", phase), f"dict(batch_size=16, seed={seed})")
            for seed, phase in enumerate(("TRAIN", "TEST"))
        ) + (
            'layer { name: "score" type: "InnerProduct" bottom: "data" top: "score" inner_product_param { num_output: 4 '
            'weight_filler { type: "xavier" } } }\n'
            'layer { name: "loss" type: "SigmoidCrossEntropyLoss" bottom: "score" bottom: "label" top: "loss" }\n'
        )
        self.write("net.prototxt", text)
        path = self.write(
            "solver.prototxt",
            f'net: "{self.folder}/net.prototxt" base_lr: 0.05 lr_policy: "fixed" momentum: 0.9 test_iter: 2 test_interval: 1000 '
            f'snapshot_prefix: "{self.folder}/multilabel"',
        )
        solver = caffe.get_solver(path)
        solver.step(60)
        test = solver.test_nets[0]
        right = []
        for _ in range(4):
            test.forward()
            right.append(((test.blobs["score"].data > 0) == (test.blobs["label"].data > 0)).mean())
        self.assertGreater(np.mean(right), 0.97)
        seen = solver.net.blobs["label"].data.copy()
        solver.step(1)
        self.assertFalse(np.array_equal(seen, solver.net.blobs["label"].data))  # each step has a batch of its own
        solver.snapshot()
        self.assertTrue((self.folder / "multilabel_iter_61.caffemodel").exists())

    def test_in_place(self):
        net = self.net(inputs(2, 3) + python("add", "AddOneInPlace", ["data"], ["data"]) + python("ten", "SimpleLayer", ["data"], ["y"]))
        net.blobs["data"].data[...] = 4
        self.same(net.forward()["y"], np.full((2, 3), 50))

    def test_trainer_of_the_package(self):
        made = []

        def layers(text):
            made.append((text["name"], text["layer"], text["param_str"], text["phase"]))
            layer = CubicLayer()
            return layer

        text = inputs(2, 3, 4, 5) + python("cubic", "Anything", ["data"], ["y"], param_str="p") + (
            'layer { name: "loss" type: "Reduction" bottom: "y" top: "loss" loss_weight: 1 reduction_param { operation: MEAN } }'
        )
        network = cortado.Network.from_text(text, layers=layers)
        self.assertEqual(network.parameters(), {"cubic/blob0": (3,), "cubic/blob1": (1,)})
        trainer = cortado.Trainer(cortado.Solver(network, base_lr=0.5))
        self.assertEqual(made[-1], ("cubic", "Anything", "p", cortado.Phase.train))
        trainer.step(2)
        self.near(trainer.parameters["cubic/blob1"], [0.5 - 2 * 0.5])  # the input is zero: its gradient is one
        again = cortado.Trainer(cortado.Solver(cortado.Network.from_text(text, layers=lambda _: None), base_lr=1), layers=layers)
        again.step(1)

    def test_a_layer_ends_with_its_net(self):
        ends = []

        class Watched(SimpleLayer):
            def setup(self, bottom, top):
                ends.append(weakref.ref(self))
                self.kept = bottom

        sys.modules["caffe_layer_test"].Watched = Watched
        net = self.net(inputs(2, 3) + python("one", "Watched", ["data"], ["one"]))
        net.forward()
        kept = ends[0]().kept[0].data
        del net
        self.assertIsNone(ends[0]())
        self.assertEqual(kept.shape, (2, 3))  # an array outlives its net
        self.assertEqual(len(ends), 1)


class Refusals(LayerCase):
    def error(self, text, of=cortado.UserError):
        with self.assertRaises(of) as raised:
            self.net(text).forward()
        return str(raised.exception)

    def test_wrong_files(self):
        good = inputs(2, 3) + python("one", "SimpleLayer", ["data"], ["one"])
        self.assertIn("there is no module 'nowhere'", self.error(good.replace("caffe_layer_test", "nowhere")))
        self.assertIn("has no class 'Nothing'", self.error(good.replace("SimpleLayer", "Nothing")))
        self.assertIn("needs python_param", self.error(good.split("python_param")[0] + "}"))
        self.assertIn("layer 'one'", self.error(good.replace("SimpleLayer", "Nothing")))

    def test_a_top_that_changes_its_shape(self):
        net = self.net(python("grows", "Growing", [], ["top"]))
        net.forward()
        with self.assertRaisesRegex(cortado.UserError, "layer 'grows': its reshape\\(\\) gives top 0 the shape 2x2, the net was made with 1x2"):
            net.forward()

    def test_a_layer_that_computes_nothing(self):
        class Nothing(caffe.Layer):
            pass

        sys.modules["caffe_layer_test"].Nothing2 = Nothing
        self.assertIn("Nothing has no forward()", self.error(python("one", "Nothing2", [], ["one"]), NotImplementedError))

    def test_ranks(self):
        path = self.write("net.prototxt", inputs(2, 3, 4, 4) + python("cubic", "CubicLayer", ["data"], ["y"]))
        network = cortado.Network.from_file(path, layers=lambda text: CubicLayer())
        with self.assertRaisesRegex(cortado.UserError, "net.prototxt:2: layer 'cubic': .*train on one rank"):
            cortado.simulate(network, cortado.Strategy("data"), cortado.Machine("layer-wise-p100").first(2))

    def test_command(self):
        path = self.write("net.prototxt", simple_net())
        error = self.command("show", "--model", path, fails=True)
        self.assertIn("layer 'one': Caffe's type 'Python' is not supported", error)
        self.assertIn("cortado.caffe", error)
        self.assertEqual(error.count("\n"), 1)


if __name__ == "__main__":
    sys.modules["caffe_layer_test"] = sys.modules["__main__"]  # by which the nets name it
    sys.exit(unittest.main())
