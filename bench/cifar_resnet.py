"""He et al.'s residual nets for CIFAR-10 (2015, section 4.2) of torchvision's blocks."""

from torch import nn
from torchvision.models.resnet import BasicBlock


def cifar_resnet(blocks):
    """The net of 6 * blocks + 2 layers, with projections (option B) where shortcuts change the shape."""
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
