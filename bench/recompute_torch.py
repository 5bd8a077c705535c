#!/usr/bin/env python3
"""Times training steps in PyTorch with parts of the model under torch.utils.checkpoint, for bench/recompute.py.

--segments none keeps all; blocks checkpoints each block (two convolutions of a U-Net, a residual block, a convolution
of vgg with what follows it); stages each run of blocks at one resolution, which of a U-Net is a block. Prints
{"step_seconds" (median), "loss"}.
"""

import argparse
import json
import statistics
import time

import torch
import torchvision.models as tv
from torch.utils.checkpoint import checkpoint

from small_nets import UNet3d


class Kept(torch.nn.Module):
    """A module whose inner tensors are not kept but computed again."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *inputs):
        return checkpoint(self.inner, *inputs, use_reentrant=False)


def double(inputs, outputs):
    layers = []
    for count in (inputs, outputs):
        layers += [torch.nn.Conv2d(count, outputs, 3, padding=1), torch.nn.BatchNorm2d(outputs),
                   torch.nn.ReLU(inplace=True)]
    return torch.nn.Sequential(*layers)


class UNet(torch.nn.Module):
    """That of models/u-net: 64 to 1024 maps over five levels, upsampled by 2x2 deconvolutions."""

    def __init__(self, wrap, maps=(64, 128, 256, 512, 1024), classes=2, channels=3):
        super().__init__()
        inputs = (channels, *maps[:-1])
        self.down = torch.nn.ModuleList(wrap(double(a, b)) for a, b in zip(inputs, maps))
        self.up = torch.nn.ModuleList(torch.nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(maps[:-1], maps[1:]))
        self.join = torch.nn.ModuleList(wrap(double(2 * a, a)) for a in maps[:-1])
        self.score = torch.nn.Conv2d(maps[0], classes, 1)

    def forward(self, x):
        passed = []
        for level, down in enumerate(self.down):
            x = down(x if level == 0 else torch.nn.functional.max_pool2d(x, 2))
            passed.append(x)
        for level in range(len(self.up) - 1, -1, -1):
            x = self.join[level](torch.cat([passed[level], self.up[level](x)], 1))
        return self.score(x)


def resnet(segments, wrap):
    model = tv.resnet50()
    for name in ("layer1", "layer2", "layer3", "layer4"):
        stage = getattr(model, name)
        setattr(model, name, wrap(stage) if segments == "stages" else torch.nn.Sequential(*map(wrap, stage)))
    return model


def vgg(segments, wrap):
    model = tv.vgg16_bn()
    parts, part = [], []
    for layer in model.features:
        ends = isinstance(layer, torch.nn.MaxPool2d) or (segments == "blocks" and isinstance(layer, torch.nn.ReLU))
        part.append(layer)
        if ends:
            parts.append(wrap(torch.nn.Sequential(*part)))
            part = []
    model.features = torch.nn.Sequential(*parts)
    return model


def u_net_3d(wrap):
    model = UNet3d()
    for blocks in (model.down, model.merge):
        for index, block in enumerate(blocks):
            blocks[index] = wrap(block)
    return model


MODELS = {  # what makes each, the shape of a sample, classes
    "u-net": (lambda segments, wrap: UNet(wrap), (3, 512, 512), 2),
    "u-net-3d": (lambda segments, wrap: u_net_3d(wrap), (1, 64, 64, 64), 3),
    "resnet-50": (resnet, (3, 224, 224), 1000),
    "vgg-16-bn": (vgg, (3, 224, 224), 1000),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, choices=MODELS)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--segments", default="none", choices=("none", "blocks", "stages"))
    parser.add_argument("--channels-last", action="store_true", help="keep activations and weights channels last")
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    wrap = Kept if arguments.segments != "none" else (lambda module: module)
    make, shape, classes = MODELS[arguments.model]
    labels = torch.randint(classes, (arguments.batch, *(shape[1:] if arguments.model.startswith("u-net") else ())))
    last = torch.channels_last if len(shape) == 3 else torch.channels_last_3d
    layout = last if arguments.channels_last else torch.contiguous_format
    model = make(arguments.segments, wrap).train().to(memory_format=layout)
    images = torch.randn(arguments.batch, *shape).contiguous(memory_format=layout)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, weight_decay=0.0005)
    seconds = []
    for _ in range(1 + arguments.iterations):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"step_seconds": statistics.median(seconds[1:]), "loss": float(loss)}))


if __name__ == "__main__":
    main()
