"""Nets of small images that torchvision has not, of its and PyTorch's layers."""

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
