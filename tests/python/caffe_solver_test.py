#!/usr/bin/env python3
"""cortado.caffe's solvers against PyTorch, numpy and the command."""

import os
import pathlib
import sys
import unittest

from support import LENET, Case, cross_entropy, lenet_by_numpy, np, samples, torch_or_skip

import cortado
import cortado.caffe as caffe

SOLVER = """net: "net.prototxt" base_lr: 0.05 lr_policy: "fixed" display: 1 max_iter: 6
test_iter: 1 test_interval: 3 snapshot_prefix: "net" random_seed: 3
"""


class SolverCase(Case):
    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        self.write("net.prototxt", LENET)

    def solver(self, make=caffe.get_solver, text=SOLVER):
        solver = make(self.write("solver.prototxt", text))
        for net in [solver.net, *solver.test_nets]:
            net.blobs["data"].data[...], net.blobs["label"].data[...] = samples()
        return solver

    def weights(self, net):
        names = ("weight", "bias")
        return {f"{layer}/{name}": blob.data.copy() for layer, blobs in net.params.items() for name, blob in zip(names, blobs)}


class Solvers(SolverCase):
    def losses_of_pytorch(self, weights, make):
        torch = torch_or_skip()
        functional = torch.nn.functional
        images, labels = map(torch.tensor, samples())
        weights = {name: torch.tensor(values, requires_grad=True) for name, values in weights.items()}
        optimizer = make(torch, weights.values())
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            conv = functional.conv2d(images, weights["conv1/weight"], weights["conv1/bias"])
            hidden = functional.linear(functional.max_pool2d(conv, 2).flatten(1), weights["ip1/weight"], weights["ip1/bias"])
            scores = functional.linear(hidden.relu(), weights["ip2/weight"], weights["ip2/bias"])
            loss = functional.cross_entropy(scores, labels.long())
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    def test_each_trains_as_pytorchs(self):
        cases = {
            caffe.SGDSolver: ("momentum: 0.9", lambda torch, w: torch.optim.SGD(w, 0.05, momentum=0.9)),
            caffe.NesterovSolver: ("momentum: 0.9", lambda torch, w: torch.optim.SGD(w, 0.05, momentum=0.9, nesterov=True)),
            caffe.AdaGradSolver: ("delta: 1e-8", lambda torch, w: torch.optim.Adagrad(w, 0.05, eps=1e-8)),
            caffe.RMSPropSolver: ("rms_decay: 0.9 delta: 1e-8", lambda torch, w: torch.optim.RMSprop(w, 0.05, alpha=0.9, eps=1e-8)),
            caffe.AdaDeltaSolver: ("momentum: 0.9 delta: 1e-6", lambda torch, w: torch.optim.Adadelta(w, 0.05, rho=0.9, eps=1e-6)),
            caffe.AdamSolver: (
                "momentum: 0.9 momentum2: 0.999 delta: 1e-8",
                lambda torch, w: torch.optim.Adam(w, 0.05, betas=(0.9, 0.999), eps=1e-8),
            ),
        }
        for make, (options, optimizer) in cases.items():
            with self.subTest(make.__name__):
                solver = self.solver(make, SOLVER + options)
                weights, losses = self.weights(solver.net), []
                for _ in range(5):
                    solver.step(1)
                    losses.append(float(solver.net.blobs["loss"].data))
                self.near(losses, self.losses_of_pytorch(weights, optimizer), 1e-3)
                self.assertEqual(solver.iter, 5)

    def test_get_solver_takes_the_files_type(self):
        text = SOLVER + 'type: "Adam" momentum: 0.9'
        plain, adam = self.solver(caffe.get_solver, text), self.solver(caffe.AdamSolver, text)
        plain.step(2)
        adam.step(2)
        self.same(plain.net.params["ip1"][0].data, adam.net.params["ip1"][0].data)
        self.assertEqual((plain.param.type, plain.param.max_iter, plain.param.display), ("Adam", 6, 1))


class Running(SolverCase):
    def test_solve_logs_tests_and_ends(self):
        solver = self.solver()
        with self.assertLogs("cortado.caffe", "INFO") as logged:
            solver.solve()
        self.assertEqual(solver.iter, 6)
        lines = [record.getMessage() for record in logged.records]
        self.assertEqual(sum(line.startswith("Iteration") and ", loss" in line for line in lines), 7)
        self.assertEqual(sum("test net output #0: accuracy" in line for line in lines), 3)

    def test_nets_share_weights(self):
        solver = self.solver()
        solver.step(4)
        (test,) = solver.test_nets
        test.forward()
        scores = lenet_by_numpy(samples()[0], self.weights(solver.net))
        self.near(test.blobs["ip2"].data, scores)
        self.near(test.blobs["loss"].data, cross_entropy(scores, samples()[1]))
        solver.net.params["ip2"][0].data[...] = 0
        solver.net.params["ip2"][1].data[...] = 0
        test.forward()
        self.near(test.blobs["loss"].data, np.log(4))
        before = solver.net.params["conv1"][0].data
        solver.step(2)
        self.same(before, solver.net.params["conv1"][0].data)  # the array lives

    def test_reads_what_was_written_each_step(self):
        solver = self.solver(text=SOLVER.replace("0.05", "0"))
        for scale in (1, 2):
            solver.net.blobs["data"].data[...] = scale * samples()[0]
            solver.step(1)
            scores = lenet_by_numpy(scale * samples()[0], self.weights(solver.net))
            self.near(solver.net.blobs["loss"].data, cross_entropy(scores, samples()[1]))

    def test_snapshots_are_caffes(self):
        whole = self.solver(text=SOLVER + "momentum: 0.9")
        whole.step(2)
        whole.snapshot()
        self.assertTrue(pathlib.Path("net_iter_2.caffemodel").exists())
        whole.step(2)
        resumed = self.solver(text=SOLVER + "momentum: 0.9")
        resumed.restore("net_iter_2.solverstate")
        self.assertEqual(resumed.iter, 2)
        resumed.step(2)
        self.near(resumed.net.params["ip1"][0].data, whole.net.params["ip1"][0].data, 1e-6)
        read = caffe.Net("net.prototxt", "net_iter_2.caffemodel", caffe.TEST)
        self.assertEqual(read.params["ip1"][0].shape, (16, 150))
        other = self.solver(text=SOLVER.replace('"net"', '"other"') + "snapshot_format: HDF5")
        other.step(1)
        other.snapshot()
        self.assertTrue(pathlib.Path("other_iter_1.solverstate.h5").exists())
        del whole  # one training at a time may write snapshots of a prefix
        last = self.solver(text=SOLVER + "momentum: 0.9")
        last.solve("net_iter_2.solverstate")
        self.assertEqual(last.iter, 6)

    def test_apply_update(self):
        solver = self.solver()
        solver.net.forward()
        solver.net.backward()
        before = solver.net.params["ip2"][0].data.copy()
        gradient = np.arange(64).reshape(4, 16) / 10
        solver.net.params["ip2"][0].diff[...] = gradient
        solver.apply_update()
        self.near(solver.net.params["ip2"][0].data, before - 0.05 * gradient)
        self.assertEqual(solver.iter, 0)

    def test_callbacks(self):
        solver, plain = self.solver(), self.solver()
        events = []

        def start():
            events.append("start")

        def ready():
            events.append("ready")
            solver.net.params["ip2"][0].diff[...] *= 2

        solver.add_callback(start, ready)
        before = plain.net.params["ip2"][0].data.copy()
        solver.step(1)
        plain.step(1)
        self.assertEqual(events, ["start", "ready"])
        self.near(solver.net.params["ip2"][0].data - before, 2 * (plain.net.params["ip2"][0].data - before), 1e-6)
        solver.step(2)
        self.assertEqual(events, ["start", "ready"] * 3)

    def test_trains_as_the_command(self):
        """A net with data of its own: the losses are those that the command logs."""
        data = """layer { name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param {
          shape { dim: 8 dim: 1 dim: 12 dim: 12 } shape { dim: 8 }
          data_filler { type: "gaussian" std: 1 } data_filler { type: "constant" value: 2 } } }"""
        self.write("net.prototxt", data + LENET[LENET.index('layer { name: "conv1"') :])
        path = self.write("solver.prototxt", SOLVER)
        solver = caffe.SGDSolver(path)
        solver.step(6)
        solver.net.save("python.caffemodel")
        self.command("train", "--solver", path)
        command, own = caffe.Net("net.prototxt", caffe.TRAIN), solver.net
        snapshot = next(file for file in self.folder.glob("net_iter_6.*") if file.suffix in (".caffemodel", ".safetensors"))
        command.copy_from(str(snapshot))
        self.near(command.params["ip1"][0].data, own.params["ip1"][0].data, 1e-4)

    def test_wrong_files(self):
        for text in ('net: "none.prototxt"', SOLVER + 'type: "None"'):
            with self.assertRaises(cortado.UserError):
                caffe.get_solver(self.write("wrong.prototxt", text))


if __name__ == "__main__":
    sys.exit(unittest.main())
