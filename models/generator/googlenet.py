"""GoogLeNet (Szegedy et al., "Going deeper with convolutions", 2014) with the layer names, fillers and solver of Caffe's
bvlc_googlenet, so that its published weights fit."""

from .data import Model, imagenet, sgd, step
from .net import XAVIER

BIAS = 0.2

# Outputs of 1x1, 3x3 reduce, 3x3, 5x5 reduce, 5x5, pool projection (the paper's table 1).
BLOCKS = {"3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64), "4a": (192, 96, 208, 16, 48, 64),
          "4b": (160, 112, 224, 24, 64, 64), "4c": (128, 128, 256, 24, 64, 64), "4d": (112, 144, 288, 32, 64, 64),
          "4e": (256, 160, 320, 32, 128, 128), "5a": (256, 160, 320, 32, 128, 128), "5b": (384, 192, 384, 48, 128, 128)}


def conv(net, prefix, suffix, bottom, outputs, kernel, stride=1, pad=0):
    top = net.conv(f"{prefix}/{suffix}", bottom, outputs, kernel, stride, pad, filler=XAVIER, bias_value=BIAS)
    return net.relu(f"{prefix}/relu_{suffix.removesuffix('_s2')}", top)


def block(net, name, bottom):
    one, reduce_three, three, reduce_five, five, projection = BLOCKS[name]
    prefix = f"inception_{name}"
    return net.concat(f"{prefix}/output", [
        conv(net, prefix, "1x1", bottom, one, 1),
        conv(net, prefix, "3x3", conv(net, prefix, "3x3_reduce", bottom, reduce_three, 1), three, 3, pad=1),
        conv(net, prefix, "5x5", conv(net, prefix, "5x5_reduce", bottom, reduce_five, 1), five, 5, pad=2),
        conv(net, prefix, "pool_proj", net.pool(f"{prefix}/pool", bottom, "MAX", 3, 1, 1), projection, 1)])


def auxiliary_head(net, prefix, bottom):
    """A second classifier whose loss counts 0.3; it is left out of deploy nets."""
    if net.deploy:
        return
    top = conv(net, prefix, "conv", net.pool(f"{prefix}/ave_pool", bottom, "AVE", 5, 3), 128, 1)
    top = net.relu(f"{prefix}/relu_fc", net.fc(f"{prefix}/fc", top, 1024, filler=XAVIER, bias_value=BIAS))
    top = net.dropout(f"{prefix}/drop_fc", top, 0.7)
    net.loss(net.fc(f"{prefix}/classifier", top, 1000, filler=XAVIER), f"{prefix}/loss", weight=0.3)


def body(net):
    def normalize(name, bottom):
        return net.lrn(name, bottom, local_size=5, alpha=0.0001, beta=0.75)

    top = net.pool("pool1/3x3_s2", conv(net, "conv1", "7x7_s2", "data", 64, 7, 2, 3), "MAX", 3, 2)
    top = conv(net, "conv2", "3x3_reduce", normalize("pool1/norm1", top), 64, 1)
    top = normalize("conv2/norm2", conv(net, "conv2", "3x3", top, 192, 3, pad=1))
    top = net.pool("pool2/3x3_s2", top, "MAX", 3, 2)
    for name in BLOCKS:
        top = block(net, name, top)
        if name in ("3b", "4e"):
            top = net.pool(f"pool{name[0]}/3x3_s2", top, "MAX", 3, 2)
        if name in ("4a", "4d"):
            auxiliary_head(net, {"4a": "loss1", "4d": "loss2"}[name], top)
    top = net.dropout("pool5/drop_7x7_s1", net.pool("pool5/7x7_s1", top, "AVE", 7, 1), 0.4)
    return net.fc("loss3/classifier", top, 1000, filler=XAVIER)


SOLVER = sgd(0.01, step(0.96, 320000), 10000000, test_iter=1000, test_interval=4000, weight_decay=0.0002, display=40,
             snapshot=40000)

MODELS = [Model("googlenet", "GoogleNet", [3, 224, 224], body, SOLVER, imagenet(224), 32, 50)]
