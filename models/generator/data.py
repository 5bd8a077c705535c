"""The data layers, losses and accuracies around a net's body, and the description of one model of the zoo."""

from dataclasses import dataclass, field, replace
from typing import Callable

from .net import Net
from .prototxt import Enum, text

HEADER = "# Written by models/generate.py; change the generator, not this file.\n"


@dataclass
class Dataset:
    """A pair of LMDBs, as paths relative to the folder that `cortado` is started in."""
    train: str
    test: str
    transform_train: dict
    transform_test: dict
    top_5: bool = False


MNIST = Dataset("examples/mnist/mnist_train_lmdb", "examples/mnist/mnist_test_lmdb",
                {"scale": 0.00390625}, {"scale": 0.00390625})

CIFAR10 = Dataset("examples/cifar10/cifar10_train_lmdb", "examples/cifar10/cifar10_test_lmdb",
                  {"mean_file": "examples/cifar10/mean.binaryproto"},
                  {"mean_file": "examples/cifar10/mean.binaryproto"})

CIFAR10_MIRRORED = replace(CIFAR10, transform_train={"mirror": True} | CIFAR10.transform_train)


def imagenet(crop):
    """Random crops and mirror images to train, centre crops to test, the mean colour (B, G, R) subtracted."""
    mean = [104, 117, 123]
    return Dataset("examples/imagenet/ilsvrc12_train_lmdb", "examples/imagenet/ilsvrc12_val_lmdb",
                   {"mirror": True, "crop_size": crop, "mean_value": mean},
                   {"mirror": False, "crop_size": crop, "mean_value": mean}, top_5=True)


@dataclass
class Model:
    """One folder of the zoo. `body(net)` adds the layers between blob `data` and the class scores it returns."""
    name: str
    title: str
    input_shape: list  # one sample's: channels, height, width
    body: Callable
    solver: dict
    dataset: Dataset
    train_batch: int
    test_batch: int
    comments: list = field(default_factory=list)

    def train_val(self):
        net = Net(self.title, deploy=False)
        data, batches = self.dataset, {"TRAIN": self.train_batch, "TEST": self.test_batch}
        for phase, source, transform in (("TRAIN", data.train, data.transform_train),
                                         ("TEST", data.test, data.transform_test)):
            net.phase_data(phase, "Data", transform_param=transform, data_param={
                "source": source, "batch_size": batches[phase], "backend": Enum("LMDB")})
        scores = self.body(net)
        net.accuracy(scores)
        if data.top_5:
            net.accuracy(scores, "accuracy_top5", top_k=5)
        net.loss(scores)
        return HEADER + net.text()

    def deploy(self):
        net = Net(self.title, deploy=True)
        net.input([1] + self.input_shape)
        net.softmax(self.body(net))
        return HEADER + net.text()

    def files(self):
        """{file name: text}"""
        return {"train_val.prototxt": self.train_val(), "deploy.prototxt": self.deploy(),
                "solver.prototxt": HEADER + self.solver_text()}

    def solver_text(self):
        comments = "".join(f"# {line}\n" for line in self.comments)
        folder = f"models/{self.name}"
        prefix = f"{folder}/{self.name}"
        return comments + text({"net": f"{folder}/train_val.prototxt"} | self.solver | {"snapshot_prefix": prefix})


def sgd(base_lr, policy, max_iter, *, test_iter, test_interval, weight_decay, momentum=0.9, iter_size=None, display=20,
        snapshot=10000):
    """A solver's fields; `policy` holds lr_policy and the fields that belong to it."""
    return {"test_iter": test_iter, "test_interval": test_interval, "base_lr": base_lr} | policy | {
        "max_iter": max_iter, "iter_size": iter_size, "momentum": momentum, "weight_decay": weight_decay,
        "display": display, "snapshot": snapshot}


def multistep(*values):
    return {"lr_policy": "multistep", "gamma": 0.1, "stepvalue": list(values)}


def step(gamma, size):
    return {"lr_policy": "step", "gamma": gamma, "stepsize": size}
