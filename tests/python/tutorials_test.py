#!/usr/bin/env python3
"""Programs written as pycaffe's tutorials write them: classification, learning LeNet, fine-tuning and net surgery.
(programs_test.py has the fifth, multilabel with a data layer in Python.) Only the import is another."""

import struct
import subprocess
import sys
import unittest

from support import Case, np, softmax

CLASSIFICATION = """
import numpy as np
import cortado.caffe as caffe

caffe.set_mode_cpu()
net = caffe.Net("deploy.prototxt", "net.caffemodel", caffe.TEST)

mu = np.load("mean.npy").mean(1).mean(1)  # average over pixels to obtain the mean (BGR) pixel values
transformer = caffe.io.Transformer({"data": net.blobs["data"].data.shape})
transformer.set_transpose("data", (2, 0, 1))
transformer.set_mean("data", mu)
transformer.set_raw_scale("data", 255)
transformer.set_channel_swap("data", (2, 1, 0))

net.blobs["data"].reshape(50, 3, 8, 8)
image = caffe.io.load_image("image.png")
transformed_image = transformer.preprocess("data", image)
net.blobs["data"].data[...] = transformed_image
output = net.forward()
output_prob = output["prob"][0]
print("predicted class is:", output_prob.argmax())
labels = np.loadtxt("labels.txt", str, delimiter="\\t")
top_inds = output_prob.argsort()[::-1][:2]
print("probabilities and labels:", list(zip(output_prob[top_inds], labels[top_inds])))

for layer_name, blob in net.blobs.items():
    print(layer_name + "\\t" + str(blob.data.shape))
for layer_name, param in net.params.items():
    print(layer_name + "\\t" + str(param[0].data.shape), str(param[1].data.shape))
filters = net.params["conv1"][0].data
assert filters.transpose(0, 2, 3, 1).shape == (3, 1, 1, 3)
assert (net.blobs["conv1"].data[0, :3] == net.blobs["conv1"].data[49, :3]).all()
np.save("prob.npy", output_prob)
np.save("image.npy", transformed_image)
"""

LENET = """
import numpy as np
import cortado.caffe as caffe
from cortado.caffe import layers as L, params as P

def lenet(lmdb, batch_size):
    n = caffe.NetSpec()
    n.data, n.label = L.Data(batch_size=batch_size, backend=P.Data.LMDB, source=lmdb,
                             transform_param=dict(scale=1./255), ntop=2)
    n.conv1 = L.Convolution(n.data, kernel_size=5, num_output=8, weight_filler=dict(type='xavier'))
    n.pool1 = L.Pooling(n.conv1, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.conv2 = L.Convolution(n.pool1, kernel_size=5, num_output=12, weight_filler=dict(type='xavier'))
    n.pool2 = L.Pooling(n.conv2, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.fc1 = L.InnerProduct(n.pool2, num_output=50, weight_filler=dict(type='xavier'))
    n.relu1 = L.ReLU(n.fc1, in_place=True)
    n.score = L.InnerProduct(n.relu1, num_output=10, weight_filler=dict(type='xavier'))
    n.loss = L.SoftmaxWithLoss(n.score, n.label)
    return n.to_proto()

with open('lenet_auto_train.prototxt', 'w') as f:
    f.write(str(lenet('train_lmdb', 64)))
with open('lenet_auto_test.prototxt', 'w') as f:
    f.write(str(lenet('test_lmdb', 100)))

caffe.set_mode_cpu()
solver = None  # ignore this workaround for lmdb data (can't instantiate two solvers on the same data)
solver = caffe.SGDSolver('lenet_auto_solver.prototxt')
print([(k, v.data.shape) for k, v in solver.net.blobs.items()])
print([(k, v[0].data.shape) for k, v in solver.net.params.items()])
solver.net.forward()
solver.test_nets[0].forward()
assert set(solver.net.blobs['label'].data[:8]) <= set(range(10))
solver.step(1)
assert abs(solver.net.params['conv1'][0].diff[:, 0]).max() > 0

niter = 30
test_interval = 15
train_loss = np.zeros(niter)
test_acc = np.zeros(int(np.ceil(niter / test_interval)))
output = np.zeros((niter, 8, 10))
for it in range(niter):
    solver.step(1)  # SGD by Caffe
    train_loss[it] = solver.net.blobs['loss'].data
    solver.test_nets[0].forward(start='conv1')
    output[it] = solver.test_nets[0].blobs['score'].data[:8]
    if it % test_interval == 0:
        correct = 0
        for test_it in range(3):
            solver.test_nets[0].forward()
            correct += sum(solver.test_nets[0].blobs['score'].data.argmax(1)
                           == solver.test_nets[0].blobs['label'].data)
        test_acc[it // test_interval] = correct / 3e2
np.savez("learned.npz", loss=train_loss, accuracy=test_acc, output=output)
assert solver.iter == 31
"""

FINE_TUNING = """
import tempfile
import numpy as np
import cortado.caffe as caffe
from cortado.caffe import layers as L, params as P
from cortado.caffe.proto import caffe_pb2

weight_param = dict(lr_mult=1, decay_mult=1)
bias_param = dict(lr_mult=2, decay_mult=0)
learned_param = [weight_param, bias_param]
frozen_param = [dict(lr_mult=0)] * 2

def conv_relu(bottom, ks, nout, stride=1, pad=0, group=1, param=learned_param,
              weight_filler=dict(type='gaussian', std=0.05), bias_filler=dict(type='constant', value=0.1)):
    conv = L.Convolution(bottom, kernel_size=ks, stride=stride, num_output=nout, pad=pad, group=group,
                         param=param, weight_filler=weight_filler, bias_filler=bias_filler)
    return conv, L.ReLU(conv, in_place=True)

def caffenet(data, label=None, train=True, num_classes=10, classifier_name='fc8', learn_all=False):
    n = caffe.NetSpec()
    n.data = data
    param = learned_param if learn_all else frozen_param
    n.conv1, n.relu1 = conv_relu(n.data, 5, 6, stride=2, param=param)
    n.pool1 = L.Pooling(n.relu1, pool=P.Pooling.MAX, kernel_size=2, stride=2)
    n.fc7 = L.InnerProduct(n.pool1, num_output=40, param=param, weight_filler=dict(type='xavier'))
    n.relu7 = L.ReLU(n.fc7, in_place=True)
    if train:
        n.drop7 = fc7input = L.Dropout(n.relu7, in_place=True)
    else:
        fc7input = n.relu7
    fc8 = L.InnerProduct(fc7input, num_output=num_classes, param=learned_param, weight_filler=dict(type='xavier'))
    n.__setattr__(classifier_name, fc8)
    if not train:
        n.probs = L.Softmax(fc8)
    if label is not None:
        n.label = label
        n.loss = L.SoftmaxWithLoss(fc8, n.label)
        n.acc = L.Accuracy(fc8, n.label)
    with tempfile.NamedTemporaryFile(mode='w', delete=False, dir='.', suffix='.prototxt') as f:
        f.write(str(n.to_proto()))
        return f.name

def style_net(train=True, learn_all=False, subset=None):
    subset = subset or ('train' if train else 'test')
    style_data, style_label = L.Data(source=subset + '_lmdb', batch_size=50, backend=P.Data.LMDB, ntop=2,
                                     transform_param=dict(mirror=False, scale=1./255))
    return caffenet(data=style_data, label=style_label, train=train, num_classes=10,
                    classifier_name='fc8_flickr', learn_all=learn_all)

def solver(train_net_path, test_net_path=None, base_lr=0.05):
    s = caffe_pb2.SolverParameter()
    s.train_net = train_net_path
    if test_net_path is not None:
        s.test_net.append(test_net_path)
        s.test_interval = 1000
        s.test_iter.append(2)
    s.iter_size = 1
    s.max_iter = 100000
    s.type = 'SGD'
    s.base_lr = base_lr
    s.lr_policy = 'step'
    s.gamma = 0.1
    s.stepsize = 20000
    s.momentum = 0.9
    s.weight_decay = 5e-4
    s.display = 1000
    s.snapshot = 10000
    s.snapshot_prefix = 'snapshot'
    s.solver_mode = caffe_pb2.SolverParameter.CPU
    s.random_seed = 1
    with tempfile.NamedTemporaryFile(mode='w', delete=False, dir='.', suffix='.prototxt') as f:
        f.write(str(s))
        return f.name

def run_solvers(niter, solvers):
    blobs = ('loss', 'acc')
    loss, acc = ({name: np.zeros(niter) for name, _ in solvers} for _ in blobs)
    for it in range(niter):
        for name, s in solvers:
            s.step(1)
            loss[name][it], acc[name][it] = (s.net.blobs[b].data.copy() for b in blobs)
    weights = {}
    for name, s in solvers:
        weights[name] = 'weights.%s.caffemodel' % name
        s.net.save(weights[name])
    return loss, acc, weights

def eval_style_net(weights, test_iters=2):
    test_net = caffe.Net(style_net(train=False), weights, caffe.TEST)
    accuracy = 0
    for it in range(test_iters):
        accuracy += test_net.forward()['acc']
    accuracy /= test_iters
    return test_net, accuracy

caffe.set_mode_cpu()
dummy_data = L.DummyData(shape=dict(dim=[1, 1, 28, 28]))
imagenet_net = caffe.Net(caffenet(data=dummy_data, train=False), 'caffenet.caffemodel', caffe.TEST)
assert imagenet_net.forward()['probs'].shape == (1, 10)

style_solver = caffe.get_solver(solver(style_net(train=True)))
style_solver.net.copy_from('caffenet.caffemodel')
scratch_style_solver = caffe.get_solver(solver(style_net(train=True)))
loss, acc, weights = run_solvers(40, [('pretrained', style_solver), ('scratch', scratch_style_solver)])
pretrained, accuracy = eval_style_net(weights['pretrained'])
for layer in ('conv1', 'fc7'):  # frozen
    assert (pretrained.params[layer][0].data == imagenet_net.params[layer][0].data).all()
end_to_end = caffe.get_solver(solver(style_net(train=True, learn_all=True), base_lr=0.01))
end_to_end.net.copy_from(weights['pretrained'])
_, _, tuned = run_solvers(15, [('end-to-end', end_to_end)])
net, tuned_accuracy = eval_style_net(tuned['end-to-end'])
assert (net.params['conv1'][0].data != pretrained.params['conv1'][0].data).any()
print("accuracies", float(accuracy), float(tuned_accuracy))
"""

SURGERY = """
import numpy as np
import cortado.caffe as caffe

net = caffe.Net('conv.prototxt', caffe.TEST)
assert net.params['conv'][0].data.shape == (3, 1, 5, 5) and net.params['conv'][1].data.shape == (3,)
im = np.load('image.npy')
im_input = im[np.newaxis, np.newaxis, :, :]
net.blobs['data'].reshape(*im_input.shape)
net.blobs['data'].data[...] = im_input
net.forward()
conv0 = net.blobs['conv'].data[0, 0].copy()
before = net.blobs['conv'].data.copy()
net.params['conv'][1].data[0] = 1.
net.forward()
assert np.allclose(net.blobs['conv'].data[0, 0], conv0 + 1, atol=1e-5)  # the bias shifts the map
assert np.allclose(net.blobs['conv'].data[0, 1:], before[0, 1:], atol=1e-6)
ksize = net.params['conv'][0].data.shape[2:]
sigma = 1.
y, x = np.mgrid[-ksize[0] // 2 + 1:ksize[0] // 2 + 1, -ksize[1] // 2 + 1:ksize[1] // 2 + 1]
g = np.exp(-((x**2 + y**2) / (2.0 * sigma**2)))
gaussian = (g / g.sum()).astype(np.float32)
net.params['conv'][0].data[0] = gaussian
net.params['conv'][0].data[1:] = 0.
sobel = np.array((-1, -2, 0, 2, 1), dtype=np.float32).reshape((1, 1, 1, 5))
net.params['conv'][0].data[1, 0, 1:-1, :] = sobel
sobel = np.array((-1, -2, 0, 2, 1), dtype=np.float32).reshape((1, 1, 5, 1))
net.params['conv'][0].data[2, 0, :, 1:-1] = sobel
net.params['conv'][1].data[...] = 0
net.forward()
np.savez('filtered.npz', maps=net.blobs['conv'].data[0], weights=net.params['conv'][0].data)

# Fully connected layers become convolutions.
net = caffe.Net('fc.prototxt', 'fc.caffemodel', caffe.TEST)
params = ['fc6', 'fc7', 'fc8']
fc_params = {pr: (net.params[pr][0].data, net.params[pr][1].data) for pr in params}
net_full_conv = caffe.Net('conv_full.prototxt', 'fc.caffemodel', caffe.TEST)
params_full_conv = ['fc6-conv', 'fc7-conv', 'fc8-conv']
conv_params = {pr: (net_full_conv.params[pr][0].data, net_full_conv.params[pr][1].data) for pr in params_full_conv}
for pr, pr_conv in zip(params, params_full_conv):
    conv_params[pr_conv][0].flat = fc_params[pr][0].flat  # flat unrolls the arrays
    conv_params[pr_conv][1][...] = fc_params[pr][1]
net_full_conv.save('full_conv.caffemodel')

big = np.load('big.npy')
net_full_conv = caffe.Net('conv_full.prototxt', 'full_conv.caffemodel', caffe.TEST)
transformer = caffe.io.Transformer({'data': net_full_conv.blobs['data'].data.shape})
transformer.set_transpose('data', (2, 0, 1))
out = net_full_conv.forward_all(data=np.asarray([transformer.preprocess('data', big)]))
windows = out['prob'][0]  # a map of probabilities: each cell is a window of the fully connected net
assert windows.shape == (4, 3, 3), windows.shape
planes = transformer.preprocess('data', big)
for row in range(3):
    for column in range(3):
        net.blobs['data'].data[...] = planes[:, 2 * row:2 * row + 8, 2 * column:2 * column + 8]
        assert np.allclose(net.forward()['prob'][0], windows[:, row, column], atol=1e-5)
print(windows.argmax(axis=0))
"""

DEPLOY = """name: "colours"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 10 dim: 3 dim: 8 dim: 8 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1" convolution_param { num_output: 3 kernel_size: 1 } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1" pooling_param { pool: AVE global_pooling: true } }
layer { name: "fc" type: "InnerProduct" bottom: "pool1" top: "fc" inner_product_param { num_output: 3 } }
layer { name: "prob" type: "Softmax" bottom: "fc" top: "prob" }
"""

LENET_SOLVER = """train_net: "lenet_auto_train.prototxt" test_net: "lenet_auto_test.prototxt" test_iter: 3 test_interval: 500
base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 lr_policy: "inv" gamma: 0.0001 power: 0.75 display: 100 max_iter: 10000
snapshot: 5000 snapshot_prefix: "lenet" random_seed: 4
"""

CONV = """name: "convolution"
input: "data"
input_dim: 1 input_dim: 1 input_dim: 100 input_dim: 100
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 3 kernel_size: 5 stride: 1 weight_filler { type: "gaussian" std: 0.01 }
    bias_filler { type: "constant" value: 0 } } }
"""


def with_products(first, extent, name, layer):
    """A net of 3x8x8 images: one convolution and three products, which `layer` writes."""
    head = f"""input: "data"
input_dim: 1 input_dim: 3 input_dim: {extent} input_dim: {extent}
layer {{ name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param {{ num_output: 6 kernel_size: 3 stride: 2 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }}
"""
    bottom, text = "conv1", head
    for index, (product, outputs) in enumerate((("fc6", 10), ("fc7", 8), ("fc8", 4))):
        text += layer(name.format(product), bottom, outputs, first if index == 0 else 1)
        bottom = name.format(product)
    return text + f'layer {{ name: "prob" type: "Softmax" bottom: "{bottom}" top: "prob" }}\n'


def inner_product(name, bottom, outputs, _):
    return (f'layer {{ name: "{name}" type: "InnerProduct" bottom: "{bottom}" top: "{name}" '
            f'inner_product_param {{ num_output: {outputs} weight_filler {{ type: "xavier" }} }} }}\n')


def convolution(name, bottom, outputs, kernel):
    return (f'layer {{ name: "{name}" type: "Convolution" bottom: "{bottom}" top: "{name}" '
            f'convolution_param {{ num_output: {outputs} kernel_size: {kernel} }} }}\n')


def bands(count, random):
    """Images of 28x28 whose label is which band is bright."""
    labels = np.arange(count) % 10
    images = random.integers(0, 60, (count, 28, 28))
    for image, label in zip(images, labels):
        image[2 * label + 4 : 2 * label + 6] += 180
    return images.astype(np.uint8), labels.astype(np.uint8)


class Tutorials(Case):
    def run_program(self, text):
        program = [sys.executable, "-B", self.write("program.py", text)]
        done = subprocess.run(program, cwd=self.folder, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def make_lmdb(self, name, count, seed):
        images, labels = bands(count, np.random.default_rng(seed))
        (self.folder / "images").write_bytes(struct.pack(">IIII", 0x803, count, 28, 28) + images.tobytes())
        (self.folder / "labels").write_bytes(struct.pack(">II", 0x801, count) + labels.tobytes())
        self.command("data", "mnist", "images", "labels", name)

    def weights_of(self, model, name, fill=None):
        """A caffemodel of a deploy net, with weights as filled or by `fill`."""
        import cortado.caffe as caffe

        net = caffe.Net(model, caffe.TEST)
        if fill:
            fill(net)
        net.save(str(self.folder / name))
        return net

    def test_classification(self):
        try:
            from PIL import Image
        except ImportError:
            self.skipTest("this Python has no Pillow")

        def fill(net):
            net.params["conv1"][0].data[...] = np.eye(3).reshape(3, 3, 1, 1)
            net.params["fc"][0].data[...] = np.eye(3) / 40

        self.weights_of(self.write("deploy.prototxt", DEPLOY), "net.caffemodel", fill)
        np.save(self.folder / "mean.npy", np.full((3, 8, 8), 100.0))
        self.write("labels.txt", "n1\tblue\nn2\tgreen\nn3\tred\n".replace("\t", " "))
        pixels = np.random.default_rng(0).integers(0, 80, (8, 8, 3)).astype(np.uint8)
        pixels[..., 0] += 150
        Image.fromarray(pixels).save(self.folder / "image.png")
        told = self.run_program(CLASSIFICATION)
        self.assertIn("predicted class is: 2", told)
        self.assertIn("red", told.splitlines()[1])
        self.assertIn("conv1\t(50, 3, 8, 8)", told)
        planes = pixels[..., ::-1].transpose(2, 0, 1).astype(float) - 100
        self.near(np.load(self.folder / "image.npy"), planes, 1e-4)
        self.near(np.load(self.folder / "prob.npy"), softmax(planes.mean((1, 2))[None] / 40)[0])

    def test_the_name_caffe(self):
        self.run_program("""import cortado.caffe
cortado.caffe.as_caffe()
import caffe
from caffe import layers as L
from caffe.proto import caffe_pb2
assert caffe is cortado.caffe and L is caffe.layers and caffe_pb2.TEST == caffe.TEST
""")

    def test_learning_lenet(self):
        self.make_lmdb("train_lmdb", 640, 1)
        self.make_lmdb("test_lmdb", 300, 2)
        self.write("lenet_auto_solver.prototxt", LENET_SOLVER)
        told = self.run_program(LENET)
        self.assertIn("('conv1', (64, 8, 24, 24))", told)
        learned = np.load(self.folder / "learned.npz")
        self.assertGreater(learned["accuracy"][-1], learned["accuracy"][0])
        self.assertGreater(learned["accuracy"][-1], 0.5)
        self.assertLess(learned["loss"][-5:].mean(), 0.5 * learned["loss"][:3].mean())
        self.assertEqual(len({scores.tobytes() for scores in learned["output"]}), 30)

    def test_fine_tuning(self):
        self.make_lmdb("train_lmdb", 500, 1)
        self.make_lmdb("test_lmdb", 100, 2)
        self.weights_of(self.write("caffenet.prototxt", """layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 1 dim: 1 dim: 28 dim: 28 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 6 kernel_size: 5 stride: 2 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1" pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "fc7" type: "InnerProduct" bottom: "pool1" top: "fc7"
  inner_product_param { num_output: 40 weight_filler { type: "xavier" } } }
layer { name: "fc8" type: "InnerProduct" bottom: "fc7" top: "fc8" inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
"""), "caffenet.caffemodel")
        accuracies = self.run_program(FINE_TUNING).split("accuracies ")[1].split()
        self.assertGreater(float(accuracies[0]), 0.5)
        self.assertGreater(float(accuracies[1]), 0.5)

    def test_net_surgery(self):
        random = np.random.default_rng(3)
        self.write("conv.prototxt", CONV)
        np.save(self.folder / "image.npy", random.uniform(0, 1, (36, 48)).astype(np.float32))
        self.weights_of(self.write("fc.prototxt", with_products(3, 8, "{}", inner_product)), "fc.caffemodel")
        self.write("conv_full.prototxt", with_products(3, 12, "{}-conv", convolution))
        np.save(self.folder / "big.npy", random.uniform(-1, 1, (12, 12, 3)).astype(np.float32))
        self.run_program(SURGERY)
        filtered = np.load(self.folder / "filtered.npz")
        windows = np.lib.stride_tricks.sliding_window_view(np.load(self.folder / "image.npy").astype(float), (5, 5))
        self.near(filtered["maps"], np.einsum("hwij,fij->fhw", windows, filtered["weights"][:, 0]))
        self.near(filtered["weights"][0].sum(), 1)


if __name__ == "__main__":
    sys.exit(unittest.main())
