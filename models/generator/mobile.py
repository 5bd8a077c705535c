"""Nets of inverted residuals, whose blocks widen, filter each feature map alone, and narrow again: MobileNet-v2 (Sandler
et al., "MobileNetV2: inverted residuals and linear bottlenecks", 2018) and MnasNet-B1 (Tan et al., "MnasNet:
platform-aware neural architecture search for mobile", 2019) and EfficientNet-B0 (Tan and Le, "EfficientNet: rethinking
model scaling for convolutional neural networks", 2019), all in torchvision's shape. EfficientNet weighs feature maps by
squeeze and excitation; it is written without stochastic depth."""

from dataclasses import dataclass
from typing import Callable

from .data import Model, imagenet, multistep, sgd
from .net import Net, gaussian


@dataclass
class Stage:
    widening: int
    kernel: int
    outputs: int
    blocks: int
    stride: int  # of the first block


@dataclass
class Architecture:
    stages: list
    activation: Callable  # (net, name, blob): the top; follows every convolution but the one that narrows
    squeeze: bool = False  # squeeze and excitation before the convolution that narrows
    stem: int = 32        # feature maps of the first convolution

    def conv(self, net, name, bottom, outputs, kernel, stride=1, group=1):
        top = net.conv_bn(name, bottom, outputs, kernel, stride, kernel // 2, group)
        return self.activation(net, f"{name}_act", top)

    def block(self, net, name, bottom, inputs, stage, stride):
        maps = inputs * stage.widening
        top = self.conv(net, f"{name}_expand", bottom, maps, 1) if stage.widening > 1 else bottom
        top = self.conv(net, f"{name}_depthwise", top, maps, stage.kernel, stride, maps)
        if self.squeeze:
            top = net.squeeze_excitation(name, top, maps, inputs // 4, self.activation)
        top = net.conv_bn(f"{name}_project", top, stage.outputs, 1)
        return net.add(name, [bottom, top]) if stride == 1 and inputs == stage.outputs else top

    def body(self, net):
        top, inputs = self.conv(net, "conv1", "data", self.stem, 3, 2), self.stem
        for s, stage in enumerate(self.stages, 1):
            for b in range(1, stage.blocks + 1):
                top = self.block(net, f"stage{s}_{b}", top, inputs, stage, stage.stride if b == 1 else 1)
                inputs = stage.outputs
        top = net.global_average("pool", self.conv(net, "conv_last", top, 1280, 1))
        return net.fc("fc", net.dropout("drop", top, 0.2), 1000, filler=gaussian(0.01))


def relu6(net, name, blob):
    return net.clip(name, blob, 0, 6)


MOBILENET_V2 = Architecture([Stage(1, 3, 16, 1, 1), Stage(6, 3, 24, 2, 2), Stage(6, 3, 32, 3, 2), Stage(6, 3, 64, 4, 2),
                             Stage(6, 3, 96, 3, 1), Stage(6, 3, 160, 3, 2), Stage(6, 3, 320, 1, 1)], relu6)
MNASNET = Architecture([Stage(1, 3, 16, 1, 1), Stage(3, 3, 24, 3, 2), Stage(3, 5, 40, 3, 2), Stage(6, 5, 80, 3, 2),
                        Stage(6, 3, 96, 2, 1), Stage(6, 5, 192, 4, 2), Stage(6, 3, 320, 1, 1)], Net.relu)
EFFICIENTNET_B0 = Architecture([Stage(1, 3, 16, 1, 1), Stage(6, 3, 24, 2, 2), Stage(6, 5, 40, 2, 2), Stage(6, 3, 80, 3, 2),
                                Stage(6, 5, 112, 3, 1), Stage(6, 5, 192, 4, 2), Stage(6, 3, 320, 1, 1)], Net.swish, True)

SOLVER = sgd(0.1, multistep(150000, 300000, 400000), 450000, test_iter=2000, test_interval=5000, weight_decay=0.00004,
             iter_size=8)

MODELS = [Model(name, title, [3, 224, 224], architecture.body, SOLVER, imagenet(224), 32, 25)
          for name, title, architecture in (("mobilenet-v2", "MobileNet-v2", MOBILENET_V2),
                                            ("mnasnet-1.0", "MnasNet-B1", MNASNET),
                                            ("efficientnet-b0", "EfficientNet-B0", EFFICIENTNET_B0))]
