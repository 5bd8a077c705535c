#!/usr/bin/env python3
"""Trains ResNet-20 on CIFAR-10 with PyTorch by the recipe resnet-20-cosine of bench/accuracy.py, to compare both.

    bench/resnet20_torch.py --data cifar10-jpeg.tar.gz --work runs --seed 1 --device cuda

The net is that of models/resnet-20: shortcuts of 1 x 1 convolutions, statistics of tests that forget a tenth a batch, decay
of kernels alone. Prints one JSON object: seconds, and the accuracy on the test images. Needs NumPy, Pillow and PyTorch."""

import argparse
import json
import math
import pathlib
import time

import torch
from accuracy import BATCH, PADS, RECIPE_EPOCHS, SMOOTHING, recipe_solver
from cifar_images import padded
from fast_cifar import MEANS, accuracy_of, moved_and_mirrored, torch_data

PAD = PADS["resnet-20-cosine"]


def convolution(inputs, outputs, edge, stride=1):
    layer = torch.nn.Conv2d(inputs, outputs, edge, stride, edge // 2, bias=False)
    torch.nn.init.kaiming_normal_(layer.weight)
    return torch.nn.Sequential(layer, torch.nn.BatchNorm2d(outputs, eps=1e-5, momentum=0.1))


class Block(torch.nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first, self.second = convolution(inputs, outputs, 3, stride), convolution(outputs, outputs, 3)
        self.shortcut = torch.nn.Identity() if inputs == outputs else convolution(inputs, outputs, 1, stride)

    def forward(self, values):
        return torch.relu(self.second(torch.relu(self.first(values))) + self.shortcut(values))


def resnet20():
    layers, inputs = [convolution(3, 16, 3), torch.nn.ReLU()], 16
    for outputs in (16, 32, 64):
        for block in range(3):
            layers.append(Block(inputs, outputs, 2 if block == 0 and outputs > 16 else 1))
            inputs = outputs
    scores = torch.nn.Linear(inputs, 10)
    torch.nn.init.zeros_(scores.bias)
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), scores)


def optimizer_of(net, solver):
    kernels = [layer.weight for layer in net.modules() if isinstance(layer, (torch.nn.Conv2d, torch.nn.Linear))]
    others = [values for values in net.parameters() if all(values is not kernel for kernel in kernels)]
    groups = [{"params": kernels, "weight_decay": solver["weight_decay"]}, {"params": others, "weight_decay": 0}]
    return torch.optim.SGD(groups, lr=solver["base_lr"], momentum=solver["momentum"], nesterov=True)


def rate_at(iteration, solver):
    """The cosine policy, times a rise that is linear."""
    cosine = (1 + math.cos(math.pi * iteration / solver["max_iter"])) / 2
    return solver["base_lr"] * cosine * min(1, iteration / solver["warmup_iter"])


def centred(images):
    return images - torch.tensor(MEANS, dtype=torch.float32, device=images.device).view(1, 3, 1, 1)


def train(arguments):
    torch.manual_seed(arguments.seed)
    folder = padded(arguments.data, arguments.work, PAD)
    solver = recipe_solver(arguments.batch, arguments.epochs)
    net = resnet20().to(arguments.device, memory_format=torch.channels_last)
    optimizer = optimizer_of(net, solver)
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=SMOOTHING)
    images, labels = torch_data(folder, "train", arguments.device)
    order = torch.empty(0, dtype=torch.long)
    for iteration in range(solver["max_iter"]):
        if len(order) < arguments.batch:  # an epoch's last records begin the next batch, as a database's do
            order = torch.cat([order, torch.randperm(len(images))])
        chosen, order = order[:arguments.batch].to(arguments.device), order[arguments.batch:]
        for group in optimizer.param_groups:
            group["lr"] = rate_at(iteration, solver)
        batch = centred(moved_and_mirrored(images[chosen], PAD)).contiguous(memory_format=torch.channels_last)
        optimizer.zero_grad()
        loss_of(net(batch), labels[chosen]).backward()
        optimizer.step()
    return net


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=pathlib.Path, help="the archive of images")
    parser.add_argument("--work", required=True, type=pathlib.Path, help="folder of the padded images")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--epochs", type=int, default=RECIPE_EPOCHS)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    arguments = parser.parse_args()
    begin = time.monotonic()
    net = train(arguments)
    seconds = time.monotonic() - begin
    images, labels = torch_data(padded(arguments.data, arguments.work, PAD), "test", arguments.device)
    accuracy = accuracy_of(net, centred(images[:, :, PAD:-PAD, PAD:-PAD]), labels)
    print(json.dumps({"seconds": seconds, "accuracy": accuracy}))


if __name__ == "__main__":
    main()
