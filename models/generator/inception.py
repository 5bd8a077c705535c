"""Inception-v3 (Szegedy et al., "Rethinking the Inception architecture for computer vision", 2015) in torchvision's
shape and layer order. Average pooling inside the blocks counts the padding in its divisor, in Caffe as in
torchvision: a 3x3 window at stride 1 with padding 1 never leaves the padded image, so it always divides by 9."""

from .data import Model, imagenet, sgd, step
from .net import XAVIER, gaussian

EPS = 1e-3


def chain(net, prefix, bottom, steps):
    """Convolutions one after another; a step is (suffix, outputs, kernel, stride, pad)."""
    top = bottom
    for suffix, outputs, kernel, stride, pad in steps:
        top = net.conv_bn_relu(f"{prefix}_{suffix}", top, outputs, kernel, stride, pad, eps=EPS)
    return top


def pooled(net, name, bottom, outputs):
    top = net.pool(f"{name}_pool", bottom, "AVE", 3, 1, 1)
    return chain(net, name, top, [("pool_proj", outputs, 1, 1, 0)])


def block_a(net, name, bottom, pool_outputs):
    return net.concat(name, [
        chain(net, name, bottom, [("1x1", 64, 1, 1, 0)]),
        chain(net, name, bottom, [("5x5_1", 48, 1, 1, 0), ("5x5_2", 64, 5, 1, 2)]),
        chain(net, name, bottom, [("3x3dbl_1", 64, 1, 1, 0), ("3x3dbl_2", 96, 3, 1, 1), ("3x3dbl_3", 96, 3, 1, 1)]),
        pooled(net, name, bottom, pool_outputs)])


def block_b(net, name, bottom):
    return net.concat(name, [
        chain(net, name, bottom, [("3x3", 384, 3, 2, 0)]),
        chain(net, name, bottom, [("3x3dbl_1", 64, 1, 1, 0), ("3x3dbl_2", 96, 3, 1, 1), ("3x3dbl_3", 96, 3, 2, 0)]),
        net.pool(f"{name}_pool", bottom, "MAX", 3, 2)])


def block_c(net, name, bottom, width):
    wide, tall = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))
    return net.concat(name, [
        chain(net, name, bottom, [("1x1", 192, 1, 1, 0)]),
        chain(net, name, bottom, [("7x7_1", width, 1, 1, 0), ("7x7_2", width, *wide), ("7x7_3", 192, *tall)]),
        chain(net, name, bottom, [("7x7dbl_1", width, 1, 1, 0), ("7x7dbl_2", width, *tall), ("7x7dbl_3", width, *wide),
                                  ("7x7dbl_4", width, *tall), ("7x7dbl_5", 192, *wide)]),
        pooled(net, name, bottom, 192)])


def block_d(net, name, bottom):
    return net.concat(name, [
        chain(net, name, bottom, [("3x3_1", 192, 1, 1, 0), ("3x3_2", 320, 3, 2, 0)]),
        chain(net, name, bottom, [("7x7x3_1", 192, 1, 1, 0), ("7x7x3_2", 192, (1, 7), 1, (0, 3)),
                                  ("7x7x3_3", 192, (7, 1), 1, (3, 0)), ("7x7x3_4", 192, 3, 2, 0)]),
        net.pool(f"{name}_pool", bottom, "MAX", 3, 2)])


def forked(net, name, branch, bottom):
    """A 1x3 and a 3x1 convolution of the same blob, side by side."""
    return net.concat(f"{name}_{branch}", [
        chain(net, name, bottom, [(f"{branch}_1x3", 384, (1, 3), 1, (0, 1))]),
        chain(net, name, bottom, [(f"{branch}_3x1", 384, (3, 1), 1, (1, 0))])])


def block_e(net, name, bottom):
    one = chain(net, name, bottom, [("1x1", 320, 1, 1, 0)])
    three = forked(net, name, "3x3", chain(net, name, bottom, [("3x3_1", 384, 1, 1, 0)]))
    double = chain(net, name, bottom, [("3x3dbl_1", 448, 1, 1, 0), ("3x3dbl_2", 384, 3, 1, 1)])
    return net.concat(name, [one, three, forked(net, name, "3x3dbl", double), pooled(net, name, bottom, 192)])


def auxiliary_head(net, bottom):
    """A second classifier whose loss counts 0.4; it is left out of deploy nets."""
    top = net.pool("aux_pool", bottom, "AVE", 5, 3)
    top = chain(net, "aux", top, [("conv0", 128, 1, 1, 0), ("conv1", 768, 5, 1, 0)])
    net.loss(net.fc("aux_fc", top, 1000, filler=gaussian(0.001)), "aux_loss", weight=0.4)


def inception_body(with_auxiliary):
    def body(net):
        top = chain(net, "conv", "data", [("1a", 32, 3, 2, 0), ("2a", 32, 3, 1, 0), ("2b", 64, 3, 1, 1)])
        top = net.pool("pool1", top, "MAX", 3, 2)
        top = chain(net, "conv", top, [("3b", 80, 1, 1, 0), ("4a", 192, 3, 1, 0)])
        top = net.pool("pool2", top, "MAX", 3, 2)
        for name, pool_outputs in (("mixed_5b", 32), ("mixed_5c", 64), ("mixed_5d", 64)):
            top = block_a(net, name, top, pool_outputs)
        top = block_b(net, "mixed_6a", top)
        for name, width in (("mixed_6b", 128), ("mixed_6c", 160), ("mixed_6d", 160), ("mixed_6e", 192)):
            top = block_c(net, name, top, width)
        if with_auxiliary and not net.deploy:
            auxiliary_head(net, top)
        top = block_d(net, "mixed_7a", top)
        top = block_e(net, "mixed_7c", block_e(net, "mixed_7b", top))
        top = net.dropout("drop", net.global_average("pool3", top))
        return net.fc("fc", top, 1000, filler=XAVIER)
    return body


SOLVER = sgd(0.045, step(0.94, 10000), 500000, test_iter=2000, test_interval=5000, weight_decay=4e-05, iter_size=8)

MODELS = [Model(name, title, [3, 299, 299], inception_body(auxiliary), SOLVER, imagenet(299), 32, 25)
          for name, title, auxiliary in (("inception-v3", "Inception-v3", False),
                                         ("inception-v3-aux", "Inception-v3 with auxiliary head", True))]
