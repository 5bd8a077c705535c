#!/usr/bin/env python3
"""The package `cortado` against numpy, PyTorch and the command."""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import unittest
import weakref

from support import LENET, MODELS, Case, cross_entropy, lenet_by_numpy, np, samples, softmax, torch_or_skip

import cortado


def lenet_solver(prefix="", **options):
    said = {"base_lr": 0.05, "momentum": 0.9, "test_iter": 1, "snapshot_prefix": prefix, **options}
    return cortado.Solver(cortado.Network.from_text(LENET), **said)


def lenet_data(count=8):
    data = cortado.Data()
    data.arrays("data", samples(count))
    return data


class Networks(Case):
    def test_layers_and_shapes(self):
        net = cortado.Network.from_text(LENET)
        self.assertEqual(net.name, "small-lenet")
        self.assertEqual(net.batch, 8)
        self.assertEqual(net.tensor("pool1"), (8, 6, 5, 5))
        self.assertEqual([name for name, _ in net.tensors()], ["data", "label", "conv1", "pool1", "ip1", "ip1", "ip2", "loss"])
        self.assertEqual(net.parameters()["ip1/weight"], (16, 150))
        self.assertEqual(net.parameter_count, 6 * 9 + 6 + 16 * 150 + 16 + 64 + 4)
        conv = net.layers()[1]
        self.assertEqual((conv["type"], conv["inputs"], conv["parameters"]), ("Convolution", ["data"], ["conv1/weight", "conv1/bias"]))
        self.assertEqual(conv["forward_flops"], 8 * 6 * 100 * (2 * 9 + 1))
        self.assertEqual(net.with_batch(3).tensor("conv1"), (3, 6, 10, 10))
        self.assertIn("small-lenet", repr(net))

    def test_options(self):
        text = LENET.replace("include { phase: TEST }", 'include { stage: "look" }')
        types = lambda **options: [row["type"] for row in cortado.Network.from_text(text, **options).layers()]
        self.assertNotIn("Accuracy", types())
        self.assertIn("Accuracy", types(stages=["look"], phase=cortado.Phase.test))
        path = str(MODELS / "lenet/train_val.prototxt")
        net = cortado.Network.from_file(path, batch=5, input_shape="1x28x28", precision=cortado.Precision.bf16)
        self.assertEqual(net.tensor("data"), (5, 1, 28, 28))

    def test_warnings(self):
        text = LENET + 'layer { name: "x" type: "ReLU" bottom: "ip2" top: "x" relu_param { engine: CAFFE } }'
        self.assertIsInstance(cortado.Network.from_text(text).warnings(), list)

    def test_layer_types(self):
        self.assertIn("Convolution", cortado.layer_types())
        self.assertEqual(cortado.layer_types(), sorted(cortado.layer_types()))


class Errors(Case):
    def test_texts_are_those_of_the_command(self):
        path = self.write("net.prototxt", LENET.replace("num_output: 6", "num_outputs: 6"))
        with self.assertRaises(cortado.UserError) as raised:
            cortado.Network.from_file(path)
        self.assertIsInstance(raised.exception, ValueError)
        self.assertIn(str(raised.exception), self.command("show", "--model", path, fails=True))

    def test_unknown_names(self):
        trainer = cortado.Trainer(lenet_solver(), lenet_data())
        for call in (lambda: trainer.parameter("conv/weight"), lambda: trainer.tensor("loos"), lambda: cortado.Machine("none")):
            with self.assertRaises(cortado.UserError):
                call()
        with self.assertRaises(TypeError):
            lenet_solver(learning_rate=1)
        self.assertTrue(issubclass(cortado.PeerError, RuntimeError) and issubclass(cortado.InternalError, RuntimeError))


class Machines(Case):
    def test_machine(self):
        machine = cortado.Machine("layer-wise-p100")
        self.assertIn("layer-wise-p100", cortado.Machine.ready())
        self.assertEqual(machine.name, "layer-wise-p100")
        said = json.loads(machine.text())
        self.assertEqual(machine.devices, len(machine.table()))
        self.assertEqual(cortado.Machine.from_text(json.dumps(said)).table(), machine.table())
        self.assertEqual(machine.first(2).devices, 2)
        self.assertGreater(machine.nodes, 0)
        self.assertEqual(machine.device(0), machine.table()[0])
        self.assertIn("peak_flops", machine._repr_html_())
        with self.assertRaises(cortado.UserError):
            machine.device(1000)


class Plans(Case):
    def setUp(self):
        super().setUp()
        self.model = str(MODELS / "alexnet/train_val.prototxt")
        self.net = cortado.Network.from_file(self.model, batch=64, input_shape="3x227x227")

    def test_plan_is_that_of_the_command(self):
        plan = cortado.plan(self.net, "layer-wise-p100", devices=4)
        file = self.folder / "plan.json"
        self.command(
            "plan", "--model", self.model, "--machine", "layer-wise-p100", "--devices", 4, "--batch", 64, "--input-shape",
            "3x227x227", "--json", file,
        )  # fmt: skip
        told = json.loads(file.read_text())
        self.near(plan.seconds, told["cost_seconds"], 1e-9)
        self.assertEqual(json.loads(plan.json())["cost_seconds"], told["cost_seconds"])
        self.assertEqual(plan.optimal, plan.seconds <= plan.lower_bound_seconds * (1 + 1e-9))
        rows = {row["name"]: row for row in plan.layers()}
        self.assertIn("conv1", rows)
        parts = 1
        for degree in rows["conv1"]["configuration"]["degrees"].values():
            parts *= degree
        self.assertEqual(parts, max(1, len(rows["conv1"]["configuration"]["devices"])))
        self.assertIn("data", [row["name"] for row in plan.baselines()])
        for row in plan.baselines():
            if row["fits"]:
                self.assertGreaterEqual(row["seconds"], plan.seconds * (1 - 1e-9))
        self.assertEqual(plan.frontier(), [])
        self.assertGreater(plan.bytes, 0)
        self.assertGreater(plan.memory_bytes, 0)
        self.assertFalse(plan.limited_by_memory)
        self.assertIn("conv1", plan.text())
        self.assertEqual(str(plan), plan.text())
        self.assertIn("<html", plan.page())
        self.assertTrue(plan._repr_html_().startswith("<iframe srcdoc="))

    def test_options(self):
        plan = cortado.plan(self.net, "layer-wise-p100", devices=2, dimensions="n", frontier_points=3)
        for row in plan.layers():
            if not row["name"].startswith("conv"):
                continue
            self.assertLessEqual(set(row["configuration"]["degrees"]), {"n"})
        self.assertTrue(any(row["chosen"] for row in plan.frontier()))
        with self.assertRaises(cortado.UserError):
            cortado.plan(self.net, "layer-wise-p100", memory_bytes=1000)

    def test_sweep(self):
        sweep = cortado.sweep(self.net, "layer-wise-p100", ["devices=1..4", "batch=16/device"])
        points = sweep.points()
        self.assertEqual([(row["devices"], row["batch"]) for row in points], [(1, 16), (2, 32), (4, 64)])
        for row in points:
            self.near(row["images_per_second"], row["batch"] / row["seconds"], 1e-9)
        self.assertEqual(set(points[2]["twice_as_fast"]), {"group-4"})
        self.assertEqual(sweep.smallest()[0]["devices"], 1)
        self.assertEqual(len(json.loads(sweep.json())["points"]), 3)
        self.assertEqual(len(sweep.csv().splitlines()), 4)
        self.assertTrue(sweep._repr_html_().startswith("<iframe srcdoc="))
        with self.assertRaises(cortado.UserError):
            cortado.sweep(self.net, "layer-wise-p100", ["devices=32"])

    def test_simulation_is_that_of_the_command(self):
        machine = cortado.Machine("layer-wise-p100").first(2)
        simulation = cortado.simulate(self.net, "data", machine)
        told = self.command(
            "simulate", "--model", self.model, "--machine", "layer-wise-p100", "--devices", 2, "--batch", 64, "--input-shape",
            "3x227x227", "--strategy", "data",
        )  # fmt: skip
        self.assertIn(simulation.text().strip().split("\n")[-1].strip(), told)
        self.assertEqual(len(simulation.devices()), 2)
        busy = [step["end"] - step["begin"] for step in simulation.timeline() if (step["device"], step["lane"]) == (1, "compute")]
        self.near(sum(busy), simulation.devices()[1]["computing"])
        self.near(max(row["end"] for row in simulation.devices()), simulation.seconds)
        self.assertEqual({step["lane"] for step in simulation.timeline()}, {"compute", "communication"})
        self.assertGreater(simulation.bytes, 0)
        self.assertEqual(simulation.devices()[0]["exposed_communication"], simulation.exposed_communication)
        self.assertIn("traceEvents", json.loads(simulation.trace()))
        self.assertIn("<pre>", simulation._repr_html_())

    def test_strategies(self):
        self.assertIn("data", cortado.Strategy.built_in())
        data = cortado.Strategy("data")
        self.assertEqual(data.name, "data")
        text = data.with_schedule(gradient_chunks="one").text(self.net, 2)
        self.assertNotEqual(text, data.text(self.net, 2))
        self.assertEqual(cortado.Strategy.from_text(text).text(self.net, 2), text)
        for devices in (0, -1, 10001):
            with self.assertRaisesRegex(cortado.UserError, f"strategy 'data' for {devices} devices; give 1 to 10000"):
                data.text(self.net, devices)
        strategy = cortado.plan(self.net, "layer-wise-p100", devices=2).strategy()
        self.assertGreater(cortado.simulate(self.net, strategy, cortado.Machine("layer-wise-p100").first(2)).seconds, 0)


class Training(Case):
    def test_trains_as_pytorch(self):
        torch = torch_or_skip()
        images, labels = samples()
        trainer = cortado.Trainer(lenet_solver(weight_decay=0.01), lenet_data())
        weights = {name: torch.tensor(values, requires_grad=True) for name, values in trainer.parameters.items()}
        optimizer = torch.optim.SGD(weights.values(), lr=0.05, momentum=0.9, weight_decay=0.01)
        functional = torch.nn.functional
        for iteration in range(5):
            optimizer.zero_grad()
            conv = functional.conv2d(torch.tensor(images), weights["conv1/weight"], weights["conv1/bias"])
            hidden = functional.linear(functional.max_pool2d(conv, 2).flatten(1), weights["ip1/weight"], weights["ip1/bias"])
            scores = functional.linear(hidden.relu(), weights["ip2/weight"], weights["ip2/bias"])
            loss = functional.cross_entropy(scores, torch.tensor(labels).long())
            loss.backward()
            optimizer.step()
            self.assertTrue(trainer.step())
            self.near(trainer.loss, loss.item(), 1e-4)
            self.assertEqual(trainer.iteration, iteration + 1)
        for name, values in weights.items():
            self.near(trainer.parameter(name), values.detach().numpy(), 1e-4)

    def test_values(self):
        trainer = cortado.Trainer(lenet_solver(base_lr=0, momentum=0), lenet_data(), keep_tensors=True, threads=1)
        trainer.step()
        scores = lenet_by_numpy(samples()[0], trainer.parameters)
        self.near(trainer.tensor("ip2"), scores)
        gradient = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        gradient[np.arange(8), samples()[1].astype(int)] -= 1
        self.near(trainer.gradient("ip2"), gradient / 8)
        with self.assertRaises(cortado.UserError):
            cortado.Trainer(lenet_solver(), lenet_data()).tensor("conv1")

    def test_a_device_trains_as_the_processor(self):
        there = cortado.Trainer(lenet_solver(), lenet_data(), device="emulated", threads=1)
        here = cortado.Trainer(lenet_solver(), lenet_data(), threads=1)
        for trainer in (there, here):
            trainer.step(3)
        self.near(there.loss, here.loss, 1e-4)
        self.near(there.parameter("ip1/weight"), here.parameter("ip1/weight"), 1e-4)
        with self.assertRaisesRegex(cortado.UserError, "device gqu"):
            cortado.Trainer(lenet_solver(), lenet_data(), device="gqu")

    def test_parameters_are_copied_in_and_out(self):
        trainer = cortado.Trainer(lenet_solver(), lenet_data())
        self.assertEqual({name: values.shape for name, values in trainer.parameters.items()}, trainer.network.parameters())
        values = np.arange(96).reshape(16, 6)[:, ::2]  # converted, not contiguous
        with self.assertRaises(cortado.UserError):
            trainer.parameters["ip1/bias"] = values
        trainer.parameters["ip1/bias"] = np.arange(16)
        self.same(trainer.parameters["ip1/bias"], np.arange(16))
        with self.assertRaises(KeyError):
            trainer.parameters["none"]

    def test_tests_and_observers(self):
        trainer = cortado.Trainer(lenet_solver(str(self.folder / "net"), test_interval=2, snapshot=3), lenet_data())
        seen = {"iteration": [], "test": [], "snapshot": [], "begins": []}
        trainer.observe(
            iteration=seen["iteration"].append,
            test=seen["test"].append,
            snapshot=lambda *event: seen["snapshot"].append(event),
            iteration_begins=seen["begins"].append,
        )
        trainer.step(4)
        self.assertEqual([row["number"] for row in seen["iteration"]], [0, 1, 2, 3])
        self.assertEqual(seen["begins"], [0, 1, 2, 3])
        self.assertEqual([row["iteration"] for row in seen["test"]], [0, 2])
        self.assertEqual([iteration for iteration, _ in seen["snapshot"]], [3])
        self.assertTrue(os.path.exists(seen["snapshot"][0][1]))
        self.assertEqual(seen["iteration"][-1]["loss"], trainer.loss)
        self.assertEqual(seen["iteration"][-1]["samples"], 8)
        (test,) = trainer.test()
        values = {row["name"]: row["value"] for row in test["outputs"]}
        scores = lenet_by_numpy(samples()[0], trainer.parameters)
        self.near(values["loss"], cross_entropy(scores, samples()[1]), 1e-4)
        self.near(values["accuracy"], (scores.argmax(1) == samples()[1]).mean())
        self.assertEqual(trainer.skipped_records, 0)

    def test_run_ends_at_max_iter(self):
        trainer = cortado.Trainer(lenet_solver(max_iter=7), lenet_data())
        self.assertTrue(trainer.run())
        self.assertEqual(trainer.iteration, 7)

    def test_goes_on_from_a_snapshot(self):
        prefix = str(self.folder / "net")
        whole = cortado.Trainer(lenet_solver(prefix), lenet_data(24))
        whole.step(2)
        file = whole.snapshot()
        self.assertEqual(file, prefix + "_iter_2.safetensors")
        whole.step(2)
        resumed = cortado.Trainer(lenet_solver(prefix), lenet_data(24))
        self.assertEqual(resumed.restore(file), {"path": file, "fault": ""})
        resumed.step(2)
        for name, values in whole.parameters.items():
            self.same(resumed.parameter(name), values)
        started = cortado.Trainer(lenet_solver(), lenet_data())
        self.assertEqual(started.load_weights(file), {"of_network": [], "of_file": []})
        self.assertTrue(whole.snapshot(str(self.folder / "other")).startswith(str(self.folder / "other")))

    def test_solver_texts(self):
        text = 'base_lr: 0.5 lr_policy: "fixed" max_iter: 3 type: "AdaGrad"'
        solver = cortado.Solver.from_text(text, cortado.Network.from_text(LENET))
        solver.set("base_lr", 0.25).set("max_iter", 2).set("debug_info", True)
        trainer = cortado.Trainer(solver, lenet_data())
        rates = []
        trainer.observe(iteration=lambda row: rates.append(row["learning_rate"]))
        trainer.run()
        self.assertEqual(rates, [0.25, 0.25])
        net = self.write("net.prototxt", LENET)
        file = self.write("solver.prototxt", f'net: "{net}" ' + text)
        self.assertEqual(cortado.Trainer(cortado.Solver.from_file(file).override(batch=3), lenet_data()).network.batch, 3)
        self.assertIsInstance(cortado.Solver.from_text(f'net: "{net}" ' + text).warnings(), list)
        with self.assertRaises(cortado.UserError):
            solver.set("base_rl", 1)


class Feeding(Case):
    def losses(self, data, iterations=4):
        trainer = cortado.Trainer(lenet_solver(), data, threads=1)
        losses = []
        trainer.observe(iteration=lambda row: losses.append(row["loss"]))
        trainer.step(iterations)
        return losses

    def test_functions_and_iterables_feed_the_same(self):
        images, labels = samples(24)
        expected = cortado.Data()
        expected.arrays("data", [images, labels])
        expected = self.losses(expected)

        def write(request):
            rows = (np.arange(request["begin"], request["end"]) + request["number"] * request["batch"]) % 24
            request["tops"]["data"][...] = images[rows]
            request["tops"]["label"][...] = labels[rows]

        def give(request):
            rows = (np.arange(request["begin"], request["end"]) + request["number"] * request["batch"]) % 24
            return images[rows], labels[rows]

        for function in (write, give):
            data = cortado.Data()
            data.fill("data", function)
            self.assertEqual(self.losses(data), expected)
        batches = [(images[i : i + 8], labels[i : i + 8]) for i in (0, 8, 16)]
        data = cortado.Data()
        data.batches("data", batches)
        self.assertEqual(self.losses(data), expected)
        data = cortado.Data()
        data.batches("data", iter(batches))
        with self.assertRaises(cortado.UserError):
            self.losses(data)

    def test_arrays_are_read_where_they_lie(self):
        images, labels = samples()
        data = cortado.Data()
        data.arrays("data", [images, labels])
        trainer = cortado.Trainer(lenet_solver(base_lr=0), data, keep_tensors=True)
        trainer.step()
        images *= 3
        trainer.step(5)  # batches that were read ahead
        self.near(trainer.tensor("ip2"), lenet_by_numpy(images, trainer.parameters), 1e-4)

    def test_arrays_live_as_long_as_the_trainer(self):
        data = lenet_data()
        trainer = cortado.Trainer(lenet_solver(), data)
        del data
        gc.collect()
        trainer.step(3)
        self.assertTrue(np.isfinite(trainer.loss))

    def test_what_a_function_raises_is_raised(self):
        class Mine(Exception):
            pass

        def fill(request):
            raise Mine("no data today")

        data = cortado.Data()
        data.fill("data", fill)
        with self.assertRaisesRegex(Mine, "no data today"):
            cortado.Trainer(lenet_solver(), data).step()

    def test_phases(self):
        images, labels = samples()
        data = cortado.Data()
        data.arrays("data", [images, labels], phase=cortado.Phase.train)
        data.arrays("data", [images, (labels + 1) % 4], phase=cortado.Phase.test)
        trainer = cortado.Trainer(lenet_solver(), data)
        trainer.step(60)
        accuracy = [row["value"] for row in trainer.test()[0]["outputs"] if row["name"] == "accuracy"]
        self.assertLess(accuracy[0], 0.5)

    def test_wrong_arrays(self):
        for tops in ([np.zeros(())], [np.zeros((8, 1, 12, 12)), np.zeros(7)]):
            with self.assertRaises(cortado.UserError):
                cortado.Data().arrays("data", tops)


RANK = """import os, sys
sys.path.insert(0, FOLDER)
from module_test import cortado, lenet_data, lenet_solver
trainer = cortado.Trainer(lenet_solver(), lenet_data(24), launched=LAUNCHED, strategy=STRATEGY, threads=1)
losses = []
trainer.observe(iteration=lambda row: losses.append(row["loss"]))
trainer.step(5)
values = trainer.parameter("ip1/weight")
with open(os.path.join(RESULTS, str(os.getpid())), "w") as file:
    print(*losses, values.sum(), file=file)
del trainer  # ends MPI
"""


class Ranks(Case):
    def run_script(self, launcher, launched, strategy):
        # A launcher may mix the lines of its ranks: each writes a file.
        results = self.folder / f"results-{strategy}"
        results.mkdir()
        script = RANK.replace("FOLDER", repr(os.path.dirname(__file__))).replace("LAUNCHED", str(launched))
        script = script.replace("RESULTS", repr(str(results)))
        file = self.write("rank.py", script.replace("STRATEGY", repr(strategy)))
        command = [*launcher, sys.executable, "-B", file]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [[float(number) for number in path.read_text().split()] for path in results.iterdir()]

    def test_two_ranks_train_as_one(self):
        launcher = os.environ.get("LAUNCHER", "").split()
        if not launcher:
            self.skipTest("there is no MPI")
        (alone,) = self.run_script([], False, "single")
        ranks = self.run_script([*launcher, "-n", "2"], True, "data")
        self.assertEqual(len(ranks), 2)
        for rank in ranks:
            self.near(rank, alone, 1e-4)


class Nets(Case):
    def net(self, phase=cortado.Phase.train, **options):
        net = cortado.Net(cortado.Network.from_text(LENET, phase=phase), **options)
        for blob, values in zip(("data", "label"), samples()):
            net.set_values(blob, values)
        return net

    def weights(self, net):
        return {name: net.parameter(name) for name in net.network.parameters()}

    def test_backward_before_forward_reads_the_inputs(self):
        net = self.net(threads=1)
        net.backward()
        self.assertTrue(np.isfinite(net.parameter_gradient("conv1/weight")).all())

    def test_computes_as_numpy(self):
        net = self.net(threads=1)
        loss = net.forward()
        scores = lenet_by_numpy(samples()[0], self.weights(net))
        self.near(net.values("ip2"), scores)
        self.near(loss, cross_entropy(scores, samples()[1]))
        out = np.empty((8, 4), np.float32)
        self.assertIs(net.values("ip2", out=out), out)
        self.same(out, net.values("ip2"))
        for wrong in (np.empty((8, 5), np.float32), np.empty((4, 8), np.float32).T):
            with self.assertRaises(ValueError):
                net.values("ip2", out=wrong)
        with self.assertRaises(TypeError):
            net.values("ip2", out=np.empty((8, 4)))

    def test_parts(self):
        net = self.net()
        self.assertEqual(net.forward(last="pool1"), 0)
        self.same(net.values("ip2"), np.zeros((8, 4)))
        net.forward(first="ip1")
        self.near(net.values("ip2"), lenet_by_numpy(samples()[0], self.weights(net)))

    def test_gradients(self):
        net = self.net()
        net.forward()
        scores = net.values("ip2").astype(float)
        expected = softmax(scores)
        expected[np.arange(8), samples()[1].astype(int)] -= 1
        net.backward()
        self.near(net.gradient("ip2"), expected / 8)
        self.near(net.parameter_gradient("ip2/bias"), expected.sum(0) / 8)
        net.backward()
        self.near(net.parameter_gradient("ip2/bias"), expected.sum(0) / 4)
        net.set_parameter_gradient("ip2/bias", np.ones(4))
        net.set_gradient("ip2", np.ones((8, 4)))
        net.backward("ip2", "ip2")
        self.near(net.parameter_gradient("ip2/bias"), np.full(4, 9))
        net.clear_parameter_gradients()
        self.same(net.parameter_gradient("ip2/bias"), np.zeros(4))
        self.assertTrue(net.has_gradient("ip2") and not net.has_gradient("label"))
        with self.assertRaises(cortado.UserError):
            self.net(gradients=False).backward()

    def test_names_and_shapes(self):
        net = self.net(phase=cortado.Phase.test)
        self.assertEqual((net.phase, net.inputs, net.outputs), (cortado.Phase.test, ["data", "label"], ["accuracy", "loss"]))
        self.assertEqual(net.blobs[2:4], ["conv1", "pool1"])
        net.reshape({"data": (2, 1, 12, 12), "label": (2,)})
        self.assertEqual(net.shape("conv1"), (2, 6, 10, 10))

    def test_weights(self):
        net, other = self.net(), self.net(seed=9)
        self.assertTrue((net.parameter("ip1/weight") != other.parameter("ip1/weight")).any())
        path = str(self.folder / "weights")
        net.save_weights(path, cortado.Net.WeightsFormat.hdf5)
        self.assertEqual(other.load_weights(path), {"of_network": [], "of_file": []})
        self.same(other.parameter("ip1/weight"), net.parameter("ip1/weight"))
        shares = self.net(seed=10)
        shares.share_with(net)
        net.set_parameter("ip2/bias", np.arange(4))
        self.same(shares.parameter("ip2/bias"), np.arange(4))

    def test_data(self):
        images, labels = samples(16)
        net = cortado.Net(cortado.Network.from_text(LENET), lenet_data(16))
        for begin in (0, 8):
            net.forward()
            self.same(net.values("data"), images[begin : begin + 8])
        feed = cortado.Data()
        feed.arrays("data", [2 * images, labels])
        net.feed(feed)
        net.forward()
        self.same(net.values("data"), 2 * images[:8])

    def test_nets_of_a_trainer(self):
        trainer = cortado.Trainer(lenet_solver(momentum=0), lenet_data(), open_nets=True)
        net, test = trainer.net(), trainer.test_net(0)
        self.assertEqual(trainer.test_nets, 1)
        doubled = []

        def double(iteration):
            gradient = net.parameter_gradient("ip2/bias")
            net.set_parameter_gradient("ip2/bias", 2 * gradient)
            doubled.append(gradient)

        trainer.observe(gradients=double)
        before = net.parameter("ip2/bias")
        trainer.step()
        self.near(net.parameter("ip2/bias"), before - 0.05 * 2 * doubled[0])
        test.forward()
        self.near(test.values("ip2"), lenet_by_numpy(samples()[0], self.weights(net)))
        net.set_parameter_gradient("ip2/bias", np.ones(4))
        before = net.parameter("ip2/bias")
        trainer.update()
        self.near(net.parameter("ip2/bias"), before - 0.05)
        del trainer
        gc.collect()
        net.forward()  # keeps what it needs


class Stopping(Case):
    def test_an_interrupt_stops_after_the_iteration(self):
        trainer = cortado.Trainer(lenet_solver(), lenet_data())
        done = []

        def interrupt(row):
            done.append(row["number"])
            if row["number"] == 2:
                os.kill(os.getpid(), signal.SIGINT)

        trainer.observe(iteration=interrupt)
        with self.assertRaises(KeyboardInterrupt):
            trainer.step(10_000)
        self.assertIn(len(done), (3, 4))
        self.assertEqual(trainer.iteration, len(done))
        trainer.step(2)  # goes on
        self.assertGreater(trainer.iteration, 4)

    def test_what_an_observer_raises_stops(self):
        trainer = cortado.Trainer(lenet_solver(), lenet_data())

        def enough(row):
            if trainer.iteration == 1:
                raise StopIteration

        trainer.observe(iteration=enough)
        with self.assertRaises(StopIteration):
            trainer.step(10_000)
        self.assertEqual(trainer.iteration, 2)

    def test_what_was_raised_does_not_come_back(self):
        class Once(Exception):
            pass

        trainer = cortado.Trainer(lenet_solver(), lenet_data())
        raised = []

        def fails_once(row):
            if not raised:
                raised.append(Once())
                raise raised[0]

        trainer.observe(iteration=fails_once)
        with self.assertRaises(Once):
            trainer.step(3)
        self.assertTrue(trainer.step(3))
        self.assertEqual(trainer.iteration, 4)
        with self.assertRaises(cortado.UserError):  # of this call, not the one before
            trainer.tensor("nothing")
        seen = weakref.ref(raised.pop())
        gc.collect()
        self.assertIsNone(seen())  # nobody keeps it

    def test_a_stop_may_be_asked_for(self):
        trainer = cortado.Trainer(lenet_solver(), lenet_data())
        trainer.observe(iteration=lambda row: row["number"] == 1 and trainer.request_stop())
        self.assertFalse(trainer.step(10_000))
        self.assertEqual(trainer.iteration, 2)

    def test_other_threads_run_meanwhile(self):
        trainer = cortado.Trainer(lenet_solver(), lenet_data())
        thread = threading.Thread(target=lambda: trainer.request_stop())
        trainer.observe(iteration=lambda row: row["number"] == 0 and thread.start())
        self.assertFalse(trainer.step(10**9))  # ends only where the thread gets the lock
        thread.join()

    def test_it_can_be_dropped_while_data_wait(self):
        trainer = cortado.Trainer(lenet_solver(), lenet_data())
        trainer.step()
        gone = weakref.ref(trainer)
        del trainer
        gc.collect()
        self.assertIsNone(gone())


class Memory(Case):
    NET = """layer { name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param { shape { dim: 2 dim: 3 } shape { dim: 2 } } }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 2 } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }"""

    def resident(self):
        """KiB of this process."""
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024

    def growth(self, make, times):
        """KiB that the process has grown by, after the first makings have brought what stays."""
        for number in range(times):
            if number == times // 2:
                before = self.resident()
            make()
        return self.resident() - before

    def test_a_thousand_trainers_leave_nothing(self):
        network = cortado.Network.from_text(self.NET)
        kept = []

        def make(leak=0):
            trainer = cortado.Trainer(cortado.Solver(network, base_lr=0.1), threads=1)
            trainer.observe(iteration=lambda row: None)
            trainer.step(1)
            kept.append(bytearray(leak))

        self.assertLess(self.growth(make, 1000), 1024)
        self.assertGreater(self.growth(lambda: make(8192), 500), 1024)  # it would be seen

    def test_nets_leave_nothing(self):
        network = cortado.Network.from_text(self.NET, phase=cortado.Phase.test)
        self.assertLess(self.growth(lambda: cortado.Net(network, threads=1).forward(), 600), 1024)


if __name__ == "__main__":
    sys.exit(unittest.main())
