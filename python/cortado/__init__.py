"""Cortado in Python: read a net, train it on arrays, snapshot, plan, simulate.

The classes are those of the library (docs/reference/python.md). Shapes are in the order N, C, (D,) H, W; arrays are
float32. `cortado.caffe` has pycaffe's names.
"""

from ._cortado import (
    InternalError,
    Machine,
    Net,
    Network,
    PeerError,
    Phase,
    Plan,
    Precision,
    Simulation,
    Solver,
    Strategy,
    Sweep,
    UserError,
    layer_types,
    plan,
    simulate,
    sweep,
)
from . import pages as _pages
from .data import Data
from .trainer import Trainer

_pages.install(Network, Machine, Plan, Simulation, Sweep)

__all__ = [
    "Data",
    "InternalError",
    "Machine",
    "Net",
    "Network",
    "PeerError",
    "Phase",
    "Plan",
    "Precision",
    "Simulation",
    "Solver",
    "Strategy",
    "Sweep",
    "Trainer",
    "UserError",
    "layer_types",
    "plan",
    "simulate",
    "sweep",
]
