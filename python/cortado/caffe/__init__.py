"""pycaffe's names over Cortado: `import cortado.caffe as caffe`.

docs/reference/python.md lists what is there, what differs from pycaffe, and what is not there.
"""

import sys

from .. import layer_types as _layer_types
from .proto.caffe_pb2 import TEST, TRAIN
from . import draw, io, proto
from .classifier import Classifier
from .detector import Detector
from .layer import Layer
from .net import Net
from .net_spec import NetSpec, layers, params, to_proto
from .settings import set_device, set_mode_cpu, set_mode_gpu, set_random_seed
from .solver import (
    AdaDeltaSolver,
    AdaGradSolver,
    AdamSolver,
    NesterovSolver,
    RMSPropSolver,
    SGDSolver,
    get_solver,
)


def layer_type_list():
    """Types of layers that a net may have."""
    return sorted([*_layer_types(), "Python"])


__all__ = [
    "AdaDeltaSolver",
    "AdaGradSolver",
    "AdamSolver",
    "Classifier",
    "Detector",
    "Layer",
    "Net",
    "NesterovSolver",
    "NetSpec",
    "RMSPropSolver",
    "SGDSolver",
    "TEST",
    "TRAIN",
    "as_caffe",
    "draw",
    "get_solver",
    "io",
    "layer_type_list",
    "layers",
    "params",
    "proto",
    "set_device",
    "set_mode_cpu",
    "set_mode_gpu",
    "set_random_seed",
    "to_proto",
]


def as_caffe():
    """Lets this process import the package and its modules as `caffe`."""
    for name, module in list(sys.modules.items()):
        if name == __name__ or name.startswith(__name__ + "."):
            sys.modules["caffe" + name[len(__name__) :]] = module
