"""Layers that Python computes: `type: "Python"` in a model file."""

import importlib

from .. import _cortado
from .proto import caffe_pb2


class Blobs(list):
    """Parameters of a layer."""

    def add_blob(self, *shape):
        """Adds a parameter of zeros; the solver learns it, by the file's `param`."""
        self.append(_cortado.LayerTensor(*shape))


class Layer:
    """Derive from it. `bottom`, `top` and `self.blobs` are lists of tensors with `data`, `diff`, `shape` and reshape().

    param_str and phase are attributes from setup() on.
    """

    param_str = ""

    def __init__(self, param=None):
        self.blobs = Blobs()

    def setup(self, bottom, top):
        """Called once: checks the bottoms, adds parameters."""

    def reshape(self, bottom, top):
        """Gives the tops their shapes; called before each forward(), too, when they must be the same as at first."""

    def forward(self, bottom, top):
        """Computes the tops' data."""
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def backward(self, top, propagate_down, bottom):
        """Computes the diffs of those bottoms that propagate_down names, and of self.blobs, whose diffs are zero before."""
        raise NotImplementedError(f"{type(self).__name__} has no backward()")


def by_import(text):
    """The layer that a model file names: a class of a module that can be imported."""
    try:
        module = importlib.import_module(text["module"])
    except ModuleNotFoundError as error:
        if not f"{text['module']}.".startswith(f"{error.name}."):
            raise
        raise _cortado.UserError(f"layer '{text['name']}': there is no module '{text['module']}' to import; put its folder on sys.path") from None
    if not hasattr(module, text["layer"]):
        raise _cortado.UserError(f"layer '{text['name']}': module '{text['module']}' has no class '{text['layer']}'")
    layer = getattr(module, text["layer"])(text)
    if not hasattr(layer, "blobs"):  # its __init__ does not call Layer's
        layer.blobs = Blobs()
    layer.param_str = text["param_str"]
    layer.phase = caffe_pb2.TRAIN if text["phase"] == _cortado.Phase.train else caffe_pb2.TEST
    return layer
