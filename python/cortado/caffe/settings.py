"""What holds for all nets and solvers made from now on."""

from .. import _cortado
from .._cortado import UserError

seed = None  # of set_random_seed; None: a net's own
_device = 0  # of set_device


def set_random_seed(value):
    """Seed of fillers, dropout and the order of data, of nets and solvers made from now on."""
    global seed
    seed = int(value)


def set_mode_cpu():
    """Does nothing: nets and solvers of this package compute on the processor."""


def set_mode_gpu():
    """Raises UserError: there is no GPU, or nets whose values are open cannot compute on it."""
    _cortado.check_device(f"gpu:{_device}")
    raise UserError("set_mode_gpu: nets and solvers of cortado.caffe keep their values open, which needs the processor; "
                    f"cortado.Trainer(solver, device='gpu:{_device}') trains on the GPU")


def set_device(device):
    """Names the GPU that set_mode_gpu() means. 0 is always taken: programs name it on processors, too."""
    global _device
    if device != 0:
        _cortado.check_device(f"gpu:{int(device)}")
    _device = int(device)
