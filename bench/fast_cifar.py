#!/usr/bin/env python3
"""A net and recipe made to learn CIFAR-10 in few operations, as files for `cortado train` and as PyTorch's training of the
same net, to compare both. On images that had been through JPEG (quality 75) one seed reached 89.05 %.

    bench/fast_cifar.py torch --data cifar10-jpeg.tar.gz --work runs --seed 1 --threads 2
    bench/fast_cifar.py torch ... --iterations 20 --channels-last    # times iterations only

bench/accuracy.py trains it with Cortado: `--nets fast-cifar`, or `--nets fast-cifar:40:128,384,384` for 40 epochs with so
many feature maps in the three groups. Net and recipe follow Jordan, "94% on CIFAR-10 in 3.29 seconds on a single GPU"
(2024): a first convolution of 2 x 2 that whitens its patches and is not trained; six convolutions of 3 x 3 that begin as
the identity; biases of the batch norm that learn 64 times as fast and no factors; labels smoothed by 0.2; Nesterov's
momentum; a rate that rises and falls linearly; images mirrored and moved by up to 2 pixels. Left out: its averaging of
weights, its tests of several crops, its order of mirroring. Swish of 1.702 times its input stands for GELU, which Caffe's
files do not have. Needs NumPy and Pillow, for `torch` Debian's python3-torch."""

import argparse
import json
import pathlib
import struct
import sys
import time

import numpy
from cifar_images import padded
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "models"))
from generator.net import Net  # noqa: E402
from generator.prototxt import Enum, text  # noqa: E402

EDGE, PAD = 32, 2
BATCH, TEST_BATCH = 1000, 1000
EPOCHS = 10
ITERATIONS_AN_EPOCH = 50_000 // BATCH
MEANS, SCALE = (114, 123, 125), 1 / 63  # of blue, green and red; about one over the deviation
WHITE = 24  # feature maps of the first convolution
WIDTHS = (64, 256, 256)  # feature maps out of each of three groups
SHARPNESS = 1.702
MOMENTUM = 0.85
# Jordan's rate of 11.5 and decay of 0.0153 for a thousand samples, for a loss that is a mean.
RATE = 11.5 * BATCH / 1024 / (1 + 1 / (1 - MOMENTUM))
DECAY = 0.0153 / 11.5
BIAS_RATE = 64
RISE = 0.23  # share of the training in which the rate rises, from 0.2 of its peak
SMOOTHING = 0.2


def groups(widths):
    """(number, feature maps into it, out of it) of each group."""
    return list(zip((1, 2, 3), (WHITE, *widths), widths))


def batch_norm(net, name, bottom):
    net.layer("BatchNorm", f"{name}_bn", bottom, bottom, batch_norm_param={"moving_average_fraction": 0.6, "eps": 1e-5})
    params = [{"lr_mult": 0, "decay_mult": 0}, {"lr_mult": BIAS_RATE, "decay_mult": 1 / BIAS_RATE}]
    net.layer("Scale", f"{name}_scale", bottom, bottom, param=params, scale_param={"bias_term": True})
    return swish(net, f"{name}_swish", bottom)


def swish(net, name, bottom):
    return net.layer("Swish", name, bottom, name, swish_param={"beta": SHARPNESS})


def net_text(widths):
    net = Net("fast-cifar", deploy=False)
    for phase, batch in (("TRAIN", BATCH), ("TEST", TEST_BATCH)):
        transform = {"mirror": True if phase == "TRAIN" else None, "crop_size": EDGE, "mean_value": list(MEANS), "scale": SCALE}
        source = {"source": f"padded{PAD}_{phase.lower()}_lmdb", "batch_size": batch, "backend": Enum("LMDB"),
                  "shuffle": True if phase == "TRAIN" else None}
        net.phase_data(phase, "Data", transform_param=transform, data_param=source)
    top = net.conv("whiten", "data", WHITE, 2, bias=False, params=[{"lr_mult": 0, "decay_mult": 0}])
    top = swish(net, "whiten_swish", top)
    for group, _, outputs in groups(widths):
        top = net.conv(f"conv{group}_1", top, outputs, 3, pad=1, bias=False)
        top = net.pool(f"pool{group}", top, "MAX", 2, 2, floor=True)
        top = batch_norm(net, f"conv{group}_1", top)
        top = batch_norm(net, f"conv{group}_2", net.conv(f"conv{group}_2", top, outputs, 3, pad=1, bias=False))
    top = net.pool("pool4", top, "MAX", 3, 3)
    net.layer("InnerProduct", "fc", top, "fc", param=[{"lr_mult": 1, "decay_mult": 1}],
              inner_product_param={"num_output": 10, "bias_term": False, "weight_filler": {"type": "xavier"}})
    net.layer("Power", "scores", "fc", "scores", power_param={"scale": 1 / 9})
    net.loss("scores", loss_param={"label_smoothing": SMOOTHING}, include={"phase": Enum("TRAIN")})
    net.loss("scores", include={"phase": Enum("TEST")})
    net.accuracy("scores")
    return net.text()


def solver_text(net, epochs):
    iterations = epochs * ITERATIONS_AN_EPOCH
    return text({"net": net, "type": "Nesterov", "base_lr": RATE / (1 - RISE), "lr_policy": "poly", "power": 1.0,
                 "warmup_iter": round(RISE * iterations), "warmup_start_lr": 0.2 * RATE, "max_iter": iterations,
                 "momentum": MOMENTUM, "weight_decay": DECAY, "test_iter": 10_000 // TEST_BATCH,
                 "test_interval": 2 * ITERATIONS_AN_EPOCH, "test_initialization": False, "display": 10,
                 "snapshot": 2 * ITERATIONS_AN_EPOCH})


def whitening(folder):
    """Filters whose outputs on patches of the training images are uncorrelated, of variance 1; and their negatives."""
    files = sorted((folder / "train").glob("*/*.png"))[::10]
    images = numpy.stack([numpy.asarray(Image.open(file))[PAD:-PAD, PAD:-PAD, ::-1] for file in files])
    values = ((images - numpy.array(MEANS, numpy.float32)) * numpy.float32(SCALE)).transpose(0, 3, 1, 2)
    patches = numpy.stack([values[:, :, y:EDGE - 1 + y, x:EDGE - 1 + x] for y in (0, 1) for x in (0, 1)], axis=2)
    patches = patches.transpose(0, 3, 4, 1, 2).reshape(-1, 12)  # channel, then the place in the patch
    variances, directions = numpy.linalg.eigh(numpy.cov(patches, rowvar=False))
    filters = (directions / numpy.sqrt(variances + 5e-4)).T.reshape(12, 3, 2, 2)
    return numpy.concatenate([filters, -filters]).astype(numpy.float32)


def initial_weights(folder, seed, widths):
    """Name -> values, as `cortado convert` names them."""
    random = numpy.random.default_rng(seed)
    weights = {"whiten/weight": whitening(folder)}
    for group, inputs, outputs in groups(widths):
        for conv, maps in ((f"conv{group}_1", inputs), (f"conv{group}_2", outputs)):
            bound = 1 / numpy.sqrt(9 * maps)
            values = random.uniform(-bound, bound, (outputs, maps, 3, 3)).astype(numpy.float32)
            same = min(maps, outputs)
            values[:same] = 0
            values[range(same), range(same), 1, 1] = 1
            weights[f"{conv}/weight"] = values
    bound = 1 / numpy.sqrt(widths[-1])
    weights["fc/weight"] = random.uniform(-bound, bound, (10, widths[-1])).astype(numpy.float32)
    return weights


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [offset, offset + values.nbytes]}
        offset += values.nbytes
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    path.write_bytes(struct.pack("<Q", len(head)) + head + b"".join(values.tobytes() for values in tensors.values()))


def write_recipe(work, folder, seed, epochs=EPOCHS, widths=WIDTHS):
    """Writes net, solver and initial weights of a seed to `folder`; returns solver and weights, relative to `work`."""
    home = folder.relative_to(work)
    (folder / "train_val.prototxt").write_text(net_text(widths))
    (folder / "solver.prototxt").write_text(solver_text(str(home / "train_val.prototxt"), epochs))
    write_safetensors(folder / "initial.safetensors", initial_weights(work / f"padded{PAD}", seed, widths))
    return home / "solver.prototxt", home / "initial.safetensors"


def torch_net(weights, widths):
    import torch

    class Swish(torch.nn.Module):
        def forward(self, values):
            return values * torch.sigmoid(SHARPNESS * values)

    def norm(maps):
        layer = torch.nn.BatchNorm2d(maps, eps=1e-5, momentum=0.4)
        layer.weight.requires_grad = False
        return layer

    layers = [torch.nn.Conv2d(3, WHITE, 2, bias=False), Swish()]
    layers[0].weight.requires_grad = False
    for _, inputs, outputs in groups(widths):
        layers += [torch.nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), torch.nn.MaxPool2d(2), norm(outputs), Swish(),
                   torch.nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), norm(outputs), Swish()]
    layers += [torch.nn.MaxPool2d(3), torch.nn.Flatten(), torch.nn.Linear(widths[-1], 10, bias=False)]
    net = torch.nn.Sequential(*layers)
    learned = [layer for layer in layers if isinstance(layer, (torch.nn.Conv2d, torch.nn.Linear))]
    with torch.no_grad():
        for layer, values in zip(learned, weights.values(), strict=True):
            layer.weight.copy_(torch.from_numpy(values))
    return net


def torch_data(folder, part, device):
    """All images with their padding, as bytes, and labels."""
    import torch
    classes = sorted(path.name for path in (folder / part).iterdir())
    files = [(file, label) for label, name in enumerate(classes) for file in sorted((folder / part / name).glob("*.png"))]
    images = numpy.stack([numpy.asarray(Image.open(file))[:, :, ::-1] for file, _ in files]).transpose(0, 3, 1, 2)
    labels = torch.tensor([label for _, label in files])
    return torch.from_numpy(numpy.ascontiguousarray(images)).to(device), labels.to(device)


def rate_at(iteration, iterations):
    rise = round(RISE * iterations)
    if iteration < rise:
        return RATE * (0.2 + 0.8 * iteration / rise)
    return RATE * (1 - iteration / iterations) / (1 - RISE)


def normalized(images):
    import torch
    return (images - torch.tensor(MEANS, device=images.device).view(1, 3, 1, 1)) * SCALE


def torch_optimizer(net):
    """One group of kernels, one of biases."""
    import torch
    biases = [layer.bias for layer in net if isinstance(layer, torch.nn.BatchNorm2d)]
    layers = [layer for layer in net if isinstance(layer, (torch.nn.Conv2d, torch.nn.Linear))]
    kernels = [layer.weight for layer in layers if layer.weight.requires_grad]
    return torch.optim.SGD([{"params": kernels, "weight_decay": DECAY}, {"params": biases, "weight_decay": DECAY / BIAS_RATE}],
                           lr=RATE, momentum=MOMENTUM, nesterov=True)


def moved_and_mirrored(images, pad):
    """Each padded image at a place of its own, half of them mirrored."""
    import torch
    corners = torch.randint(0, 2 * pad + 1, (2, len(images), 1), device=images.device)
    rows, columns = corners + torch.arange(EDGE, device=images.device)
    mirrored = torch.rand(len(images), 1, device=images.device) < 0.5
    columns = torch.where(mirrored, columns.flip(1), columns)
    each = torch.arange(len(images), device=images.device).view(-1, 1, 1)
    return images.permute(0, 2, 3, 1)[each, rows[:, :, None], columns[:, None]].permute(0, 3, 1, 2)


def torch_batch(images, layout):
    return normalized(moved_and_mirrored(images, PAD)).contiguous(memory_format=layout)


def train_torch(arguments):
    import torch
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    folder = padded(arguments.data, arguments.work, PAD)
    layout = torch.channels_last if arguments.channels_last else torch.contiguous_format
    weights = initial_weights(folder, arguments.seed, arguments.widths)
    net = torch_net(weights, arguments.widths).to(arguments.device, memory_format=layout)
    optimizer = torch_optimizer(net)
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=SMOOTHING)
    images, labels = torch_data(folder, "train", arguments.device)
    iterations = arguments.epochs * ITERATIONS_AN_EPOCH
    took = []
    for iteration in range(arguments.iterations or iterations):
        if iteration % ITERATIONS_AN_EPOCH == 0:
            order = torch.randperm(len(images)).to(arguments.device)
        begin = time.monotonic()
        chosen = order[iteration % ITERATIONS_AN_EPOCH * BATCH:][:BATCH]
        for group, factor in zip(optimizer.param_groups, (1, BIAS_RATE)):
            group["lr"] = rate_at(iteration, iterations) * factor
        optimizer.zero_grad()
        loss_of(net(torch_batch(images[chosen], layout)) / 9, labels[chosen]).backward()
        optimizer.step()
        if arguments.device != "cpu":
            torch.cuda.synchronize()
        took.append(time.monotonic() - begin)
    report = {"iterations": len(took), "seconds": sum(took), "least_seconds": min(took)}
    if not arguments.iterations:
        images, labels = torch_data(folder, "test", arguments.device)
        centres = normalized(images[:, :, PAD:-PAD, PAD:-PAD]).contiguous(memory_format=layout)
        report["accuracy"] = accuracy_of(net, centres, labels)
    print(json.dumps(report))


def accuracy_of(net, images, labels):
    """The share of images, as the net takes them, that it gives their label."""
    import torch
    net.eval()
    with torch.no_grad():
        right = sum((net(part).argmax(1) == of).sum().item()
                    for part, of in zip(images.split(TEST_BATCH), labels.split(TEST_BATCH)))
    return right / len(images)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    verb = verbs.add_parser("torch", help="trains with PyTorch and prints one JSON object")
    verb.add_argument("--data", required=True, type=pathlib.Path, help="the archive of images")
    verb.add_argument("--work", required=True, type=pathlib.Path, help="folder of the padded images")
    verb.add_argument("--seed", type=int, default=1)
    verb.add_argument("--epochs", type=int, default=EPOCHS)
    verb.add_argument("--widths", type=int, nargs=3, default=WIDTHS, help="feature maps of the three groups")
    verb.add_argument("--device", default="cpu", help="cpu or cuda")
    verb.add_argument("--iterations", type=int, help="only so many, without a test")
    verb.add_argument("--threads", type=int, default=2)
    verb.add_argument("--channels-last", action="store_true")
    verb.set_defaults(run=train_torch)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
