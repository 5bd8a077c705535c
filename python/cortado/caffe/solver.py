"""pycaffe's solvers."""

import logging
import weakref

from google.protobuf import text_format

from .. import _cortado
from . import settings
from .layer import by_import
from .net import Net
from .proto import caffe_pb2

log = logging.getLogger("cortado.caffe")


class Solver:
    """Trains by a solver file. `net` and `test_nets` are its nets, with its parameters, data and last batch.

    A line for each displayed iteration and each test goes to the logger "cortado.caffe". Snapshots are Caffe's files:
    .caffemodel and .solverstate, or with `snapshot_format: HDF5` their .h5.
    """

    type = None  # None: as the file says

    def __init__(self, solver_file):
        path = solver_file.decode() if isinstance(solver_file, bytes) else str(solver_file)
        solver = _cortado.Solver.from_file(path)
        self.param = caffe_pb2.SolverParameter()
        with open(path) as file:
            text_format.Parse(file.read(), self.param, allow_unknown_field=True)
        if self.type is not None:
            solver.set("type", self.type)
            self.param.type = self.type
        if settings.seed is not None and not self.param.random_seed >= 0:
            solver.set("random_seed", settings.seed)
        hdf5 = self.param.snapshot_format == caffe_pb2.SolverParameter.HDF5
        solver.override(snapshot_format="hdf5" if hdf5 else "caffe")
        self._trainer = _cortado.Trainer(solver, None, open_nets=True, layers=by_import, notice=log.warning)
        self.net = Net._of(self._trainer.net())
        self.test_nets = [Net._of(self._trainer.test_net(index)) for index in range(self._trainer.test_nets)]
        self._callbacks = []
        self._watch(weakref.ref(self))

    def _watch(self, solver):
        def begins(_):
            solver()._call(0)

        def gradients(_):
            solver()._call(1)

        self._trainer.observe(iteration=log_iteration, test=log_test, iteration_begins=begins, gradients=gradients)

    def _call(self, which):
        if not self._callbacks:
            return
        self.net._state.pull()
        for callback in self._callbacks:
            callback[which]()
        self.net._state.push()

    def _computed(self, compute):
        for net in [self.net, *self.test_nets]:
            net._state.push()
        try:
            return compute()
        finally:
            for net in [self.net, *self.test_nets]:
                net._state.pull()

    def step(self, iterations):
        """Trains so many iterations, with the tests and snapshots on the way that the file asks for."""
        self._computed(lambda: self._trainer.step(int(iterations)))

    def solve(self, resume_file=None):
        """Trains to the file's max_iter, from a snapshot where it is given."""
        if resume_file:
            self.restore(resume_file)
        self._computed(self._trainer.run)

    def restore(self, path):
        """Goes on from a snapshot: .solverstate, .solverstate.h5."""
        self._computed(lambda: self._trainer.restore(path.decode() if isinstance(path, bytes) else str(path)))

    def snapshot(self):
        """Writes a snapshot at the file's snapshot_prefix."""
        self._computed(self._trainer.snapshot)

    def apply_update(self):
        """Updates the parameters by the diffs that `net` has for them. It counts no iteration."""
        self._computed(self._trainer.update)

    def add_callback(self, on_start, on_gradients_ready):
        """Functions without arguments: called before each iteration, and before its update."""
        self._callbacks.append((on_start, on_gradients_ready))

    @property
    def iter(self):
        """Iterations done."""
        return self._trainer.iteration


def log_iteration(iteration):
    if iteration["display"]:
        log.info("Iteration %d, loss = %g", iteration["number"], iteration["smoothed_loss"])


def log_test(test):
    for number, output in enumerate(test["outputs"]):
        log.info("Iteration %d, test net output #%d: %s = %g", test["iteration"], number, output["name"], output["value"])


class SGDSolver(Solver):
    type = "SGD"


class NesterovSolver(Solver):
    type = "Nesterov"


class AdaGradSolver(Solver):
    type = "AdaGrad"


class RMSPropSolver(Solver):
    type = "RMSProp"


class AdaDeltaSolver(Solver):
    type = "AdaDelta"


class AdamSolver(Solver):
    type = "Adam"


def get_solver(solver_file):
    """The solver of the type that the file names."""
    return Solver(solver_file)
