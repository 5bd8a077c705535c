"""Residual nets of bottleneck blocks (He et al., "Deep residual learning for image recognition", 2015; the stride is
in the 3x3 convolution, as in torchvision) and their wide variants (Zagoruyko and Komodakis, "Wide residual
networks", 2016), whose 3x3 convolutions have more feature maps."""

from .data import Model, imagenet, multistep, sgd
from .net import XAVIER

BLOCKS_50 = (3, 4, 6, 3)


def bottleneck(net, name, bottom, width, outputs, stride, project):
    top = net.conv_bn_relu(f"{name}_conv1", bottom, width, 1)
    top = net.conv_bn_relu(f"{name}_conv2", top, width, 3, stride, 1)
    top = net.conv_bn(f"{name}_conv3", top, outputs, 1)
    shortcut = net.conv_bn(f"{name}_shortcut", bottom, outputs, 1, stride) if project else bottom
    return net.relu(f"{name}_relu", net.add(name, [shortcut, top]))


def resnet_body(blocks, widening):
    def body(net):
        top = net.conv_bn_relu("conv1", "data", 64, 7, 2, 3)
        top = net.pool("pool1", top, "MAX", 3, 2, 1, floor=True)
        for stage, count in enumerate(blocks):
            maps = 64 << stage
            for block in range(count):
                stride = 2 if stage > 0 and block == 0 else 1
                top = bottleneck(net, f"res{stage + 2}_{block + 1}", top, maps * widening, maps * 4, stride, block == 0)
        return net.fc("fc", net.global_average("pool5", top), 1000, filler=XAVIER)
    return body


SOLVER = sgd(0.1, multistep(150000, 300000, 400000), 450000, test_iter=2000, test_interval=5000, weight_decay=0.0001,
             iter_size=8)

MODELS = [Model(name, title, [3, 224, 224], resnet_body(BLOCKS_50, widening), SOLVER, imagenet(224), 32, 25)
          for name, title, widening in (("resnet-50", "ResNet-50", 1), ("wrn-50-2", "WRN-50-2", 2),
                                        ("wrn-50-4", "WRN-50-4", 4))]
