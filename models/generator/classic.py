"""Caffe's own examples (LeNet, CIFAR-10, CaffeNet) and AlexNet in torchvision's shape."""

from .data import CIFAR10, MNIST, Model, imagenet, multistep, sgd, step
from .net import XAVIER, gaussian
from .prototxt import Enum

LEARN_ONLY = [{"lr_mult": 1}, {"lr_mult": 2}]


def lenet_body(net):
    top = net.conv("conv1", "data", 20, 5, filler=XAVIER, params=LEARN_ONLY)
    top = net.pool("pool1", top, "MAX", 2, 2)
    top = net.conv("conv2", top, 50, 5, filler=XAVIER, params=LEARN_ONLY)
    top = net.pool("pool2", top, "MAX", 2, 2)
    top = net.relu("relu1", net.fc("ip1", top, 500, filler=XAVIER, params=LEARN_ONLY))
    return net.fc("ip2", top, 10, filler=XAVIER, params=LEARN_ONLY)


def cifar10_trunk(net, normalize, conv3_params):
    """Three 5x5 convolutions, each pooled; the first is pooled before its ReLU."""
    top = net.conv("conv1", "data", 32, 5, pad=2, filler=gaussian(0.0001), params=LEARN_ONLY)
    top = normalize("norm1", net.relu("relu1", net.pool("pool1", top, "MAX", 3, 2)))
    top = net.relu("relu2", net.conv("conv2", top, 32, 5, pad=2, filler=gaussian(0.01), params=LEARN_ONLY))
    top = normalize("norm2", net.pool("pool2", top, "AVE", 3, 2))
    top = net.relu("relu3", net.conv("conv3", top, 64, 5, pad=2, filler=gaussian(0.01), params=conv3_params))
    return net.pool("pool3", top, "AVE", 3, 2)


def cifar10_quick_body(net):
    top = cifar10_trunk(net, lambda name, blob: blob, LEARN_ONLY)
    top = net.fc("ip1", top, 64, filler=gaussian(0.1), params=LEARN_ONLY)
    return net.fc("ip2", top, 10, filler=gaussian(0.1), params=LEARN_ONLY)


def cifar10_full_body(net):
    def normalize(name, blob):
        return net.lrn(name, blob, local_size=3, alpha=5e-05, beta=0.75, norm_region=Enum("WITHIN_CHANNEL"))

    top = cifar10_trunk(net, normalize, [])
    return net.fc("ip1", top, 10, filler=gaussian(0.01),
                  params=[{"lr_mult": 1, "decay_mult": 250}, {"lr_mult": 2, "decay_mult": 0}])


def classifier(net, top, fillers, biases):
    """The two hidden layers of 4096 with dropout, and the 1000 scores, that AlexNet and its kin share."""
    for name, number in (("fc6", 6), ("fc7", 7)):
        top = net.fc(name, top, 4096, filler=fillers[0], bias_value=biases[0])
        top = net.dropout(f"drop{number}", net.relu(f"relu{number}", top))
    return net.fc("fc8", top, 1000, filler=fillers[1], bias_value=biases[1])


def caffenet_body(net):
    def conv(number, bottom, outputs, kernel, stride=1, pad=0, group=1, bias_value=0):
        top = net.conv(f"conv{number}", bottom, outputs, kernel, stride, pad, group, filler=gaussian(0.01),
                       bias_value=bias_value)
        return net.relu(f"relu{number}", top)

    def pool_and_normalize(number, bottom):
        top = net.pool(f"pool{number}", bottom, "MAX", 3, 2)
        return net.lrn(f"norm{number}", top, local_size=5, alpha=0.0001, beta=0.75)

    top = pool_and_normalize(1, conv(1, "data", 96, 11, 4))
    top = pool_and_normalize(2, conv(2, top, 256, 5, pad=2, group=2, bias_value=1))
    top = conv(3, top, 384, 3, pad=1)
    top = conv(4, top, 384, 3, pad=1, group=2, bias_value=1)
    top = conv(5, top, 256, 3, pad=1, group=2, bias_value=1)
    top = net.pool("pool5", top, "MAX", 3, 2)
    return classifier(net, top, (gaussian(0.005), gaussian(0.01)), (1, 0))


def alexnet_body(net):
    def conv(number, bottom, outputs, kernel, stride=1, pad=0):
        return net.relu(f"relu{number}", net.conv(f"conv{number}", bottom, outputs, kernel, stride, pad))

    top = net.pool("pool1", conv(1, "data", 64, 11, 4, 2), "MAX", 3, 2)
    top = net.pool("pool2", conv(2, top, 192, 5, pad=2), "MAX", 3, 2)
    top = conv(3, top, 384, 3, pad=1)
    top = conv(4, top, 256, 3, pad=1)
    top = net.pool("pool5", conv(5, top, 256, 3, pad=1), "MAX", 3, 2)
    for number in (6, 7):
        top = net.relu(f"relu{number}", net.fc(f"fc{number}", net.dropout(f"drop{number}", top), 4096))
    return net.fc("fc8", top, 1000, filler=XAVIER)


LENET_SOLVER = sgd(0.01, {"lr_policy": "inv", "gamma": 0.0001, "power": 0.75}, 10000, test_iter=100,
                   test_interval=500, weight_decay=0.0005, display=100, snapshot=5000)
CIFAR10_QUICK_SOLVER = sgd(0.001, multistep(4000), 5000, test_iter=100, test_interval=500, weight_decay=0.004,
                           display=100, snapshot=4000)
CIFAR10_FULL_SOLVER = sgd(0.001, multistep(60000, 65000), 70000, test_iter=100, test_interval=1000,
                          weight_decay=0.004, display=200, snapshot=10000)
ALEXNET_SOLVER = sgd(0.01, step(0.1, 100000), 450000, test_iter=1000, test_interval=1000, weight_decay=0.0005)

MODELS = [
    Model("lenet", "LeNet", [1, 28, 28], lenet_body, LENET_SOLVER, MNIST, 64, 100),
    Model("cifar10_quick", "CIFAR10_quick", [3, 32, 32], cifar10_quick_body, CIFAR10_QUICK_SOLVER, CIFAR10, 100, 100,
          ["Caffe's two stages in one run: 4,000 iterations at 0.001, then 1,000 at 0.0001."]),
    Model("cifar10_full", "CIFAR10_full", [3, 32, 32], cifar10_full_body, CIFAR10_FULL_SOLVER, CIFAR10, 100, 100,
          ["Caffe's three stages in one run: 60,000 iterations at 0.001, 5,000 at 0.0001, 5,000 at 0.00001."]),
    Model("caffenet", "CaffeNet", [3, 227, 227], caffenet_body, ALEXNET_SOLVER, imagenet(227), 256, 50),
    Model("alexnet", "AlexNet", [3, 224, 224], alexnet_body, ALEXNET_SOLVER, imagenet(224), 256, 50),
]
