"""Residual nets of basic and of bottleneck blocks (He et al., "Deep residual learning for image recognition", 2015; the
stride is in the 3x3 convolution, as in torchvision), their wide variants (Zagoruyko and Komodakis, "Wide residual
networks", 2016), whose 3x3 convolutions have more feature maps, and ResNeXt (Xie et al., "Aggregated residual
transformations for deep neural networks", 2017), whose 3x3 convolutions are grouped. The nets for CIFAR-10 are He et
al.'s of section 4.2 with projections (their option B) where shortcuts change the shape."""

from .data import CIFAR10_MIRRORED, Model, imagenet, multistep, sgd
from .net import XAVIER

BLOCKS_18 = (2, 2, 2, 2)
BLOCKS_50 = (3, 4, 6, 3)


def basic(net, name, bottom, outputs, stride, project):
    top = net.conv_bn_relu(f"{name}_conv1", bottom, outputs, 3, stride, 1)
    top = net.conv_bn(f"{name}_conv2", top, outputs, 3, 1, 1)
    return residual(net, name, bottom, top, outputs, stride, project)


def bottleneck(net, name, bottom, width, outputs, stride, project, group=1):
    top = net.conv_bn_relu(f"{name}_conv1", bottom, width, 1)
    top = net.conv_bn_relu(f"{name}_conv2", top, width, 3, stride, 1, group)
    top = net.conv_bn(f"{name}_conv3", top, outputs, 1)
    return residual(net, name, bottom, top, outputs, stride, project)


def residual(net, name, bottom, top, outputs, stride, project):
    shortcut = net.conv_bn(f"{name}_shortcut", bottom, outputs, 1, stride) if project else bottom
    return net.relu(f"{name}_relu", net.add(name, [shortcut, top]))


def resnet_body(blocks, block_of):
    """`block_of(net, name, bottom, maps, stride, first)` adds one block of a stage whose 3x3 convolutions have `maps`
    feature maps in a plain residual net; `first` says whether it begins the stage."""
    def body(net):
        top = net.conv_bn_relu("conv1", "data", 64, 7, 2, 3)
        top = net.pool("pool1", top, "MAX", 3, 2, 1, floor=True)
        for stage, count in enumerate(blocks):
            maps = 64 << stage
            for block in range(count):
                stride = 2 if stage > 0 and block == 0 else 1
                top = block_of(net, f"res{stage + 2}_{block + 1}", top, maps, stride, block == 0)
        return net.fc("fc", net.global_average("pool5", top), 1000, filler=XAVIER)
    return body


def basic_body(blocks):
    # The first stage keeps the feature maps and the extent of its input: its shortcut needs no projection.
    return resnet_body(blocks, lambda net, name, bottom, maps, stride, first: basic(
        net, name, bottom, maps, stride, first and stride > 1))


def bottleneck_body(blocks, widening, group=1):
    return resnet_body(blocks, lambda net, name, bottom, maps, stride, first: bottleneck(
        net, name, bottom, maps * widening, maps * 4, stride, first, group))


def cifar_body(blocks):
    def body(net):
        top = net.conv_bn_relu("conv1", "data", 16, 3, 1, 1)
        for stage in range(3):
            for block in range(blocks):
                stride = 2 if stage > 0 and block == 0 else 1
                top = basic(net, f"res{stage + 2}_{block + 1}", top, 16 << stage, stride, stride > 1)
        return net.fc("fc", net.global_average("pool", top), 10)
    return body


SOLVER = sgd(0.1, multistep(150000, 300000, 400000), 450000, test_iter=2000, test_interval=5000, weight_decay=0.0001,
             iter_size=8)

MODELS = [Model(name, title, [3, 224, 224], body, SOLVER, imagenet(224), 32, 25)
          for name, title, body in (("resnet-18", "ResNet-18", basic_body(BLOCKS_18)),
                                    ("resnet-50", "ResNet-50", bottleneck_body(BLOCKS_50, 1)),
                                    ("wrn-50-2", "WRN-50-2", bottleneck_body(BLOCKS_50, 2)),
                                    ("wrn-50-4", "WRN-50-4", bottleneck_body(BLOCKS_50, 4)),
                                    ("resnext-50-32x4d", "ResNeXt-50 32x4d", bottleneck_body(BLOCKS_50, 2, 32)))]

CIFAR_SOLVER = sgd(0.1, multistep(32000, 48000), 64000, test_iter=100, test_interval=1000, weight_decay=0.0001,
                   display=100)
WARM_UP = {"warmup_iter": 400, "warmup_start_lr": 0.01}  # He et al. begin at 0.01, too

MODELS += [Model(name, title, [3, 32, 32], cifar_body(blocks), solver, CIFAR10_MIRRORED, 128, 100)
           for name, title, blocks, solver in (("resnet-20", "ResNet-20", 3, CIFAR_SOLVER),
                                               ("resnet-110", "ResNet-110", 18, CIFAR_SOLVER | WARM_UP))]
