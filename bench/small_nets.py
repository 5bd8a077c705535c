"""Nets that torchvision has not, of its and PyTorch's layers."""

import torch
from torch import nn
from torchvision.models.resnet import BasicBlock


def cifar_resnet(blocks):
    """He et al.'s residual net for CIFAR-10 (2015, section 4.2) of 6 * blocks + 2 layers, with projections (option B)
    where shortcuts change the shape."""
    layers = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    inputs = 16
    for maps in (16, 32, 64):
        project = None
        if maps != inputs:
            project = nn.Sequential(nn.Conv2d(inputs, maps, 1, stride=2, bias=False), nn.BatchNorm2d(maps))
        layers.append(BasicBlock(inputs, maps, maps // inputs, project))
        layers += [BasicBlock(maps, maps) for _ in range(blocks - 1)]
        inputs = maps
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def lenet():
    """Caffe's LeNet (examples/mnist)."""
    return nn.Sequential(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2, 2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2, 2), nn.Flatten(),
                         nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10))


def cifar10_quick():
    """Caffe's net for CIFAR-10 (examples/cifar10)."""
    def pool(kind):
        return kind(3, 2, ceil_mode=True)
    return nn.Sequential(nn.Conv2d(3, 32, 5, padding=2), pool(nn.MaxPool2d), nn.ReLU(),
                         nn.Conv2d(32, 32, 5, padding=2), nn.ReLU(), pool(nn.AvgPool2d),
                         nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), pool(nn.AvgPool2d),
                         nn.Flatten(), nn.Linear(1024, 64), nn.Linear(64, 10))


class UNet3d(nn.Module):
    """The 3D U-Net of models/u-net-3d: Çiçek et al. (2016) with padding, and batch normalization after each convolution."""

    def __init__(self, maps=32, depth=3, classes=3):
        super().__init__()

        def block(inputs, outputs):
            layers = []
            for channels in (inputs, outputs):
                layers += [nn.Conv3d(channels, outputs, 3, padding=1, bias=False), nn.BatchNorm3d(outputs), nn.ReLU()]
            return nn.Sequential(*layers)

        widths = [maps << level for level in range(depth + 1)]
        self.down = nn.ModuleList(block(inputs, outputs) for inputs, outputs in zip([1, *widths], widths))
        self.up = nn.ModuleList(nn.ConvTranspose3d(2 * width, width, 2, stride=2) for width in widths[:-1])
        self.merge = nn.ModuleList(block(2 * width, width) for width in widths[:-1])
        self.pool = nn.MaxPool3d(2)
        self.score = nn.Conv3d(maps, classes, 1)

    def forward(self, values):
        kept = []
        for block in self.down[:-1]:
            kept.append(block(values))
            values = self.pool(kept[-1])
        values = self.down[-1](values)
        for level in reversed(range(len(kept))):
            values = self.merge[level](torch.cat([kept[level], self.up[level](values)], 1))
        return self.score(values)
