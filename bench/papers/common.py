"""What the programs of the papers share: running cortado, machines calibrated on published points, CSV, SVG, registration.

A figure is a function that returns rows (dicts, one for each line of the CSV). `@figure` says its option, its title, its
page in the paper, how its rows become a picture and, for the page of results, a sentence or two made from the rows.
"""

import argparse
import csv
import dataclasses
import datetime
import functools
import io
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

import svg

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
PUBLISHED = json.loads((HERE / "published.json").read_text())
SHAPES = {"inception-v3": "3x299x299"}
RESULTS = ROOT / "docs/results/papers"
SIMULATED, MEASURED, GPU = "simulated", "measured", "needs a GPU"

cortado = ROOT / "build/release/cortado"
binaries = None  # folder of lowering_bench, caffe_bench and plan_papers


@dataclasses.dataclass(frozen=True)
class Figure:
    paper: str
    option: str      # "figure-7"
    title: str
    where: str       # in the paper
    kind: str        # SIMULATED, MEASURED or GPU
    rows: object     # () -> [dict]
    picture: dict    # what svg.draw takes; None: a table alone
    note: object     # (rows) -> text of the page

    @property
    def name(self):
        return f"{self.paper}-{self.option}"


FIGURES = []


def figure(paper, option, title, where, kind=SIMULATED, picture=None, note=lambda rows: ""):
    def register(rows):
        FIGURES.append(Figure(paper, option, title, where, kind, rows, picture, note))
        return rows
    return register


# ---------------------------------------------------------------- cortado

@functools.lru_cache(maxsize=None)
def run(*arguments):
    """JSON that a command of cortado writes."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.json"
        command = [str(cortado), *map(str, arguments), "--json", str(out)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
        return json.loads(out.read_text())


def model(net):
    """The net's file and the shape of its images; a path is a file of its own."""
    if str(net).endswith(".prototxt"):
        return ["--model", net] + (["--input-shape", SHAPES[net]] if net in SHAPES else [])
    return ["--model", f"models/{net}/train_val.prototxt", "--input-shape", SHAPES.get(net, "3x224x224")]


def simulate(net, machine, devices, batch=None, strategy="auto", *options):
    size = ["--batch", batch] if batch else []
    return run("simulate", *model(net), "--machine", machine, "--devices", devices, *size, "--strategy", strategy, *options)


def plan(net, machine, devices, batch, dimensions=None):
    return run("plan", *model(net), "--machine", machine, "--devices", devices, "--batch", batch,
               *(["--dimensions", dimensions] if dimensions else []))


def text_of(config):
    return " ".join(f"{axis}{config[axis]}" for axis in "ncdhwr" if config.get(axis, 1) > 1) or "one"


# ---------------------------------------------------------------- machines

def load_machine(name):
    return json.loads((ROOT / "machines" / f"{name}.json").read_text())


scratch = tempfile.TemporaryDirectory(prefix="cortado-papers")


def save(machine, name):
    path = pathlib.Path(scratch.name) / f"{name}.json"
    path.write_text(json.dumps(machine | {"name": name}, indent=1))
    return str(path)


def scaled(machine, factor):
    """The machine with all efficiencies times the factor."""
    machine = json.loads(json.dumps(machine))
    for passes in machine["calibration"]["efficiency"].values():
        for key in passes:
            passes[key] *= factor
    return machine


@functools.lru_cache(maxsize=None)
def calibrated(name, net):
    """A file of the ready machine `name` whose single device trains `net` as fast as the published point says: all
    efficiencies are scaled alike. Nothing else of the machine changes."""
    point = PUBLISHED["single-device"][name].get(net)
    return calibrated_to(name, net, point["batch"], point["images_per_second"]) if point else name


@functools.lru_cache(maxsize=None)
def calibrated_to(name, net, batch, images_per_second):
    machine, factor = load_machine(name), 1.0
    wanted = batch / images_per_second
    for attempt in range(8):
        path = save(scaled(machine, factor), f"{name}-{pathlib.Path(net).stem}-{batch}-{images_per_second}-{attempt}")
        seconds = simulate(net, path, 1, batch, "single", "--no-late-updates")["step_seconds"]
        if abs(seconds / wanted - 1) < 1e-3:
            break
        factor *= seconds / wanted
    return path


def with_network(name, gb_per_s, suffix):
    """The machine with another bandwidth between nodes."""
    machine = load_machine(name)
    for node in machine["nodes"]:
        node["nic_bandwidth_gb_per_s"] = gb_per_s
    machine["network"]["bandwidth_gb_per_s"] = gb_per_s
    return save(machine, f"{name}-{suffix}")


def fit(value_of, wanted, low, high):
    """x in [low, high] at which value_of, which grows with x, is `wanted`; to 0.3 %."""
    while high / low > 1.003:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if value_of(middle) < wanted else (low, middle)
    return (low * high) ** 0.5


# ---------------------------------------------------------------- the frameworks' parameter servers

def with_host(machine, gb_per_s, message_us=None):
    """The machine with that bandwidth of all devices of a node to and from its memory and, where it is given, that latency
    of messages within a node and between nodes."""
    path = pathlib.Path(machine)
    own = json.loads(path.read_text()) if path.suffix == ".json" else load_machine(machine)
    for node in own["nodes"]:
        node["host_bandwidth_gb_per_s"] = gb_per_s
        for link in [*node["links"], *([own["network"]] if "network" in own else [])] if message_us else []:
            link["latency_us"] = message_us
    return save(own, f"{path.stem}-host-{gb_per_s:.6g}-{message_us}")


def server_seconds(net, machine, devices, batch, host, message_us=None):
    """Seconds of an iteration by parameter servers in the hosts' memory (`--strategy server`), which give the devices of
    a node `host` GB/s together; nothing is hidden."""
    return simulate(net, with_host(machine, host, message_us), devices, batch, "single" if devices == 1 else "server",
                    *(["--no-late-updates"] if devices == 1 else []))["step_seconds"]


def host_for(seconds, net, machine, devices, batch):
    """The host's GB/s at which servers take so many seconds; None: they take more at any."""
    slow, fast = (server_seconds(net, machine, devices, batch, host) for host in (1, 2))  # both bound by the host
    moved = 2 * (slow - fast)  # seconds at 1 GB/s
    rest = slow - moved
    return moved / (seconds - rest) if seconds > rest else None


def message_for(seconds, net, machine, devices, batch, host):
    """Microseconds of a message at which servers take so many seconds."""
    at = {us: server_seconds(net, machine, devices, batch, host, us) for us in (10, 20)}
    return 10 + 10 * (seconds - at[10]) / (at[20] - at[10])


# ---------------------------------------------------------------- one layer alone

DUMMY = 'layer {{ name: "{0}" type: "DummyData" top: "{0}" dummy_data_param {{ shape {{ {1} }} }} }}\n'
LOSS = 'layer {{ name: "loss" type: "EuclideanLoss" bottom: "{0}" bottom: "target" top: "loss" }}\n'
BEFORE = 'layer { name: "before" type: "Power" bottom: "data" top: "before" power_param { scale: 2 } }\n'


def written(text, layers):
    """Files of a net and its strategy."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=scratch.name))
    (folder / "net.prototxt").write_text('name: "one"\nforce_backward: true\n' + text)
    (folder / "cut.json").write_text(json.dumps({"format": "cortado-strategy", "version": 1, "layers": layers}))
    return folder


def simulate_net(text, layers, machine, devices):
    """Of a net and its strategy, both written for this; all sums of gradients go as one."""
    folder = written(text, layers)
    return simulate(folder / "net.prototxt", machine, devices, None, folder / "cut.json", "--no-late-updates",
                    "--gradient-chunks", "one")


def layer_net(kind, batch, channels, height, filters, kernel, stride, pad, config):
    """(text of a net of one layer, how its layers are cut, how its neighbours are, its output's shape): the layer by
    `config`, its neighbours the same way."""
    out = (height + 2 * pad - kernel) // stride + 1
    spatial = lambda extent: "" if kind == "InnerProduct" else f" dim: {extent} dim: {extent}"
    x, y = f"dim: {batch} dim: {channels}{spatial(height)}", f"dim: {batch} dim: {filters}{spatial(out)}"
    layer = (f"inner_product_param {{ num_output: {filters} }}" if kind == "InnerProduct" else
             f"convolution_param {{ num_output: {filters} kernel_size: {kernel} stride: {stride} pad: {pad} }}")
    around = {axis: parts for axis, parts in config.items() if axis != "r"}
    around["c"] = config.get("c", 1) * config.get("r", 1)
    text = (DUMMY.format("data", x) + DUMMY.format("target", y) + BEFORE
            + f'layer {{ name: "one" type: "{kind}" bottom: "before" top: "one" {layer} }}\n' + LOSS.format("one"))
    return text, {"before": around, "one": config, "loss": around}, around, y


def one_layer(kind, batch, channels, height, filters, kernel, stride, pad, config, machine, devices):
    """Seconds of one layer, cut by `config`, between neighbours that are cut the same way: (forward, backward with
    update, what its messages take, hidden or not). The sum of the loss, which the net needs, is taken off."""
    text, layers, around, y = layer_net(kind, batch, channels, height, filters, kernel, stride, pad, config)
    result = simulate_net(text, layers, machine, devices)
    loss_alone = simulate_net(DUMMY.format("data", y) + DUMMY.format("target", y) + BEFORE + LOSS.format("before"),
                              {"before": around, "loss": around}, machine, devices)
    own = [row for row in result["layers"] if row["name"] == "one"]
    forward = sum(row["forward_seconds"] for row in own)
    backward = sum(row["backward_seconds"] for row in own) + result["update_seconds"]
    messages = result["communication_seconds"] - loss_alone["communication_seconds"]
    return forward, backward, messages if messages > 1e-9 else 0.0


# ---------------------------------------------------------------- CSV, pages, command lines

def shown(value):
    """A number with four digits, else the text."""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    return "" if value is None else str(value)


def csv_text(rows):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow([shown(value) for value in row.values()])
    return out.getvalue()


def read_csv(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def commit():
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def draw(one, out):
    """The picture of the figure's CSV, where it has one."""
    if one.picture:
        (out / f"{one.name}.svg").write_text(svg.draw(one.title, read_csv(out / f"{one.name}.csv"), **one.picture))


def make(one, out=RESULTS):
    """Writes the figure's CSV, picture and origin below `out`."""
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{one.name}.csv").write_text(csv_text(one.rows()))
    draw(one, out)
    origin = {"command": f"bench/papers/{one.paper}.py --{one.option}", "commit": commit(), "kind": one.kind,
              "date": datetime.date.today().isoformat()}
    if one.kind == MEASURED:
        origin["machine"] = this_machine()
    (out / f"{one.name}.json").write_text(json.dumps(origin, indent=1) + "\n")


def this_machine():
    """Processor, cores and memory."""
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{cpu}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB"


def add_options(parser):
    parser.add_argument("--cortado", type=pathlib.Path, default=cortado)
    parser.add_argument("--binaries", type=pathlib.Path, help="folder of plan_papers, lowering_bench and caffe_bench; "
                        "default: bench beside cortado")
    parser.add_argument("--out", type=pathlib.Path, default=RESULTS)


def use(arguments):
    global cortado, binaries
    cortado = arguments.cortado.resolve()
    binaries = (arguments.binaries or cortado.parent / "bench").resolve()


def main(paper):
    """The program of one paper: an option for each of its figures."""
    own = [f for f in FIGURES if f.paper == paper]
    parser = argparse.ArgumentParser(description=f"Figures and tables of {PUBLISHED['papers'][paper]}.")
    add_options(parser)
    parser.add_argument("--all", action="store_true", help="all of them that need no GPU")
    for one in own:
        parser.add_argument(f"--{one.option}", action="store_true", help=f"{one.title} ({one.where}; {one.kind})")
    arguments = parser.parse_args()
    use(arguments)
    chosen = [f for f in own if getattr(arguments, f.option.replace("-", "_")) or (arguments.all and f.kind != GPU)]
    if not chosen:
        parser.error("choose a figure")
    for one in chosen:
        if one.kind == GPU:
            sys.exit(f"{one.name}: {one.title}: needs a GPU that this program does not drive")
        make(one, arguments.out)
        print((arguments.out / f"{one.name}.csv").read_text(), end="")
