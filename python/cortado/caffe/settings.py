"""What holds for all nets and solvers made from now on."""

from .._cortado import UserError

seed = None  # of set_random_seed; None: a net's own


def set_random_seed(value):
    """Seed of fillers, dropout and the order of data, of nets and solvers made from now on."""
    global seed
    seed = int(value)


def set_mode_cpu():
    """Does nothing: everything is computed on the processor."""


def set_mode_gpu():
    raise UserError("set_mode_gpu: Cortado computes on processors; call set_mode_cpu(), or nothing")


def set_device(device):
    """Takes 0 alone: there is one device, the processor."""
    if device != 0:
        raise UserError(f"set_device({device}): there is one device, the processor; give 0")
