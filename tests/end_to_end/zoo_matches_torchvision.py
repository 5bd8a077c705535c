#!/usr/bin/env python3
"""The model zoo's files describe the nets they are named after.

Every model file is run by an interpreter of Caffe's layers (caffe_net.py). Its number of learnable parameters is
compared with the published one, and, for nets that torchvision has, all scores and all gradients with
torchvision's own model from the same weights. Needs Debian's python3-torch and python3-torchvision; exits 77
where they are missing.
"""

import argparse
import pathlib
import sys

try:
    import torch
    import torchvision.models as tv
except ImportError as error:
    print(f"skipped: {error} (Debian's packages belong to /usr/bin/python3; this is {sys.executable})")
    sys.exit(77)

from caffe_net import CaffeNet, read_layers

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "models"
sys.path.append(str(ROOT / "bench"))
from small_nets import cifar_resnet  # noqa: E402


def efficientnet_b0():
    model = tv.efficientnet_b0(stochastic_depth_prob=0)
    model.classifier[0].p = 0
    return model


# name: (learnable parameters, torchvision's maker or None)
ZOO = {
    "lenet": (431_080, None),
    "cifar10_quick": (145_578, None),
    "cifar10_full": (89_578, None),
    "caffenet": (60_965_224, None),
    "alexnet": (61_100_840, lambda: tv.alexnet(dropout=0)),
    "vgg-a": (132_863_336, lambda: tv.vgg11(dropout=0)),
    "vgg-16": (138_357_544, lambda: tv.vgg16(dropout=0)),
    "vgg-16-bn": (138_365_992, lambda: tv.vgg16_bn(dropout=0)),
    "vgg-128": (47_609_192, None),
    "vgg-256": (76_400_360, None),
    "vgg-512": (140_175_848, None),
    "googlenet": (13_378_280, None),  # torchvision's has batch norm, and 3x3 where the paper has 5x5
    "inception-v3": (23_834_568, lambda: tv.inception_v3(dropout=0, aux_logits=False, init_weights=False)),
    "inception-v3-aux": (27_161_264, lambda: tv.inception_v3(dropout=0, aux_logits=True, init_weights=False)),
    "resnet-18": (11_689_512, tv.resnet18),
    "resnet-50": (25_557_032, tv.resnet50),
    "wrn-50-2": (68_883_240, tv.wide_resnet50_2),
    "wrn-50-4": (223_439_144, lambda: tv.resnet50(width_per_group=256)),
    "resnext-50-32x4d": (25_028_904, tv.resnext50_32x4d),
    "densenet-121": (7_978_856, tv.densenet121),
    "squeezenet-1.1": (1_235_496, lambda: tv.squeezenet1_1(dropout=0)),
    "mobilenet-v2": (3_504_872, lambda: tv.mobilenet_v2(dropout=0)),
    "mnasnet-1.0": (4_383_312, lambda: tv.mnasnet1_0(dropout=0)),
    "resnet-20": (272_474, lambda: cifar_resnet(3)),  # of torchvision's blocks
    "resnet-110": (1_730_714, lambda: cifar_resnet(18)),
    "efficientnet-b0": (5_288_548, efficientnet_b0),
    "regnet-y-1.6gf": (11_202_430, tv.regnet_y_1_6gf),
    "googlenet-bn": (6_624_904, lambda: tv.googlenet(dropout=0, aux_logits=False, init_weights=False)),
    "shufflenet-v2-x1.0": (2_278_604, tv.shufflenet_v2_x1_0),
    "u-net": (31_037_698, None),
    "u-net-3d": (5_601_187, None),
}


def deploy_shape(name):
    shape = read_layers(MODELS / name / "deploy.prototxt", "TEST")[0].get("input_param").get("shape")
    return shape.all("dim")


def count_parameters(name):
    """Learnable parameters of the training net, found without computing (PyTorch's meta device, which has no
    3-D pooling: volumes are computed on small ones)."""
    net = CaffeNet(MODELS / name / "train_val.prototxt", initialize=lambda name, kind, shape: torch.zeros(shape))
    net.layers = [layer for layer in net.layers if layer.get("type") != "SoftmaxWithLoss"]
    shape = [2] + deploy_shape(name)[1:]
    net.forward(data=torch.zeros(shape[:2] + [8, 8, 8]) if len(shape) == 5 else torch.empty(shape, device="meta"))
    return net.parameter_count()


def compare_with_torchvision(name, make):
    """Largest relative difference of loss and of any parameter's gradient, batch 2, in double precision. Gradients below
    a millionth of the net's largest are compared with that millionth."""
    torch.manual_seed(1)
    reference = make().double().train()
    remaining = iter(list(reference.parameters()))

    def initialize(parameter, kind, shape):
        weights = next(remaining)
        if list(weights.shape) != list(shape):
            raise ValueError(f"{parameter} has shape {shape}, torchvision's next parameter {list(weights.shape)}")
        return weights.detach().clone()

    data = torch.randn([2] + deploy_shape(name)[1:], dtype=torch.float64)
    label = torch.tensor([3, 7])
    net = CaffeNet(MODELS / name / "train_val.prototxt", initialize=initialize, dropout=False)
    _, loss = net.forward(data=data, label=label)
    loss.backward()

    outputs = reference(data)
    entropy = torch.nn.functional.cross_entropy
    if isinstance(outputs, torch.Tensor):
        expected = entropy(outputs, label)
    else:
        expected = entropy(outputs[0], label) + 0.4 * entropy(outputs[1], label)
    expected.backward()

    worst = abs(loss.item() / expected.item() - 1)
    # A bias that the next batch norm takes away again has a gradient of rounding errors: those are small in the net.
    largest = max(weights.grad.abs().max().item() for weights in reference.parameters())
    for ours, theirs in zip(net.parameters.values(), reference.parameters(), strict=True):
        scale = max(theirs.grad.abs().max().item(), 1e-6 * largest)
        worst = max(worst, (ours.grad - theirs.grad).abs().max().item() / scale)
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts-only", action="store_true", help="compare parameter counts, do not compute")
    parser.add_argument("models", nargs="*", help="which models (default: all)")
    arguments = parser.parse_args()

    failures = 0
    for name in arguments.models or ZOO:
        expected, make = ZOO[name]
        count = count_parameters(name)
        line = f"{name:18} {count:>12,} parameters"
        good = count == expected
        if not good:
            line += f", expected {expected:,}"
        if make and not arguments.counts_only:
            difference = compare_with_torchvision(name, make)
            good = good and difference < 1e-6
            line += f", largest relative difference from torchvision {difference:.1e}"
        print(line if good else "FAILED: " + line, flush=True)
        failures += not good
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
