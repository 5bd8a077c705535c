"""RegNetY-1.6GF (Radosavovic et al., "Designing network design spaces", 2020) in torchvision's shape: bottlenecks of grouped
3x3 convolutions that do not narrow, with squeeze and excitation."""

from .data import Model, imagenet, multistep, sgd
from .net import Net, gaussian

GROUP_WIDTH = 24
STAGES = ((2, 48), (6, 120), (17, 336), (2, 888))  # blocks and feature maps


def block(net, name, bottom, inputs, outputs, stride):
    project = inputs != outputs or stride > 1
    shortcut = net.conv_bn(f"{name}_shortcut", bottom, outputs, 1, stride) if project else bottom
    top = net.conv_bn_relu(f"{name}_conv1", bottom, outputs, 1)
    top = net.conv_bn_relu(f"{name}_conv2", top, outputs, 3, stride, 1, outputs // GROUP_WIDTH)
    top = net.squeeze_excitation(name, top, outputs, round(inputs / 4), Net.relu)
    top = net.conv_bn(f"{name}_conv3", top, outputs, 1)
    return net.relu(f"{name}_relu", net.add(name, [shortcut, top]))


def body(net):
    top, inputs = net.conv_bn_relu("conv1", "data", 32, 3, 2, 1), 32
    for s, (blocks, outputs) in enumerate(STAGES, 1):
        for b in range(1, blocks + 1):
            top = block(net, f"stage{s}_{b}", top, inputs, outputs, 2 if b == 1 else 1)
            inputs = outputs
    return net.fc("fc", net.global_average("pool", top), 1000, filler=gaussian(0.01))


SOLVER = sgd(0.1, multistep(150000, 300000, 400000), 450000, test_iter=2000, test_interval=5000, weight_decay=0.00005,
             iter_size=8)

MODELS = [Model("regnet-y-1.6gf", "RegNetY-1.6GF", [3, 224, 224], body, SOLVER, imagenet(224), 32, 25)]
