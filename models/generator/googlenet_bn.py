"""GoogLeNet with batch norm, without auxiliary heads, in torchvision's shape: its `5x5` branches are 3x3."""

from .data import Model, imagenet, sgd, step
from .googlenet import BLOCKS
from .net import XAVIER

EPS = 1e-3


def block(net, name, bottom):
    def conv(suffix, bottom, outputs, kernel):
        return net.conv_bn_relu(f"{prefix}_{suffix}", bottom, outputs, kernel, 1, kernel // 2, eps=EPS)

    one, reduce_three, three, reduce_five, five, projection = BLOCKS[name]
    prefix = f"inception_{name}"
    return net.concat(prefix, [
        conv("1x1", bottom, one, 1),
        conv("3x3", conv("3x3_reduce", bottom, reduce_three, 1), three, 3),
        conv("5x5", conv("5x5_reduce", bottom, reduce_five, 1), five, 3),
        conv("pool_proj", net.pool(f"{prefix}_pool", bottom, "MAX", 3, 1, 1), projection, 1)])


def body(net):
    top = net.pool("pool1", net.conv_bn_relu("conv1", "data", 64, 7, 2, 3, eps=EPS), "MAX", 3, 2)
    top = net.conv_bn_relu("conv2_reduce", top, 64, 1, eps=EPS)
    top = net.pool("pool2", net.conv_bn_relu("conv2", top, 192, 3, 1, 1, eps=EPS), "MAX", 3, 2)
    for name in BLOCKS:
        top = block(net, name, top)
        if name in ("3b", "4e"):
            top = net.pool(f"pool{name[0]}", top, "MAX", 3 if name == "3b" else 2, 2)
    return net.fc("fc", net.dropout("drop", net.global_average("pool5", top), 0.2), 1000, filler=XAVIER)


SOLVER = sgd(0.045, step(0.94, 10000), 500000, test_iter=2000, test_interval=5000, weight_decay=4e-05, iter_size=8)

MODELS = [Model("googlenet-bn", "GoogLeNet with batch norm", [3, 224, 224], body, SOLVER, imagenet(224), 32, 25)]
