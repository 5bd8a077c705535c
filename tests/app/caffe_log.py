"""What `cortado train`, `test` and `time` print in a pipe reads as Caffe's own logs do.

The patterns are those that Caffe's log scripts look for, written anew from their description: a line is that of its
logger (level, month and day, time, thread, file and line of source), a training begins at "Solving", rows are made of
"Iteration", "Train net output", "Test net output" and "lr =". What they find is compared with --log and --json.
"""
import datetime
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

CORTADO = str(pathlib.Path(sys.argv[1]).resolve())

NET = """name: "small"
layer { name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param { shape { dim: 8 dim: 2 dim: 6 dim: 6 } shape { dim: 8 }
    data_filler { type: "gaussian" std: 1 } data_filler { type: "constant" value: 1 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "score" type: "InnerProduct" bottom: "conv" top: "score"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "score" bottom: "label" top: "accuracy" include { phase: TEST } }
"""
SOLVER = """net: "net.prototxt" base_lr: 0.05 lr_policy: "step" stepsize: 7 gamma: 0.1 momentum: 0.9
max_iter: 20 display: 5 snapshot_prefix: "small" test_iter: 2 test_interval: 10
"""

LOGGED = re.compile(r"I(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6}) +(\d+) [\w.]+:\d+\] (.*)$")
OUTPUT = re.compile(r"(Train|Test) net output #(\d+): (\S+) = ([.\deE+-]+)")
ITERATION = re.compile(r"Iteration (\d+)")
RATE = re.compile(r"lr = ([-+]?\d*\.?\d+(?:[eE]?[-+]?\d+)?)")


def check(good, text):
    if not good:
        sys.exit(f"caffe_log: {text}")


def run(folder, *words):
    done = subprocess.run([CORTADO, *words], cwd=folder, capture_output=True, text=True, timeout=300)
    check(done.returncode == 0, f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.splitlines()


def logged(line):
    """The time and the text of a line of the log."""
    match = LOGGED.match(line)
    check(match, f"no line of Caffe's logger: {line!r}")
    month, day, hour, minute, second, micro, _, text = match.groups()
    year = datetime.date.today().year
    return datetime.datetime(year, int(month), int(day), int(hour), int(minute), int(second), int(micro)), text


def rows_of(lines):
    """{"Train": [row], "Test": [row]}: iteration, seconds since "Solving", rate, and outputs by name."""
    times = [logged(line) for line in lines]
    start = next(time for time, text in times if "Solving" in text)
    rows, iteration, rate = {"Train": [], "Test": []}, None, None
    for time, text in times:
        if found := ITERATION.search(text):
            iteration = int(found[1])
        if found := RATE.search(text):
            rate = float(found[1])
            if rows["Train"] and rows["Train"][-1]["iteration"] == iteration:
                rows["Train"][-1]["lr"] = rate
        if found := OUTPUT.search(text):
            table = rows[found[1]]
            if not table or table[-1]["iteration"] != iteration:
                table.append({"iteration": iteration, "seconds": (time - start).total_seconds(), "outputs": []})
            check(int(found[2]) == len(table[-1]["outputs"]), f"outputs are not counted from 0: {text}")
            table[-1]["outputs"].append((found[3], float(found[4])))
    return rows


def close(a, b):
    return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-30)


def check_training(folder):
    lines = run(folder, "train", "-solver", "solver.prototxt", "-threads", "1", "--log", "log.jsonl")
    rows = rows_of(lines)
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    iterations = {entry["iteration"]: entry for entry in log if "lr" in entry}
    tests = [entry for entry in log if "test_net" in entry]
    check([row["iteration"] for row in rows["Train"]] == [0, 5, 10, 15], f"training rows: {rows['Train']}")
    for row in rows["Train"]:
        entry = iterations[row["iteration"]]
        check(close(row["lr"], entry["lr"]), f"rate of {row}, logged {entry}")
        check(row["outputs"][0][0] == "loss" and close(row["outputs"][0][1], entry["loss"]), f"{row}, logged {entry}")
        check(row["seconds"] >= 0, f"{row} is before the start")
    check([row["iteration"] for row in rows["Test"]] == [0, 10, 20], f"test rows: {rows['Test']}")
    for row, entry in zip(rows["Test"], tests):
        names = [output["name"] for output in entry["outputs"]]
        check([name for name, _ in row["outputs"]] == names, f"{row}, logged {entry}")
        for (_, value), output in zip(row["outputs"], entry["outputs"]):
            check(close(value, output["value"]), f"{row}, logged {entry}")
    texts = [logged(line)[1] for line in lines]
    for text in ("Solving small", "Learning Rate Policy: step", "Optimization Done.",
                 "Snapshotting to binary proto file small_iter_20.caffemodel",
                 "Snapshotting solver state to binary proto file small_iter_20.solverstate"):
        check(texts.count(text) == 1, f"{text!r} is printed {texts.count(text)} times")
    # What field 11 of a line of a test's output is to awk, and where a script of one version looks.
    first = next(line for line in lines if "Test net output #0" in line)
    check(close(float(first.split()[10]), rows["Test"][0]["outputs"][0][1]), first)
    check("solver.cpp:330] Iteration 0, Testing net (#0)" in "\n".join(lines), "no line of solver.cpp:330")
    check(any(re.search(r"Iteration 5 \(\S+ iter/s, \S+s/5 iters\), loss = \S+$", text) for text in texts), texts)
    check(any(re.fullmatch(r"Iteration 20, loss = \S+", text) for text in texts), texts)
    plain = run(folder, "train", "-solver", "solver.prototxt", "-threads", "1", "--log-format", "plain")
    check("Solving small" in plain, f"--log-format plain: {plain}")


def check_test(folder):
    lines = run(folder, "test", "-model", "net.prototxt", "-weights", "small_iter_20.caffemodel", "-iterations", "2",
                "--json", "test.json")
    texts = [logged(line)[1] for line in lines]
    told = json.loads((folder / "test.json").read_text())
    check(texts[:2] == ["Use CPU.", "Running for 2 iterations."], texts)
    loss = next(text for text in texts if text.startswith("Loss: "))
    check(close(float(loss[6:]), told["loss"]), loss)
    after = texts[texts.index(loss) + 1:]
    for output in told["outputs"]:
        batches = [text for text in texts if re.fullmatch(rf"Batch [01], {output['name']} = \S+", text)]
        check(len(batches) == 2, f"batches of {output['name']}: {batches}")
        mean = [text for text in after if text.startswith(output["name"] + " = ")]
        check(len(mean) == 1 and close(float(mean[0].split()[2]), output["value"]), f"{mean}, wanted {output}")
    check(any(re.fullmatch(r"loss = \S+ \(\* 1 = \S+ loss\)", text) for text in after), after)


def check_time(folder):
    lines = run(folder, "time", "-model", "net.prototxt", "-iterations", "3", "-threads", "1")
    end = next(i for i, line in enumerate(lines) if line.endswith("*** Benchmark ends ***"))
    texts = [logged(line)[1] for line in lines[:end + 1]]
    check(texts[:3] == ["Use CPU.", "*** Benchmark begins ***", "Testing for 3 iterations."], texts[:3])
    each = [float(found[1]) for text in texts
            if (found := re.fullmatch(r"Iteration: \d forward-backward time: (\S+) ms\.", text))]
    check(len(each) == 3, texts)
    layers = {"forward": {}, "backward": {}}
    for text in texts:
        if found := re.fullmatch(r" *(\S+)\t(forward|backward): (\S+) ms\.", text):
            layers[found[2]][found[1]] = float(found[3])
    for way in layers.values():
        check(list(way) == ["data", "conv", "relu", "score", "loss"], layers)
    def figure(name):
        return next(float(text.split()[-2]) for text in texts if text.startswith(name))
    check(math.isclose(figure("Average Forward pass: "), sum(layers["forward"].values()), rel_tol=1e-4), texts)
    check(math.isclose(figure("Average Backward pass: "), sum(layers["backward"].values()), rel_tol=1e-4), texts)
    check(math.isclose(figure("Total Time: "), sum(each), rel_tol=1e-4), texts)
    check(math.isclose(figure("Average Forward-Backward: "), sum(each) / 3, rel_tol=1e-4), texts)
    check("relu (in conv)" in lines[end + 1] and layers["forward"]["relu"] == 0, lines[end + 1])
    check(any(line.startswith("conv+relu ") for line in lines[end:]), "the table is missing")


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "net.prototxt").write_text(NET)
    (folder / "solver.prototxt").write_text(SOLVER)
    check_training(folder)
    check_test(folder)
    check_time(folder)
