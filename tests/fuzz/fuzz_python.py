#!/usr/bin/env python3
"""Calls everything that the Python package has with arguments that fit, that nearly fit, and that do not.

    fuzz_python.py SECONDS [SEED]        with the package on PYTHONPATH (scripts/fuzz.sh: built with AddressSanitizer)

Processes make random calls one after the other. Whatever is given, a call returns or raises a TypeError, a ValueError
(UserError is one) or another of Python's own exceptions. A signal, what a sanitizer finds, an InternalError or a
RuntimeError, and a call without an end are faults: the seed of the process and its last calls are printed, and
`fuzz_python.py --child SEED` makes them again.
"""

import faulthandler
import inspect
import os
import random
import re
import subprocess
import sys
import tempfile
import time

CALLS = 400  # of a process
LIMIT = 120  # seconds that one may take, which no process comes near: a hang

NET = """name: "small"
layer { name: "data" type: "Input" top: "data" top: "label" input_param { shape { dim: 4 dim: 2 dim: 6 dim: 6 } shape { dim: 4 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1" convolution_param { num_output: 3 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1" pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "pool1" top: "ip" inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
SOLVER = 'net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 3 snapshot_prefix: "s" random_seed: 1\n'
MACHINE = '{"name": "m", "devices": [{"peak_flops": 1e12, "memory_bandwidth": 1e11}]}'
NAMES = ["data", "label", "conv1", "pool1", "ip", "loss", "conv1/weight", "conv1/bias", "ip/weight", "relu1", "", "x", "layer-wise-p100", "data\0"]
FILES = ["net.prototxt", "solver.prototxt", "w.caffemodel", "w.safetensors", "w.h5", "none", "no/where", "s_iter_1.solverstate", "n" * 5000]
WORDS = ["f32", "bf16", "model", "auto", "tree", "2x6x6", "0x0", "n", "devices=1..2", "batch=4,8", "reference", "\u00e9", "1e999", "-1", "max_iter"]


def texts(draw):
    """A text that one of the readers knows, in part with a piece cut out, doubled or replaced."""
    text = draw.choice([NET, SOLVER, MACHINE, "{}", "[", "layer {"])
    if draw.random() < 0.6:
        begin = draw.randrange(len(text))
        end = min(len(text), begin + draw.randrange(1, 20))
        text = text[:begin] + draw.choice(["", text[begin:end] * 2, "999999999999", '"', "-1", "}", "\0"]) + text[end:]
    return text


def array(draw, np):
    shape = draw.choice([(), (0,), (4,), (4, 2, 6, 6), (3, 2, 3, 3), (3,), (5, 12), (5,), (1, 2, 3), (4, 2, 0, 6), (4, 5)])
    kind = draw.choice([np.float32] * 6 + [np.float64, np.int64, np.uint8, bool, complex, object])
    values = np.zeros(shape, kind) if kind is object else (np.random.default_rng(draw.randrange(9)).uniform(-2, 3, shape)).astype(kind)
    if kind is np.float32 and draw.random() < 0.2:
        values = np.full(shape, draw.choice([np.nan, np.inf, 1e38, -1]), np.float32)
    way = draw.random()
    if way < 0.1:
        values = values.T
    elif way < 0.2 and values.ndim:
        values = values[::-1]
    elif way < 0.3:
        values.flags.writeable = False
    elif way < 0.4:
        values = np.asfortranarray(values)
    return values


# Parameters that say how much is computed: a large one would take for ever.
BOUNDED = ("threads", "reader_threads", "iterations", "iters", "batch", "test_batch", "samples", "devices", "frontier_points", "most_simulated")

# Methods of protobuf's messages that end the process when a message is merged into itself.
OF_PROTOBUF = ("MergeFrom", "CopyFrom")


class Fuzz:
    """One process: objects made so far, and the next call."""

    def __init__(self, seed):
        import numpy as np

        import cortado
        import cortado.caffe as caffe

        self.draw, self.np, self.cortado, self.caffe = random.Random(seed), np, cortado, caffe
        self.held = []
        for name, text in (("net.prototxt", NET), ("solver.prototxt", SOLVER)):
            with open(name, "w") as file:
                file.write(text)
        network = cortado.Network.from_text(NET)
        net = caffe.Net("net.prototxt", caffe.TEST)
        net.save("w.caffemodel")
        net.save_hdf5("w.h5")
        trained = self.solver(network)
        data = cortado.Data()
        data.arrays("data", [np.zeros((4, 2, 6, 6), np.float32), np.zeros(4, np.float32)])
        machine = cortado.Machine("layer-wise-p100").first(2)
        self.classes = [getattr(cortado, name) for name in cortado.__all__ if inspect.isclass(getattr(cortado, name))]
        self.functions = [cortado.plan, cortado.simulate, cortado.sweep, cortado.layer_types, *self.static(), *self.pycaffes()]
        self.held = [network, net, trained, data, machine, cortado.Trainer(trained, data), cortado.Net(network), cortado.Strategy("data"),
                     caffe.NetSpec(), caffe.io.Transformer({"data": (1, 2, 6, 6)}), caffe.proto.caffe_pb2.NetParameter(), caffe.SGDSolver("solver.prototxt")]

    def solver(self, network):
        return self.cortado.Solver(network, base_lr=0.01, max_iter=3, snapshot_prefix="t")

    def static(self):
        found = []
        for owner in self.classes:
            found.append(owner)
            found += [getattr(owner, name) for name in ("from_text", "from_file", "built_in", "ready") if hasattr(owner, name)]
        return found

    def pycaffes(self):
        caffe = self.caffe
        functions = [getattr(caffe.io, name) for name in dir(caffe.io) if not name.startswith("_") and inspect.isfunction(getattr(caffe.io, name))]
        return functions + [caffe.Net, caffe.get_solver, caffe.AdamSolver, caffe.Classifier, caffe.Detector, caffe.set_device, caffe.set_mode_gpu,
                            caffe.set_random_seed, caffe.layer_type_list, caffe.to_proto, caffe.draw.draw_net, caffe.layers.Convolution, caffe.layers.Data,
                            caffe.io.Transformer]

    def function(self):
        """One that observes, feeds or makes layers: with results and exceptions of any kind."""
        result, fails = self.value(1), self.draw.random() < 0.3

        def call(*arguments, **options):
            if fails:
                raise self.draw.choice([ValueError, KeyError, StopIteration, ZeroDivisionError, MemoryError])("of the caller")
            for argument in arguments:
                if isinstance(argument, dict) and "tops" in argument:
                    for top in argument["tops"].values():
                        top[...] = 1
            return result

        return call

    def value(self, depth=0, name=""):
        """Whatever; of a parameter called `name` what is bounded in time and memory."""
        draw = self.draw
        if name in BOUNDED:
            return draw.choice([0, 1, 2, 3, -1, -(2**31), 2**70, 1.5, None])
        kind = draw.randrange(14 if depth < 2 else 9)
        if kind == 0:
            return draw.choice([0, 1, 2, 3, 4, -1, 7, 2**31, 2**42, 2**63, -(2**63), 2**70])
        if kind == 1:
            return draw.choice([0.0, 0.5, -1.5, float("nan"), float("inf"), 1e308])
        if kind in (2, 3):
            return draw.choice(NAMES + WORDS)
        if kind == 4:
            return draw.choice(FILES)
        if kind == 5:
            return draw.choice([None, True, False, b"bytes", b"\xff", object(), ..., ValueError, draw.choice(list(self.cortado.Phase.__members__.values()))])
        if kind in (6, 7):
            return array(draw, self.np)
        if kind == 8:
            return texts(draw)
        if kind == 9:
            return [self.value(depth + 1) for _ in range(draw.randrange(4))]
        if kind == 10:
            return {draw.choice(NAMES): self.value(depth + 1) for _ in range(draw.randrange(3))}
        if kind == 11:
            return self.function()
        return draw.choice(self.held) if self.held else None

    def fitting(self, name, kind):
        """A value of the type that a signature says, or nearly."""
        draw = self.draw
        if draw.random() < 0.15:
            return self.value(name=name)
        for typed, wanted in (("Trainer", self.cortado.Trainer), ("Network", self.cortado.Network), ("Solver", self.cortado.Solver), ("Data", self.cortado.Data),
                              ("Machine", self.cortado.Machine), ("Strategy", self.cortado.Strategy), ("Net", self.cortado.Net)):
            if kind.endswith("." + typed):
                known = [one for one in self.held if isinstance(one, wanted)]
                return draw.choice(known) if known else None
        if "Phase" in kind or "Precision" in kind:
            return draw.choice(list((self.cortado.Phase if "Phase" in kind else self.cortado.Precision).__members__.values()))
        if "ndarray" in kind:
            return [array(draw, self.np) for _ in range(draw.randrange(3))] if "List" in kind else array(draw, self.np)
        if "Dict" in kind:
            return {draw.choice(NAMES): [draw.choice([1, 2, 4, 6, 0, -1, 2**42]) for _ in range(draw.randrange(5))] for _ in range(draw.randrange(1, 3))}
        if "List[str]" in kind:
            return [draw.choice(NAMES + WORDS) for _ in range(draw.randrange(3))]
        if "List[List" in kind:
            return [[draw.choice([1, 2, 6, 0, -1, 2**42]) for _ in range(draw.randrange(4))] for _ in range(draw.randrange(3))]
        if kind == "str":
            if name in ("path", "snapshot"):
                return draw.choice(FILES)
            return texts(draw) if name in ("text", "json") else draw.choice(NAMES + WORDS)
        if kind in ("int", "float", "bool"):
            return self.value(name=name) if name in BOUNDED else draw.choice([0, 1, 2, 3, -1, 2**40, True])
        if kind == "object":
            return self.function() if draw.random() < 0.7 else self.value()
        return self.value(name=name)

    def arguments(self, call):
        """By the signature of pybind11's text or of Python."""
        text = (call.__doc__ or "").split("\n")[0]
        if inspect.isclass(call) and call.__init__.__doc__:
            text = call.__init__.__doc__.split("\n")[0]
        positional, named = [], {}
        found = re.findall(r"(\w+): ([\w.\[\], ]+?)(?= =|, \w+:|, \*|\) ->)", text)
        if found:
            for name, kind in found:
                if name == "self":
                    continue
                if f"{name}: {kind} =" in text:
                    if self.draw.random() < 0.3:
                        named[name] = self.fitting(name, kind)
                else:
                    positional.append(self.fitting(name, kind))
        else:
            try:
                names = [name for name in inspect.signature(call).parameters if name != "self"]
            except (TypeError, ValueError):
                names = [""] * self.draw.randrange(3)
            positional = [self.value(name=name) for name in names[: self.draw.randrange(len(names) + 1)]]
        if self.draw.random() < 0.05:
            positional.append(self.value())
        return positional, named

    def target(self):
        """A function, or a method or property of an object at hand."""
        draw = self.draw
        if draw.random() < 0.3:
            return draw.choice(self.functions)
        owner = draw.choice(self.held)
        names = [name for name in dir(type(owner)) if not name.startswith("_") and name not in OF_PROTOBUF] + ["__len__", "__getitem__", "__repr__", "_repr_html_"]
        try:
            return getattr(owner, draw.choice(names))  # the values of properties, too
        except AttributeError:
            return draw.choice(self.functions)

    def step(self, told):
        call = self.target()
        if isinstance(call, dict) and call:  # pycaffe's blobs and params
            call = self.draw.choice(list(call.values()))
            call = call[0] if isinstance(call, list) and call else call
            what = self.draw.choice(["data", "diff", "reshape"])
            if what == "reshape" and hasattr(call, "reshape"):
                call = call.reshape
            elif hasattr(call, what) and isinstance(getattr(call, what), self.np.ndarray):
                getattr(call, what)[...] = self.draw.choice([0, 1, float("nan")])
                return
        if not callable(call):
            return
        positional, named = self.arguments(call)
        print(getattr(call, "__qualname__", call), [repr(v)[:80] for v in positional], {k: repr(v)[:80] for k, v in named.items()}, file=told, flush=True)
        result = call(*positional, **named)
        if result is not None and not isinstance(result, (int, float, str, bool)):
            self.held.append(result)
            if len(self.held) > 40:
                self.held.pop(self.draw.randrange(12, len(self.held)))


def child(seed):
    faulthandler.enable()
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    with open("calls", "w") as told:
        fuzz = Fuzz(seed)
        raised = 0
        for _ in range(CALLS):
            try:
                fuzz.step(told)
            except (fuzz.cortado.InternalError, RuntimeError) as fault:
                if isinstance(fault, (RecursionError, NotImplementedError)):
                    continue
                print(f"a fault: {fault!r}", file=sys.stderr)
                raise
            except Exception as error:  # noqa: BLE001: all of Python's own will do
                print("   ", repr(error)[:200], file=told, flush=True)
                raised += 1
        print(CALLS, raised)


def main():
    seconds, seed = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    begin, processes, calls, raised = time.monotonic(), 0, 0, 0
    while time.monotonic() - begin < seconds:
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            done = subprocess.run([sys.executable, "-B", os.path.abspath(__file__), "--child", str(seed)], cwd=folder, env=environment,
                                  capture_output=True, text=True, errors="replace", timeout=LIMIT * 5)
            if done.returncode != 0:
                with open(os.path.join(folder, "calls"), errors="replace") as told:
                    print("".join(told.readlines()[-6:]), done.stderr[-6000:], sep="\n")
                print(f"FAILED: the calls of seed {seed} end with {done.returncode}")
                return 1
        made, refused = map(int, done.stdout.split()[-2:])
        processes, calls, raised, seed = processes + 1, calls + made, raised + refused, seed + 1
    print(f"fuzz_python: {calls} calls in {processes} processes, {raised} of them refused; no fault in {time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(child(int(sys.argv[2])) if sys.argv[1] == "--child" else main())
