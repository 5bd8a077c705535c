"""SqueezeNet 1.1 (Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters and <0.5MB model size",
2016) with the layer names, fillers and solver of its authors' files for Caffe, so that their weights fit."""

from .data import Model, imagenet, sgd
from .net import XAVIER, gaussian

# Outputs of the squeezing convolution and of each of the two that expand.
FIRES = {2: (16, 64), 3: (16, 64), 4: (32, 128), 5: (32, 128), 6: (48, 192), 7: (48, 192), 8: (64, 256), 9: (64, 256)}


def conv(net, prefix, suffix, bottom, outputs, kernel, pad=0):
    top = net.conv(f"{prefix}/{suffix}", bottom, outputs, kernel, pad=pad, filler=XAVIER)
    return net.relu(f"{prefix}/relu_{suffix}", top)


def fire(net, number, bottom):
    prefix, (squeezed, expanded) = f"fire{number}", FIRES[number]
    top = conv(net, prefix, "squeeze1x1", bottom, squeezed, 1)
    return net.concat(f"{prefix}/concat", [conv(net, prefix, "expand1x1", top, expanded, 1),
                                           conv(net, prefix, "expand3x3", top, expanded, 3, 1)])


def body(net):
    top = net.relu("relu_conv1", net.conv("conv1", "data", 64, 3, 2, filler=XAVIER))
    top = net.pool("pool1", top, "MAX", 3, 2)
    for number in FIRES:
        top = fire(net, number, top)
        if number in (3, 5):
            top = net.pool(f"pool{number}", top, "MAX", 3, 2)
    top = net.conv("conv10", net.dropout("drop9", top), 1000, 1, filler=gaussian(0.01))
    return net.flatten("scores", net.global_average("pool10", net.relu("relu_conv10", top)))


SOLVER = sgd(0.04, {"lr_policy": "poly", "power": 1.0}, 170000, test_iter=2000, test_interval=1000,
             weight_decay=0.0002, iter_size=16, display=40, snapshot=1000)

MODELS = [Model("squeezenet-1.1", "SqueezeNet 1.1", [3, 224, 224], body, SOLVER, imagenet(224), 32, 25)]
