"""pycaffe's Net."""

import weakref
from collections import OrderedDict
from itertools import zip_longest

import numpy as np

from .. import _cortado
from . import settings
from .layer import by_import
from .proto import caffe_pb2
from .window import Pane, everywhere


def numbers_as_shape(shape):
    return tuple(int(extent) for extent in (shape[0] if len(shape) == 1 and np.ndim(shape[0]) == 1 else shape))


class Blob:
    """Values and gradients of a blob or of a parameter: `data` and `diff` are live arrays in the order N, C, H, W."""

    def __init__(self, data, diff, shape, reshape):
        self._data, self._diff, self._shape, self._reshape = data, diff, shape, reshape

    @property
    def data(self):
        return self._data()

    @property
    def diff(self):
        return self._diff()

    @property
    def shape(self):
        return self._shape()

    @property
    def count(self):
        return int(np.prod(self.shape))

    def _legacy(self, axis):
        if len(self.shape) > 4:
            raise _cortado.UserError(f"a blob of {len(self.shape)} axes has no num, channels, height and width; use shape")
        return self.shape[axis] if axis < len(self.shape) else 1

    num = property(lambda self: self._legacy(0))
    channels = property(lambda self: self._legacy(1))
    height = property(lambda self: self._legacy(2))
    width = property(lambda self: self._legacy(3))

    def reshape(self, *shape):
        """Gives an input another shape; the blobs after it follow."""
        self._reshape(numbers_as_shape(shape))


class Layer:
    """Type and parameters of a layer."""

    def __init__(self, layer_type, blobs):
        self.type, self.blobs = layer_type, blobs


class State:
    """What a net and its blobs share. It does not know the blobs, so that a net ends with its last reference."""

    def __init__(self, net):
        self.net = net
        self.windows = weakref.WeakSet()
        self.wanted = {}  # shapes of inputs that do not fit yet
        self.staged = {}  # their values
        self.panes = weakref.WeakSet()  # of blobs

    def shape(self, name):
        return self.wanted.get(name) or self.net.shape(name)

    def want(self, name, shape):
        """Gives an input another shape, now or when others fit, too."""
        if shape == tuple(self.shape(name)):
            return
        if name not in self.net.inputs:
            raise _cortado.UserError(f"blob '{name}' gets its shape from the layers before it; reshape an input")
        self.wanted[name] = shape
        self.staged.pop(name, None)  # of a shape that did not fit
        try:
            self.apply_shapes()
        except _cortado.UserError:  # another input may follow; forward() says what is wrong
            self.staged[name] = np.zeros(shape, np.float32)

    def apply_shapes(self):
        if not self.wanted:
            return
        for window in self.windows:
            window.push()
        self.net.reshape(self.wanted)
        for window in self.windows:
            window.detach()
        self.windows.clear()
        for pane in self.panes:
            pane.forget()
        self.wanted = {}
        staged, self.staged = self.staged, {}
        for name, values in staged.items():
            self.net.set_values(name, values)

    def push(self):
        """Before the net runs: gives it what was written."""
        for window in [*self.windows, *everywhere]:
            window.push()
        self.apply_shapes()

    def pull(self):
        """After it has run."""
        for window in [*self.windows, *everywhere]:
            window.pull()

    def blob(self, name):
        def pane(read, write):
            made = Pane(lambda: self.shape(name), lambda out: read(name, out), lambda values: write(name, values), self.windows)
            self.panes.add(made)
            return made

        data = pane(self.net.values, self.net.set_values)
        diff = pane(self.net.gradient, self.net.set_gradient)
        return Blob(
            lambda: self.staged[name] if name in self.staged else data.array(),
            lambda: np.zeros_like(self.staged[name]) if name in self.staged else diff.array(),
            lambda: self.shape(name),
            lambda shape: self.want(name, shape),
        )

    def parameter(self, name, shape):
        def pane(read, write):
            return Pane(lambda: shape, lambda out: read(name, out), lambda values: write(name, values), everywhere)

        def refuse(wanted):
            if wanted != shape:
                raise _cortado.UserError(f"parameter '{name}' has the shape {shape}; {wanted} would not fit its layer")

        data = pane(self.net.parameter, self.net.set_parameter)
        diff = pane(self.net.parameter_gradient, self.net.set_parameter_gradient)
        return Blob(data.array, diff.array, lambda: shape, refuse)


class Net:
    """Net(file, phase, level=0, stages=None, weights=None), or Net(file, weights, phase)."""

    def __init__(self, network_file, *arguments, **options):
        arguments = list(arguments)
        if arguments and isinstance(arguments[0], (str, bytes)):
            options["weights"] = arguments.pop(0)
        for name, value in zip(("phase", "level", "stages", "weights"), arguments):
            options[name] = value
        unknown = set(options) - {"phase", "level", "stages", "weights"}
        if unknown or "phase" not in options or len(arguments) > 4:
            raise TypeError("give Net(file, phase, level=0, stages=None, weights=None) or Net(file, weights, phase)")
        phase = _cortado.Phase.train if options["phase"] == caffe_pb2.TRAIN else _cortado.Phase.test
        network = _cortado.Network.from_file(
            _text(network_file),
            phase=phase,
            level=options.get("level", 0),
            stages=list(options.get("stages") or []),
            layers=by_import,
        )
        seed = {} if settings.seed is None else {"seed": settings.seed}
        self._open(_cortado.Net(network, **seed))
        if options.get("weights"):
            self.copy_from(options["weights"])

    @classmethod
    def _of(cls, net):
        made = cls.__new__(cls)
        made._open(net)
        return made

    def _open(self, net):
        self._net, self._state = net, State(net)
        self._hooks = {name: [] for name in ("before_forward", "after_forward", "before_backward", "after_backward")}
        rows = net.network.layers()
        self._layer_names = [row["name"] for row in rows]
        self.top_names = OrderedDict((row["name"], row["outputs"]) for row in rows)
        self.bottom_names = OrderedDict((row["name"], row["inputs"]) for row in rows)
        self.inputs, self.outputs = net.inputs, net.outputs
        self.blobs = OrderedDict((name, self._state.blob(name)) for name in net.blobs)
        weights = {name: weight for row in rows for name, weight in zip(row["outputs"], row["loss_weights"])}
        self.blob_loss_weights = OrderedDict((name, weights[name]) for name in self.blobs)
        blobs = {name: self._state.parameter(name, shape) for name, shape in net.network.parameters().items()}
        self.layers = [Layer(row["type"], [blobs[name] for name in row["parameters"]]) for row in rows]
        self.layer_dict = OrderedDict(zip(self._layer_names, self.layers))
        self.params = OrderedDict((name, layer.blobs) for name, layer in self.layer_dict.items() if layer.blobs)

    def reshape(self):
        """Lets the shapes of inputs reach all blobs. It happens by itself, too, where they fit."""
        self._state.apply_shapes()

    # Running.

    def _run(self, compute, start, end, order, before, after):
        """Computes from `start` to `end`; layer by layer where somebody is to be called between."""
        for layer in (start, end):
            if layer and layer not in self.top_names:
                raise _cortado.UserError(f"the net has no layer '{layer}'")
        self._state.push()
        if not before and not after:
            compute(start or "", end or "")
            self._state.pull()
            return
        for layer in order[order.index(start) if start else 0 : order.index(end) + 1 if end else None]:
            number = self._layer_names.index(layer)
            for hook in before:
                hook(number)
            self._state.push()
            compute(layer, layer)
            self._state.pull()
            for hook in after:
                hook(number)
        self._state.push()

    def before_forward(self, hook):
        """Calls hook(number of the layer) before each layer that forward() computes."""
        self._hooks["before_forward"].append(hook)

    def after_forward(self, hook):
        """The same after it."""
        self._hooks["after_forward"].append(hook)

    def before_backward(self, hook):
        """Calls hook(number of the layer) before each layer that backward() computes."""
        self._hooks["before_backward"].append(hook)

    def after_backward(self, hook):
        """The same after it."""
        self._hooks["after_backward"].append(hook)

    def _set(self, given, wanted, of, what):
        if set(given) != set(wanted):
            raise _cortado.UserError(f"{what} {sorted(given)} are given, the net's are {sorted(wanted)}; give one for each")
        for name, values in given.items():
            if len(values) != self.blobs[name].shape[0]:
                raise _cortado.UserError(
                    f"{what} '{name}' has {len(values)} samples, the net's batch {self.blobs[name].shape[0]}; reshape the blob, "
                    "or use forward_all"
                )
            getattr(self.blobs[name], of)[...] = values

    def forward(self, blobs=None, start=None, end=None, **inputs):
        """Computes the layers from `start` to `end`, over `inputs` where they are given (blob=array). Returns arrays of the
        outputs (with `end`: of its tops) and of `blobs`, by name; they are live, copy what you keep."""
        if inputs:
            self._set(inputs, self.inputs, "data", "input")
        self._run(self._net.forward, start, end, self._layer_names, self._hooks["before_forward"], self._hooks["after_forward"])
        tops = [name for name in self.top_names[end] if name in self.blobs] if end else self.outputs
        names = tops + list(blobs or [])
        return {name: self.blobs[name].data for name in names}

    def backward(self, diffs=None, start=None, end=None, **gradients):
        """Computes gradients from `start` back to `end`, from those of the outputs where they are given (blob=array).
        Returns arrays of the gradients of the inputs (with `end`: of its bottoms) and of `diffs`, by name."""
        if gradients:
            self._set(gradients, self.outputs, "diff", "gradient")
        names = self._layer_names[::-1]
        self._run(self._net.backward, start, end, names, self._hooks["before_backward"], self._hooks["after_backward"])
        names = (self.bottom_names[end] if end else self.inputs) + list(diffs or [])
        return {name: self.blobs[name].diff for name in names}

    def _batches(self, samples):
        """A list of batches, arrays by name; the last one is filled up with zeros. (A generator would turn the caller's
        StopIteration into a RuntimeError.)"""
        if not samples:
            raise _cortado.UserError(f"no arrays are given; give one for each input: {', '.join(self.inputs) or 'the net has none'}")
        size = self.blobs[next(iter(samples))].shape[0]
        count = len(next(iter(samples.values())))
        batches = []
        for begin in range(0, count, size):
            batch = {}
            for name, values in samples.items():
                rows = np.asarray(values[begin : begin + size])
                missing = np.zeros((size - len(rows),) + rows.shape[1:], rows.dtype)
                batch[name] = np.concatenate([rows, missing]) if len(missing) else rows
            batches.append(batch)
        return batches

    def forward_all(self, blobs=None, **inputs):
        """forward() over as many batches as the inputs fill. Returns arrays of all samples, by name;
        of a single number one for each batch."""
        rows = {name: [] for name in list(self.outputs) + list(blobs or [])}
        for batch in self._batches(inputs):
            for name, values in self.forward(blobs=blobs, **batch).items():
                rows[name].extend(np.atleast_1d(values).copy())
        count = len(next(iter(inputs.values())))
        return {name: np.asarray(values)[:count] for name, values in rows.items()}

    def forward_backward_all(self, blobs=None, diffs=None, **both):
        """forward() and backward() over as many batches as the arrays fill: those of inputs by the inputs' names, those of
        output gradients by the outputs'. Returns (values, gradients) of all samples, by name."""
        inputs = {name: values for name, values in both.items() if name in self.inputs}
        gradients = {name: values for name, values in both.items() if name not in self.inputs}
        rows = {name: [] for name in list(self.outputs) + list(blobs or [])}
        gradient_rows = {name: [] for name in list(self.inputs) + list(diffs or [])}
        backward_batches = self._batches(gradients) if gradients else ()
        for batch, given in zip_longest(self._batches(inputs), backward_batches, fillvalue={}):
            for name, values in self.forward(blobs=blobs, **batch).items():
                rows[name].extend(np.atleast_1d(values).copy())
            for name, values in self.backward(diffs=diffs, **given).items():
                gradient_rows[name].extend(np.atleast_1d(values).copy())
        count = len(next(iter(inputs.values())))
        return (
            {name: np.asarray(values)[:count] for name, values in rows.items()},
            {name: np.asarray(values)[:count] for name, values in gradient_rows.items()},
        )

    def set_input_arrays(self, data, labels):
        """Gives a MemoryData layer its samples: float32, C-contiguous, whole batches. They are read where they lie."""
        memory = [row for row in self._net.network.layers() if row["type"] == "MemoryData"]
        if len(memory) != 1:
            raise _cortado.UserError(f"set_input_arrays: the net has {len(memory)} MemoryData layers; it needs one")
        batch = self.blobs[memory[0]["outputs"][0]].shape
        if data.dtype != np.float32 or labels.dtype != np.float32:
            raise TypeError("set_input_arrays: give arrays of float32")
        if data.shape[1:] != tuple(batch[1:]) or len(data) != len(labels) or len(data) % batch[0] != 0:
            raise _cortado.UserError(
                f"set_input_arrays: data of {data.shape} and {len(labels)} labels; give whole batches of {tuple(batch)}"
            )
        feed = _cortado.Data()
        feed.arrays(memory[0]["name"], [data, labels.reshape(len(labels))])
        self._net.feed(feed)

    # Parameters.

    def clear_param_diffs(self):
        """Makes the gradients of parameters zeros; backward() adds to them."""
        for window in everywhere:
            window.push()
        self._net.clear_parameter_gradients()
        self._state.pull()

    def _exchanged(self, action):
        self._state.push()
        result = action()
        self._state.pull()
        return result

    def copy_from(self, path):
        """Reads weights (.caffemodel, .h5, .safetensors) into layers of the same names."""
        self._exchanged(lambda: self._net.load_weights(_text(path)))

    def load_hdf5(self, path):
        """The same of Caffe's HDF5."""
        self.copy_from(path)

    def share_with(self, other):
        """From now on, layers of the same names have the parameters of `other`."""
        other._state.push()
        self._exchanged(lambda: self._net.share_with(other._net))

    def save(self, path):
        """Writes a .caffemodel."""
        self._exchanged(lambda: self._net.save_weights(_text(path), _cortado.Net.WeightsFormat.caffemodel))

    def save_hdf5(self, path):
        """Writes Caffe's HDF5."""
        self._exchanged(lambda: self._net.save_weights(_text(path), _cortado.Net.WeightsFormat.hdf5))


def _text(path):
    return path.decode() if isinstance(path, bytes) else str(path)
