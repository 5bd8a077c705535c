"""Training."""

from collections.abc import MutableMapping

from . import _cortado


class Parameters(MutableMapping):
    """The parameters of a trainer by name ('conv1/weight'). Reading gives a copy, writing copies into the parameter."""

    def __init__(self, trainer):
        self._trainer = trainer
        self._shapes = trainer.network.parameters()

    def __getitem__(self, name):
        if name not in self._shapes:
            raise KeyError(name)
        return self._trainer.parameter(name)

    def __setitem__(self, name, values):
        self._trainer.set_parameter(name, values)

    def __delitem__(self, name):
        raise TypeError("the parameters of a network are fixed")

    def __iter__(self):
        return iter(self._shapes)

    def __len__(self):
        return len(self._shapes)


class Trainer(_cortado.Trainer):
    __doc__ = _cortado.Trainer.__doc__

    @property
    def parameters(self):
        """All parameters by name: reading copies out, writing copies in."""
        return Parameters(self)
