#!/usr/bin/env python3
"""Trains nets of the zoo in Cortado and in PyTorch from the same weights and data, and compares the losses.

    tests/end_to_end/same_losses.py --cortado build/cortado
    tests/end_to_end/same_losses.py --cortado build/cortado --models resnet-50 --keep work

PyTorch runs the same prototxt through an interpreter of Caffe's layers (caffe_net.py) and Caffe's own update:
v = momentum * v + rate * lr_mult * (gradient + weight_decay * decay_mult * w), w -= v. Both start from weights
in Caffe's HDF5 layout and read the same HDF5 images. Dropout, which draws random numbers, is left out of the net.
Every loss must agree within --tolerance, relative. The rates of deep nets are so small that their losses hardly show updates;
so one more iteration, at the rate of 0.01, must change the weights as PyTorch does: the changes of all differ by at most 6e-2 in the
Euclidean norm, 2e-3 without batch norm. (Single elements differ more, where rounding decides a ReLU or a maximum otherwise: decided_ties.py.) Without --cortado the comparison is PyTorch's single against its
double precision: how far rounding alone takes the losses apart. Needs Debian's python3-torch and python3-h5py;
exits 77 where they are missing.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import h5py
    import torch
except ImportError as error:
    print(f"skipped: {error} (Debian's packages belong to /usr/bin/python3; this is {sys.executable})")
    sys.exit(77)

from caffe_net import CaffeNet

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
# Batch, extent, learning rate. Batch normalization over 4 images is chaotic: at a rate of 1e-4 PyTorch's own single
# and double precision part by 1.6e-2 within 10 iterations of resnet-50. The rates keep rounding below the tolerance.
NETS = {"alexnet": (8, 224, 1e-4), "vgg-a": (4, 224, 1e-4), "inception-v3": (4, 299, 1e-7),
        "resnet-50": (4, 224, 5e-7)}
LEFT_OUT = ("Data", "Accuracy", "Dropout")  # Dropout works in place, so its blob stays
MOMENTUM, WEIGHT_DECAY = 0.9, 0.0005
# Batch normalization over 4 images: there PyTorch's own single and double precision differ by 1e-2 and more.
UPDATE_RATE = 0.01
UPDATE_TOLERANCE = {"alexnet": 2e-3, "vgg-a": 2e-3, "inception-v3": 6e-2, "resnet-50": 6e-2}


def write_model(name, batch, folder):
    """The zoo's training net with HDF5 data and without dropout, and its solver; returns the net's path."""
    head, *layers = (MODELS / name / "train_val.prototxt").read_text().split("\nlayer {\n")
    layers = [layer for layer in layers if re.search(r'type: "(\w+)"', layer).group(1) not in LEFT_OUT]
    layers.insert(0, f'  name: "data"\n  type: "HDF5Data"\n  top: "data"\n  top: "label"\n'
                     f'  hdf5_data_param {{ source: "{folder}/train.txt" batch_size: {batch} }}\n}}')
    path = folder / "net.prototxt"
    path.write_text("\nlayer {\n".join([head] + layers))
    (folder / "train.txt").write_text(f"{folder}/train.h5\n")
    return path


def write_solver(folder, iterations, rate, snapshot):
    (folder / "solver.prototxt").write_text(
        f'net: "{folder}/net.prototxt"\nbase_lr: {rate}\nlr_policy: "fixed"\nmomentum: {MOMENTUM}\n'
        f'weight_decay: {WEIGHT_DECAY}\nmax_iter: {iterations}\ndisplay: 1\n'
        f'snapshot_after_train: {"true" if snapshot else "false"}\nsnapshot_format: HDF5\n'
        f'snapshot_prefix: "{folder}/net"\n')


def initialize(name, kind, shape):
    """Weights of variance 1 / fan-in, so that losses start near log(classes); batch norm's scale near 1; biases small but not zero."""
    role = name.rsplit("/", 1)[1]
    if role == "bias":
        return torch.randn(shape) * 0.01
    if kind == "Scale":
        return 1 + 0.1 * torch.randn(shape)
    return torch.randn(shape) * (shape[0] / torch.Size(shape).numel()) ** 0.5


def datasets(parameters):
    """(name, Caffe's dataset data/LAYER/INDEX) of each parameter."""
    count = {}
    for name in parameters:
        layer = name.rsplit("/", 1)[0]
        index = count.get(layer, 0)
        yield name, f"data/{layer}/{index}"
        count[layer] = index + 1


def write_weights(path, parameters):
    """Layers without learned parameters are left out."""
    with h5py.File(path, "w") as file:
        for name, dataset in datasets(parameters):
            file.create_dataset(dataset, data=parameters[name].detach().float().numpy())


def torch_losses(net, data, labels, batch, rate):
    """The loss of each batch, with one update after it."""
    history, losses = {}, []
    for begin in range(0, len(data), batch):
        _, loss = net.forward(data=data[begin:begin + batch], label=labels[begin:begin + batch])
        losses.append(loss.item())
        loss.backward()
        with torch.no_grad():
            for name, w in net.parameters.items():
                lr_mult, decay_mult = net.multipliers[name]
                step = rate * lr_mult * (w.grad + WEIGHT_DECAY * decay_mult * w)
                history[name] = MOMENTUM * history[name] + step if name in history else step
                w -= history[name]
                w.grad = None
    return losses


def torch_changes(path, start, dtype, data, labels):
    """How one iteration at UPDATE_RATE changes the weights."""
    net = CaffeNet(path, initialize=lambda parameter, kind, shape: start[parameter].clone().to(dtype))
    torch_losses(net, data.to(dtype), labels, len(data), UPDATE_RATE)
    return {name: values.detach() - start[name] for name, values in net.parameters.items()}


def norm_of(values):
    return sum(torch.linalg.vector_norm(part, dtype=torch.float64) ** 2 for part in values).sqrt().item()


def cortado_changes(path, start, folder, arguments):
    write_solver(folder, 1, UPDATE_RATE, snapshot=True)
    cortado_losses(arguments.cortado, folder, arguments.threads)
    with h5py.File(folder / "net_iter_1.caffemodel.h5") as file:
        return {parameter: torch.from_numpy(file[dataset][()]) - start[parameter]
                for parameter, dataset in datasets(start)}


def difference_of(ours, theirs):
    return norm_of(ours[key] - theirs[key] for key in theirs) / norm_of(theirs.values())


def cortado_losses(program, folder, threads):
    log = folder / "log.jsonl"
    command = [program, "train", "--solver", folder / "solver.prototxt", "--weights", folder / "weights.h5",
               "--log", log, "--threads", str(threads)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} failed ({result.returncode}): {result.stderr.strip()}")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return [line["loss"] for line in lines if "lr" in line]  # the lines of iterations


def compare(name, iterations, folder, arguments):
    """The largest relative differences of one net's losses, and of its first update."""
    torch.manual_seed(2)
    batch, extent, rate = NETS[name]
    path = write_model(name, batch, folder)
    data = torch.randn(iterations * batch, 3, extent, extent)
    labels = torch.randint(1000, (iterations * batch,))

    net = CaffeNet(path, initialize=initialize)
    with torch.no_grad():
        net.forward(data=data[:batch], label=labels[:batch])  # makes the parameters
    start = {parameter: values.detach().clone() for parameter, values in net.parameters.items()}
    expected = torch_losses(net, data, labels, batch, rate)

    if arguments.cortado:
        write_solver(folder, iterations, rate, snapshot=False)
        write_weights(folder / "weights.h5", start)
        with h5py.File(folder / "train.h5", "w") as file:
            file.create_dataset("data", data=data.numpy())
            file.create_dataset("label", data=labels.float().numpy())
        losses = cortado_losses(arguments.cortado, folder, arguments.threads)
        changes = cortado_changes(path, start, folder, arguments)
    else:
        changes = torch_changes(path, start, torch.float64, data[:batch], labels[:batch])
        exact = CaffeNet(path, initialize=lambda parameter, kind, shape: start[parameter].double())
        losses = torch_losses(exact, data.double(), labels, batch, rate)
    update = difference_of(changes, torch_changes(path, start, torch.float32, data[:batch], labels[:batch]))
    print(f"  {name}: the changes of an update differ by {update:.1e}")
    if len(losses) != len(expected):
        raise RuntimeError(f"{name}: {len(losses)} losses where PyTorch has {len(expected)}")
    for number, (ours, theirs) in enumerate(zip(losses, expected)):
        print(f"  {name} iteration {number}: {ours:.7f}, PyTorch {theirs:.7f}", flush=True)
    return max(abs(ours - theirs) / abs(theirs) for ours, theirs in zip(losses, expected)), update


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cortado", help="the program; without it, PyTorch in single against double precision")
    parser.add_argument("--models", nargs="+", choices=NETS, default=list(NETS))
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", help="folder for the files that are written (default: one that is removed)")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)

    failures = 0
    for name in arguments.models:
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(arguments.keep or temporary).resolve() / name
            folder.mkdir(parents=True, exist_ok=True)
            difference, update = compare(name, arguments.iterations, folder, arguments)
        good = difference <= arguments.tolerance and update <= UPDATE_TOLERANCE[name]  # false for NaN
        print(f"{'' if good else 'FAILED: '}{name}: largest relative difference of {arguments.iterations} losses "
              f"{difference:.1e}", flush=True)
        failures += not good
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
