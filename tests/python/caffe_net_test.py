#!/usr/bin/env python3
"""cortado.caffe.Net: pycaffe's names against numpy and PyTorch."""

import sys
import unittest
import weakref

from support import DEPLOY, LENET, Case, lenet_by_numpy, np, samples, softmax, torch_or_skip

import cortado
import cortado.caffe as caffe


class NetCase(Case):
    def lenet(self, phase=caffe.TEST, **options):
        return caffe.Net(self.write("net.prototxt", LENET), phase, **options)

    def fed(self, phase=caffe.TEST):
        net = self.lenet(phase)
        net.blobs["data"].data[...], net.blobs["label"].data[...] = samples()
        return net

    def weights(self, net):
        names = ("weight", "bias")
        return {f"{layer}/{name}": blob.data.copy() for layer, blobs in net.params.items() for name, blob in zip(names, blobs)}


class Names(NetCase):
    def test_names(self):
        net = self.lenet()
        self.assertEqual(list(net.blobs), ["data", "label", "conv1", "pool1", "ip1", "ip2", "accuracy", "loss"])
        self.assertEqual(list(net.params), ["conv1", "ip1", "ip2"])
        self.assertEqual(net.inputs, ["data", "label"])
        self.assertEqual(net.outputs, ["accuracy", "loss"])
        self.assertEqual(net.top_names["relu1"], ["ip1"])
        self.assertEqual(net.bottom_names["loss"], ["ip2", "label"])
        self.assertEqual([layer.type for layer in net.layers][:3], ["Input", "Convolution", "Pooling"])
        self.assertEqual(net.layer_dict["ip1"].type, "InnerProduct")
        self.assertEqual(net.layer_dict["ip1"].blobs[0].shape, (16, 150))
        self.assertEqual(list(net._layer_names), list(net.layer_dict))
        self.assertEqual({name for name, weight in net.blob_loss_weights.items() if weight}, {"loss"})

    def test_a_net_ends_with_its_last_reference(self):
        net = self.fed()
        gone = [weakref.ref(net), weakref.ref(net._state)]
        blob, weight = net.blobs["ip2"], net.params["ip1"][0]
        scores = net.forward(blobs=["ip2"])["ip2"].copy()
        del net
        self.assertIsNone(gone[0]())
        self.same(blob.data, scores)
        del blob
        self.assertIsNone(gone[1]())
        self.assertEqual(weight.data.shape, (16, 150))

    def test_shapes(self):
        net = self.lenet()
        blob = net.blobs["conv1"]
        self.assertEqual(blob.data.shape, (8, 6, 10, 10))
        self.assertEqual((blob.num, blob.channels, blob.height, blob.width, blob.count), (8, 6, 10, 10, 4800))
        self.assertEqual((net.blobs["ip2"].channels, net.blobs["ip2"].height), (4, 1))
        self.assertEqual(net.params["conv1"][0].data.shape, (6, 1, 3, 3))
        self.assertEqual(net.params["conv1"][1].data.shape, (6,))

    def test_constructors(self):
        file = self.write("net.prototxt", LENET.replace("include { phase: TEST }", 'include { stage: "look" min_level: 2 }'))
        net = caffe.Net(file, caffe.TRAIN)
        self.assertNotIn("accuracy", net.blobs)
        self.assertNotIn("accuracy", caffe.Net(file, caffe.TRAIN, level=1, stages=["look"]).blobs)
        self.assertIn("accuracy", caffe.Net(file, caffe.TRAIN, level=2, stages=["look"]).blobs)
        weights = str(self.folder / "net.caffemodel")
        net.params["ip2"][1].data[...] = [1, 2, 3, 4]
        net.save(weights)
        for read in (caffe.Net(file, weights, caffe.TEST), caffe.Net(file, caffe.TEST, weights=weights)):
            self.same(read.params["ip2"][1].data, [1, 2, 3, 4])
        with self.assertRaises(TypeError):
            caffe.Net(file)
        with self.assertRaises(cortado.UserError):
            caffe.Net(str(self.folder / "none.prototxt"), caffe.TEST)

    def test_seed(self):
        caffe.set_random_seed(5)
        one, other = self.lenet(), self.lenet()
        self.same(one.params["ip1"][0].data, other.params["ip1"][0].data)
        caffe.set_random_seed(6)
        self.assertTrue((self.lenet().params["ip1"][0].data != one.params["ip1"][0].data).any())

    def test_settings(self):
        caffe.set_mode_cpu()
        caffe.set_device(0)
        for wrong in (caffe.set_mode_gpu, lambda: caffe.set_device(63)):
            with self.assertRaisesRegex(cortado.UserError, "device gpu:|trains on the GPU"):
                wrong()
        self.assertIn("InnerProduct", caffe.layer_type_list())
        self.assertEqual((caffe.TRAIN, caffe.TEST), (0, 1))


class Forward(NetCase):
    def test_forward_is_numpys(self):
        net = self.fed()
        out = net.forward()
        self.assertEqual(set(out), {"accuracy", "loss"})
        scores = lenet_by_numpy(samples()[0], self.weights(net))
        self.near(net.blobs["ip2"].data, scores)
        self.near(out["accuracy"], (scores.argmax(1) == samples()[1]).mean())

    def test_keywords_and_blobs(self):
        net = self.lenet()
        images, labels = samples()
        out = net.forward(blobs=["ip2"], data=images, label=labels)
        self.near(out["ip2"], lenet_by_numpy(images, self.weights(net)))
        with self.assertRaises(cortado.UserError):
            net.forward(data=images)
        with self.assertRaises(cortado.UserError):
            net.forward(data=images[:3], label=labels[:3])

    def test_ranges(self):
        net = self.fed()
        out = net.forward(end="ip1")
        self.assertEqual(set(out), {"ip1"})
        before = out["ip1"].copy()
        self.assertTrue((before < 0).any())
        self.same(net.blobs["ip2"].data, np.zeros((8, 4)))
        net.forward(start="relu1", end="relu1")
        self.same(net.blobs["ip1"].data, np.maximum(before, 0))
        net.forward(start="ip2")
        self.near(net.blobs["ip2"].data, lenet_by_numpy(samples()[0], self.weights(net)))
        net.blobs["ip1"].data[...] = 2
        net.forward(start="ip2", end="ip2")
        self.near(net.blobs["ip2"].data, 2 * net.params["ip2"][0].data.sum(1) + np.zeros((8, 4)))
        with self.assertRaises(cortado.UserError):
            net.forward(start="none")

    def test_arrays_live(self):
        net = self.fed()
        data, scores = net.blobs["data"].data, net.blobs["ip2"].data
        net.forward()
        first = scores.copy()
        self.near(first, lenet_by_numpy(samples()[0], self.weights(net)))
        data *= 2  # no new access
        net.forward()
        self.near(scores, lenet_by_numpy(2 * samples()[0], self.weights(net)))
        row = net.blobs["data"].data[3]  # a view of a view
        row[...] = 0
        del row
        net.forward()
        self.same(net.blobs["data"].data[3], np.zeros((1, 12, 12)))
        self.assertFalse(np.shares_memory(first, scores))

    def test_parameters_live(self):
        net = self.fed()
        weight = net.params["ip2"][0].data
        weight[...] = 0
        net.params["ip2"][1].data[...] = [0, 1, 2, 3]
        net.forward()
        self.same(net.blobs["ip2"].data, np.tile(np.arange(4), (8, 1)))

    def test_hooks(self):
        net, plain = self.fed(caffe.TRAIN), self.fed(caffe.TRAIN)
        for values in (net.params, plain.params):
            values["ip1"][0].data[...] = np.sin(np.arange(2400)).reshape(16, 150) / 10
        calls = []
        for name in ("before_forward", "after_forward", "before_backward", "after_backward"):
            getattr(net, name)(lambda number, name=name: calls.append((name, net._layer_names[number])))
        net.before_forward(lambda number: net._layer_names[number] == "ip2" and net.blobs["ip1"].data.fill(3))
        net.forward(end="ip2")
        self.assertEqual(calls[:4], [("before_forward", "data"), ("after_forward", "data"), ("before_forward", "conv1"), ("after_forward", "conv1")])
        self.assertEqual(len(calls), 2 * 6)
        self.near(net.blobs["ip2"].data, 3 * net.params["ip2"][0].data.sum(1) + np.zeros((8, 4)))
        net.forward()
        calls.clear()
        net.backward(end="ip2")
        self.assertEqual([layer for _, layer in calls], ["loss", "loss", "ip2", "ip2"])
        plain.forward()
        plain.blobs["ip1"].data[...] = 3
        plain.forward(start="ip2")
        plain.backward(end="ip2")
        self.near(net.params["ip2"][0].diff, plain.params["ip2"][0].diff)

    def test_forward_all(self):
        net = self.lenet()
        images, labels = samples(19)
        out = net.forward_all(blobs=["ip2"], data=images, label=labels)
        self.assertEqual(out["ip2"].shape, (19, 4))
        self.near(out["ip2"], lenet_by_numpy(images, self.weights(net)))
        for all_of in (net.forward_all, net.forward_backward_all):
            with self.assertRaisesRegex(cortado.UserError, "no arrays are given; give one for each input: data, label"):
                all_of()

    def test_reshape(self):
        net = self.lenet()
        images, labels = samples(3)
        net.blobs["data"].reshape(3, 1, 12, 12)
        net.blobs["label"].reshape(3)
        self.assertEqual(net.blobs["data"].data.shape, (3, 1, 12, 12))
        net.reshape()
        net.blobs["data"].data[...], net.blobs["label"].data[...] = images, labels
        net.forward()
        self.assertEqual(net.blobs["ip2"].data.shape, (3, 4))
        self.near(net.blobs["ip2"].data, lenet_by_numpy(images, self.weights(net)))
        net.blobs["data"].reshape(3, 1, 1, 1)  # does not fit
        net.blobs["data"].reshape(3, 1, 12, 12)
        net.blobs["data"].data[...] = images[::-1]
        net.forward()
        self.near(net.blobs["ip2"].data, lenet_by_numpy(images[::-1], self.weights(net)))
        with self.assertRaises(cortado.UserError):
            net.blobs["ip1"].reshape(3, 5)

    def test_memory_data(self):
        memory = """layer { name: "data" type: "MemoryData" top: "data" top: "label"
          memory_data_param { batch_size: 8 channels: 1 height: 12 width: 12 } }"""
        start = LENET.index("layer { name: \"conv1\"")
        net = caffe.Net(self.write("memory.prototxt", memory + LENET[start:]), caffe.TEST)
        images, labels = samples(16)
        net.set_input_arrays(images, labels)
        for begin in (0, 8, 0):
            net.forward()
            self.same(net.blobs["data"].data, images[begin : begin + 8])
            self.same(net.blobs["label"].data, labels[begin : begin + 8])
        net.share_with(self.lenet())  # the arrays go on
        net.forward()
        self.same(net.blobs["data"].data, images[8:])
        with self.assertRaises(cortado.UserError):
            net.set_input_arrays(images[:9], labels[:9])
        with self.assertRaises(TypeError):
            net.set_input_arrays(images.astype(float), labels)


class Backward(NetCase):
    def test_gradients_are_pytorchs(self):
        torch = torch_or_skip()
        functional = torch.nn.functional
        net = self.fed(caffe.TRAIN)
        net.forward()
        net.backward()
        weights = {name: torch.tensor(values, requires_grad=True) for name, values in self.weights(net).items()}
        images, labels = map(torch.tensor, samples())
        conv = functional.conv2d(images, weights["conv1/weight"], weights["conv1/bias"])
        pool = functional.max_pool2d(conv, 2)
        hidden = functional.linear(pool.flatten(1), weights["ip1/weight"], weights["ip1/bias"])
        scores = functional.linear(hidden.relu(), weights["ip2/weight"], weights["ip2/bias"])
        blobs = {"conv1": conv, "pool1": pool, "ip1": hidden, "ip2": scores}
        for blob in blobs.values():
            blob.retain_grad()
        functional.cross_entropy(scores, labels.long()).backward()
        for name, blob in blobs.items():
            self.near(net.blobs[name].diff, blob.grad.numpy(), 1e-5)
        for name, values in weights.items():
            layer, role = name.split("/")
            self.near(net.params[layer][0 if role == "weight" else 1].diff, values.grad.numpy(), 1e-5)

    def test_gradients_add_up(self):
        net = self.fed(caffe.TRAIN)
        net.forward()
        net.backward()
        once = net.params["ip1"][0].diff.copy()
        self.assertTrue(once.any())
        net.backward()
        self.near(net.params["ip1"][0].diff, 2 * once)
        net.clear_param_diffs()
        self.same(net.params["ip1"][0].diff, np.zeros((16, 150)))
        net.params["ip1"][0].diff[...] = 1
        net.backward()
        self.near(net.params["ip1"][0].diff, once + 1)

    def deploy(self):
        return caffe.Net(self.write("deploy.prototxt", DEPLOY), caffe.TEST)

    def gradient_of_input(self, net, images, weights_of_top):
        """d(sum of weights_of_top * prob)/d(images), by numpy."""
        conv, ip = net.params["conv1"], net.params["ip"]
        windows = np.lib.stride_tricks.sliding_window_view(images, (3, 3), axis=(2, 3))
        made = np.einsum("nchwij,fcij->nfhw", windows, conv[0].data) + conv[1].data[:, None, None]
        flat = np.maximum(made, 0).reshape(4, -1)
        prob = softmax(flat @ ip[0].data.T + ip[1].data)
        ip_diff = prob * (weights_of_top - (weights_of_top * prob).sum(1, keepdims=True))
        conv_diff = (ip_diff @ ip[0].data).reshape(made.shape) * (made > 0)
        padded = np.pad(conv_diff, ((0, 0), (0, 0), (2, 2), (2, 2)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        return ip_diff, np.einsum("nfhwij,fcij->nchw", windows, conv[0].data[:, :, ::-1, ::-1])

    def test_gradients_of_a_deploy_net(self):
        net = self.deploy()
        random = np.random.default_rng(1)
        images, tops = random.normal(size=(4, 3, 8, 8)), random.normal(size=(4, 6))
        net.forward(data=images)
        out = net.backward(diffs=["ip"], prob=tops)
        ip_diff, expected = self.gradient_of_input(net, images, tops)
        self.near(out["ip"], ip_diff)
        self.near(out["data"], expected)
        # From within: what deep dreams do.
        net.blobs["ip"].diff[...] = ip_diff
        net.blobs["prob"].diff[...] = 7
        self.near(net.backward(start="ip")["data"], expected)
        self.assertEqual(set(net.backward(start="prob", end="ip")), {"conv1"})
        with self.assertRaises(cortado.UserError):
            net.backward(ip=ip_diff)

    def test_forward_backward_all(self):
        net = self.deploy()
        random = np.random.default_rng(2)
        images, tops = random.normal(size=(7, 3, 8, 8)), random.normal(size=(7, 6))
        values, gradients = net.forward_backward_all(data=images, prob=tops)
        self.assertEqual((values["prob"].shape, gradients["data"].shape), ((7, 6), (7, 3, 8, 8)))
        self.near(gradients["data"][:4], self.gradient_of_input(net, images[:4], tops[:4])[1])
        self.near(values["prob"].sum(1), np.ones(7))


class Weights(NetCase):
    def test_files(self):
        net = self.lenet()
        for save, load, name in ((net.save, "copy_from", "a.caffemodel"), (net.save_hdf5, "load_hdf5", "a.h5")):
            path = str(self.folder / name)
            save(path)
            caffe.set_random_seed(77)
            read = self.lenet()
            caffe.set_random_seed(1)
            held = read.params["ip1"][0].data
            self.assertTrue((held != net.params["ip1"][0].data).any())
            getattr(read, load)(path)
            self.same(held, net.params["ip1"][0].data)
        message = caffe.io.caffe_pb2.NetParameter()
        message.ParseFromString((self.folder / "a.caffemodel").read_bytes())
        (layer,) = [layer for layer in message.layer if layer.name == "ip1"]
        self.same(caffe.io.blobproto_to_array(layer.blobs[0]), net.params["ip1"][0].data)

    def test_weights_of_an_lstm_are_caffes(self):
        """The blobs of a caffemodel of Caffe's: W_xc, b_c, W_xc_static, W_hc, their rows the gates i, f, o, g (lstm_layer.cpp,
        lstm_unit_layer.cpp). Caffe's formulas, written anew, give the outputs."""
        random, steps, count, inputs, extra, outputs = np.random.default_rng(6), 5, 3, 4, 2, 6
        shapes = [(4 * outputs, inputs), (4 * outputs,), (4 * outputs, extra), (4 * outputs, outputs)]
        blobs = [random.normal(0, 0.7, shape).astype(np.float32) for shape in shapes]
        message = caffe.io.caffe_pb2.NetParameter()
        message.layer.add(name="lstm", type="LSTM", blobs=[caffe.io.array_to_blobproto(blob) for blob in blobs])
        (self.folder / "lstm.caffemodel").write_bytes(message.SerializeToString())
        net = caffe.Net(self.write("lstm.prototxt", f"""
layer {{ name: "in" type: "Input" top: "x" top: "cont" top: "s" input_param {{ shape {{ dim: {steps} dim: {count} dim: {inputs} }}
  shape {{ dim: {steps} dim: {count} }} shape {{ dim: {count} dim: {extra} }} }} }}
layer {{ name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" bottom: "s" top: "y" recurrent_param {{ num_output: {outputs} }} }}"""),
                        str(self.folder / "lstm.caffemodel"), caffe.TEST)
        x, static = random.normal(size=(steps, count, inputs)), random.normal(size=(count, extra))
        cont = random.integers(0, 2, (steps, count))
        cont[0] = 0
        net.blobs["x"].data[...], net.blobs["cont"].data[...], net.blobs["s"].data[...] = x, cont, static
        w_xc, b_c, w_static, w_hc = blobs
        h, c, expected = np.zeros((count, outputs)), np.zeros((count, outputs)), []
        for t in range(steps):
            alive = cont[t][:, None]
            gates = x[t] @ w_xc.T + b_c + static @ w_static.T + (alive * h) @ w_hc.T
            i, f, o = (1 / (1 + np.exp(-gates[:, k * outputs : (k + 1) * outputs])) for k in range(3))
            c = alive * f * c + i * np.tanh(gates[:, 3 * outputs :])
            h = o * np.tanh(c)
            expected.append(h)
        self.near(net.forward()["y"], np.array(expected))

    def test_sharing(self):
        train, test = self.fed(caffe.TRAIN), self.fed(caffe.TEST)
        test.share_with(train)
        train.params["ip2"][1].data[...] = [4, 3, 2, 1]
        self.same(test.params["ip2"][1].data, [4, 3, 2, 1])
        self.same(test.blobs["data"].data, train.blobs["data"].data)  # inputs stay
        test.forward()
        train.forward()
        self.near(test.blobs["ip2"].data, train.blobs["ip2"].data)


if __name__ == "__main__":
    sys.exit(unittest.main())
