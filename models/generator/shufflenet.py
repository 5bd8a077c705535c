"""ShuffleNet-v2 (Ma et al., "ShuffleNet V2: practical guidelines for efficient CNN architecture design", 2018) in
torchvision's shape. Half of the feature maps pass a block as they are; then the halves are shuffled."""

from .data import Model, imagenet, multistep, sgd
from .net import XAVIER

STAGES = ((4, 116), (8, 232), (4, 464))  # blocks and feature maps


def depthwise(net, name, bottom, maps, stride):
    return net.conv_bn(name, bottom, maps, 3, stride, 1, maps)


def block(net, name, bottom, inputs, outputs):
    """The first block of a stage, whose `inputs` differ, halves the extents and filters both halves."""
    half, stride = outputs // 2, 1 if inputs == outputs else 2
    if stride == 1:
        passed, filtered = net.slice(f"{name}_slice", bottom, 2)
    else:
        passed = net.conv_bn_relu(f"{name}_left2", depthwise(net, f"{name}_left1", bottom, inputs, 2), half, 1)
        filtered = bottom
    top = net.conv_bn_relu(f"{name}_conv1", filtered, half, 1)
    top = depthwise(net, f"{name}_conv2", top, half, stride)
    top = net.conv_bn_relu(f"{name}_conv3", top, half, 1)
    return net.shuffle_channel(name, net.concat(f"{name}_concat", [passed, top]), 2)


def body(net):
    top, inputs = net.conv_bn_relu("conv1", "data", 24, 3, 2, 1), 24
    top = net.pool("pool1", top, "MAX", 3, 2, 1, floor=True)
    for stage, (blocks, outputs) in enumerate(STAGES, 2):
        for b in range(1, blocks + 1):
            top, inputs = block(net, f"stage{stage}_{b}", top, inputs, outputs), outputs
    top = net.global_average("pool5", net.conv_bn_relu("conv5", top, 1024, 1))
    return net.fc("fc", top, 1000, filler=XAVIER)


SOLVER = sgd(0.1, multistep(150000, 300000, 400000), 450000, test_iter=2000, test_interval=5000, weight_decay=0.00004,
             iter_size=8)

MODELS = [Model("shufflenet-v2-x1.0", "ShuffleNet-v2 x1.0", [3, 224, 224], body, SOLVER, imagenet(224), 32, 25)]
