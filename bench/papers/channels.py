#!/usr/bin/env python3
"""Figures of channel and filter parallelism (Dryden et al.), each by an option: bench/papers/channels.py --help."""

import functools
import itertools
import json
import pathlib
import re
import sys

import common
from common import MEASURED, PUBLISHED, figure, load_machine, one_layer, save, scaled, simulate
from layers import median_seconds

PAPER = PUBLISHED["channels"]
LASSEN = "lassen"
# ResNet-50's layers of the paper's micro-benchmarks: channels, height, filters.
LAYERS = {"conv_3": (512, 28, 128, 1), "conv_5": (512, 7, 512, 3)}
LARGEST = 128  # devices of a simulation here: more take minutes and gigabytes


@functools.lru_cache(maxsize=None)
def machine(net):
    """lassen with efficiencies scaled so that data parallelism takes what the paper's Table 1 gives: minutes of 90 epochs by
    sample, on as many devices as 32, 16 or 8 samples each make. Simulated on 32 devices, weak scaling, since sums are hidden."""
    _, batch, per_device, minutes, *_ = next(row for row in PAPER["table-1"]["rows"] if row[0] == net)
    wanted = 60 * minutes / (PAPER["table-1"]["epochs"] * PAPER["table-1"]["images"] / batch)
    factor = 1.0
    for attempt in range(8):
        path = save(scaled(load_machine(LASSEN), factor), f"lassen-{net}-{attempt}")
        seconds = simulate(net, path, 32, 32 * per_device, "data")["step_seconds"]
        if abs(seconds / wanted - 1) < 2e-3:
            break
        factor *= seconds / wanted
    return path


def names(net):
    text = (common.ROOT / f"models/{net}/train_val.prototxt").read_text()
    return re.findall(r'name: "([^"]+)"\n  type: "(\w+)"', text)


# How a convolution is cut over four or eight devices: stationary-x, -y, and -w by half of them along the channels and 2 along
# the filters.
CUTS = {"x": lambda way: {"r": way}, "y": lambda way: {"c": way}, "w": lambda way: {"r": way // 2, "c": 2}}


def cut_of(name, kind, way):
    """Kind "xy" is stationary-y where a layer's output is larger than its input, in the last of a block's convolutions, and
    stationary-x elsewhere."""
    return CUTS[("y" if name.endswith("conv3") else "x") if kind == "xy" else kind[0]](way)


def paper_order(rows, way):
    """The devices of a row in the order of the paper's grid of channels and filters (sections 3.2 and 3.4): neighbours
    have the same channels and other filters. Ours have the same filters."""
    return [row * way + channel * 2 + part for row in range(rows) for part in range(2) for channel in range(way // 2)]


def hybrid(net, rows, way, kind):
    """A strategy file: `rows` parts of the batch times `way` devices each. conv1 and the first block in space, then channels
    by kind: x, xy, w or "w, own order", whose devices are not in the paper's order."""
    layers = {}
    for name, type_ in names(net):
        if type_ in ("Data", "Accuracy"):
            continue
        early = re.match(r"conv1|pool1|conv2|res2|layer1|stage1|block1", name)
        if early and type_ not in ("InnerProduct",):
            layers[name] = {"n": rows, "h": way}
        elif type_ == "Convolution":
            layers[name] = {"n": rows} | cut_of(name, kind, way)
        elif type_ in ("SoftmaxWithLoss", "InnerProduct"):
            layers[name] = {"n": rows}
        else:
            layers[name] = {"n": rows, "c": way}
        if kind == "w" and len(layers[name]) > 1:
            layers[name]["devices"] = paper_order(rows, way)
    path = pathlib.Path(common.scratch.name) / f"{net}-{rows}-{way}-{kind}.json"
    path.write_text(json.dumps({"format": "cortado-strategy", "version": 1, "layers": layers}))
    return path


@figure("channels", "figure-3", "A device's part of two layers of ResNet-50 on this CPU, without messages", "section 6.1", MEASURED,
        {"kind": "bars", "x": ["layer", "samples"], "series": ["by sample 4, ms", "by channel 4, ms"], "unit": "ms"},
        note=lambda rows: "A part by input channel (stationary-x) over one by sample, 32 samples, eight ways: "
        + ", ".join(f"{float(r['by channel 8, ms']) / float(r['by sample 8, ms']):.2f} times as long for {r['layer']}" for r in rows if r["samples"] == "32")
        + ". With few samples there is no part by sample, and the part by channel goes on getting shorter.")
def figure_3():
    rows = []
    for name, (channels, height, filters, kernel) in LAYERS.items():
        for samples in (1, 2, 4, 32):
            row = {"layer": name, "samples": samples}
            for way in (1, 2, 4, 8):
                row[f"by sample {way}, ms"] = 1e3 * median_seconds(samples, channels, filters, height, kernel, {"n": way}) if samples >= way else None
                row[f"by channel {way}, ms"] = 1e3 * median_seconds(samples, channels, filters, height, kernel, {"r": way})
            rows.append(row)
    return rows


# The paper's algorithms over two ranks: by sample, and stationary-x and -y; by rows beside them.
ALGORITHMS = {"sample": {"n": 2}, "stationary-x": {"r": 2}, "stationary-y": {"c": 2}, "rows": {"h": 2}}
RATES = ["here", "1gbit"]  # shared memory; hosts of network namespaces


def over_ranks(hosts, name, samples, config, ranks):
    """`cortado time --predict` of one layer's net on these hosts."""
    channels, height, filters, kernel = LAYERS[name]
    text, layers, _, _ = common.layer_net("Convolution", samples, channels, height, filters, kernel, 1, kernel // 2, config)
    folder = common.written(text, layers)
    report = folder / "time.json"
    hosts.within([str(common.cortado), "time", "--model", str(folder / "net.prototxt"), "--iterations", "10", "--threads", "1",
                  "--strategy", str(folder / "cut.json"), "--json", str(report), "--predict", "--no-late-updates", "--ranks", str(ranks),
                  *(hosts.options() if ranks > 1 else [])])
    return json.loads(report.read_text())


def farthest(rows):
    row = max((r for r in rows if r["simulated off, %"]), key=lambda r: abs(float(r["simulated off, %"])))
    return f"{float(row['simulated off, %']):+.0f} % ({row['layer']}, {row['samples']} samples, {row['algorithm']}, {row['link']})"


@figure("channels", "figure-5m", "One layer over two ranks by each algorithm, over shared memory and 1 Gbit/s: predicted against measured",
        "section 6.1", MEASURED,
        {"kind": "bars", "x": ["layer", "samples", "algorithm", "link"], "series": ["measured, ms", "simulated, ms"], "unit": "ms"},
        note=lambda rows: f"An iteration of the layer between a pointwise layer and a loss. Farthest from the simulation: {farthest(rows)}. "
        "With 4 samples a layer is scaled strongly from the row of one rank, with 8 weakly. Stationary-w needs four ranks, and so four cores.")
def figure_5m():
    sys.path.insert(0, str(common.ROOT / "bench"))
    import network
    rows = []
    for rate in RATES:
        hosts = network.Here(2) if rate == "here" else network.Hosts(2, rate)
        try:
            for name, samples in itertools.product(LAYERS, (4, 8)):
                ways = {"one rank": {}, **ALGORITHMS} if rate == "here" and samples == 4 else ALGORITHMS
                for algorithm, config in ways.items():
                    found = over_ranks(hosts, name, samples, config, 2 if config else 1)
                    told, seconds = found.get("prediction", {}), found["step_seconds"]
                    simulated = told.get("overlapped_step_seconds")
                    rows.append({"link": "shared memory" if rate == "here" else rate, "layer": name, "samples": samples, "algorithm": algorithm,
                                 "measured, ms": 1e3 * seconds, "nothing hidden, ms": 1e3 * told["step_seconds"] if told else None,
                                 "simulated, ms": 1e3 * simulated if simulated else None,
                                 "simulated off, %": 100 * (simulated / seconds - 1) if simulated else None, "MB sent": found["bytes_per_iteration"] / 1e6})
        finally:
            hosts.down()
    return rows


@figure("channels", "figure-4", "Segmented allreduce of conv_3's gradient on Lassen", "section 6.1",
        picture={"kind": "lines", "x": ["devices"], "series": ["1 way, us", "2 ways, us", "4 ways, us", "8 ways, us"], "unit": "us"},
        note=lambda rows: f"On {rows[-1]['devices']} devices eight-way segmentation takes {rows[-1]['1 way over 8']} times less. Computed from "
        "the links of the machine file: rings, of which those that leave a node at the same time share its interface. The paper measured 4 by NCCL, less than it expected of rings, and supposes contention of threads.")
def figure_4():
    rows = []
    for devices in (16, 32, 64, 128, 256, 512):
        row = {"devices": devices} | {f"{way} way{'s' if way > 1 else ''}, us": 1e6 * ring_seconds(devices, way) for way in (1, 2, 4, 8)}
        rows.append(row | {"1 way over 8": row["1 way, us"] / row["8 ways, us"]})
    return rows


def ring_seconds(devices, way):
    """Of `way` rings at a time, each over every way-th device and with a share of conv_3's gradient."""
    channels, _, filters, kernel = LAYERS["conv_3"]
    lassen = load_machine(LASSEN)
    node, network = lassen["nodes"][0], lassen["network"]
    rings_leaving = min(way, node["devices"][0]["count"])
    bandwidth = min(network["bandwidth_gb_per_s"], node["nic_bandwidth_gb_per_s"] / rings_leaving) * 1e9
    ring = devices // way
    part = 4 * channels * filters * kernel * kernel / way / ring
    return 2 * (ring - 1) * (network["latency_us"] * 1e-6 + part / bandwidth)


def scaling(name, samples, counts):
    channels, height, filters, kernel = LAYERS[name]
    rows = []
    for devices in counts:
        row = {"layer": name, "devices": devices}
        batch = samples(devices) if callable(samples) else samples
        for way in (1, 2, 4, 8):
            if devices % way or (devices // way) > (batch(way) if callable(batch) else batch):
                row[f"{way} way{'s' if way > 1 else ''}, ms"] = None
                continue
            of = batch(way) if callable(batch) else batch
            config = {"n": devices // way} | ({"r": way} if way > 1 else {})
            row[f"{way} way{'s' if way > 1 else ''}, ms"] = 1e3 * sum(one_layer("Convolution", of, channels, height, filters, kernel, 1, kernel // 2,
                                                                            config, LASSEN, devices))
        rows.append(row)
    return rows


SERIES = ["1 way, ms", "2 ways, ms", "4 ways, ms", "8 ways, ms"]


@figure("channels", "figure-5", "Strong scaling of two layers, 32 samples, stationary-x", "section 6.1",
        picture={"kind": "bars", "x": ["layer", "devices"], "series": SERIES, "unit": "ms"},
        note=lambda rows: "One way is by sample alone, which ends at 32 devices. Eight ways cross nodes and pay for it, as in the paper.")
def figure_5():
    return [row for name in LAYERS for row in scaling(name, 32, (1, 2, 4, 8, 16, 32, 64, 128))]


@figure("channels", "figure-6", "Weak scaling of conv_5, 32 samples a row of devices", "section 6.1",
        picture={"kind": "bars", "x": ["devices"], "series": SERIES, "unit": "ms"},
        note=lambda rows: "Each row of the grid has 32 samples, so more ways mean fewer samples a device. The sums grow less with more ways, as in the paper.")
def figure_6():
    return scaling("conv_5", lambda devices: lambda way: 32 * devices // way, (8, 16, 32, 64, 128))


@figure("channels", "figure-7", "ResNet-50 end to end, 32 samples a row: ms a batch", "section 6.2",
        picture={"kind": "lines", "x": ["rows"], "series": ["sample", "2 ways x + spatial", "4 ways x + spatial", "4 ways x/y + spatial"], "unit": "ms"},
        note=lambda rows: f"At {rows[-1]['rows']} rows four ways of stationary-x are {rows[-1]['sample over 4 ways x']} times as fast as sample parallelism, four of "
        f"stationary-x and -y {rows[-1]['sample over 4 ways x/y']} times (paper: up to {PAPER['figure-7']['most']['spatial + stationary-x']} and "
        f"{PAPER['figure-7']['most']['spatial + stationary-x/y']} at its largest scale, 2,048 devices). Simulated to {LARGEST} devices.")
def figure_7():
    rows = []
    for count in (1, 2, 4, 8, 16, 32):
        row = {"rows": count, "batch": 32 * count}
        row["sample"] = 1e3 * simulate("resnet-50", machine("resnet-50"), count, 32 * count, "data" if count > 1 else "single")["step_seconds"]
        for way, kind, name in ((2, "x", "2 ways x"), (4, "x", "4 ways x"), (4, "xy", "4 ways x/y")):
            row[f"{name} + spatial"] = 1e3 * simulate("resnet-50", machine("resnet-50"), count * way, 32 * count, hybrid("resnet-50", count, way, kind))["step_seconds"]
        rows.append(row | {f"sample over {name}": row["sample"] / row[f"{name} + spatial"] for name in ("4 ways x", "4 ways x/y")})
    return rows


KINDS = {"x": "8 ways x", "xy": "8 ways x/y", "w": "4x2 w", "w, own order": "4x2 w, own order"}


@figure("channels", "figure-8", "WRN-50-2 and WRN-50-4 end to end, 16 and 8 samples a row: times as fast as by sample", "section 6.2",
        picture={"kind": "bars", "x": ["net", "rows"], "series": [*KINDS.values(), "paper"], "unit": "times"},
        note=lambda rows: "All with the first two blocks in space. The paper's largest factors are those of x/y for WRN-50-2 and of w for WRN-50-4, and for WRN-50-2 it finds w "
        f"comparable to x/y. Its grid of w has the filters within a node and the channels across. Where the channels lie within (`own order`), less crosses nodes: {gained(rows)}.")
def figure_8():
    rows = []
    for net, samples in (("wrn-50-2", 16), ("wrn-50-4", 8)):
        for count in (2, 4, 8, 16):
            own = machine(net)
            seconds = {"sample": simulate(net, own, count, samples * count, "data")["step_seconds"]} | {
                name: simulate(net, own, 8 * count, samples * count, hybrid(net, count, 8, kind))["step_seconds"] for kind, name in KINDS.items()}
            rows.append({"net": net, "rows": count, "batch": samples * count, "sample, ms": 1e3 * seconds["sample"]}
                        | {name: seconds["sample"] / seconds[name] for name in KINDS.values()}
                        | {"paper": PAPER["figure-8"]["most"][net] if count == 16 else None})
    return rows


def gained(rows):
    return " and ".join(f"{float(row['4x2 w, own order']) / float(row['4x2 w']):.2f} times as fast for {row['net']}" for row in rows if row["paper"])


@figure("channels", "table-1", "Minutes of 90 epochs of ImageNet", "table 1",
        picture={"kind": "bars", "x": ["net"], "series": ["by sample", "paper, by sample", "cut further", "paper, cut further"], "unit": "minutes"},
        note=lambda rows: "By sample is what the machine is calibrated on. Cut further, as in the paper: 4 ways of stationary-x and -y for ResNet-50, 8 for WRN-50-2, 4x2 of stationary-w for WRN-50-4, "
        f"simulated with as many rows as make {LARGEST} devices and taken for all: "
        + ", ".join(f"{r['gain']} times (paper {r['paper, gain']}) for {r['net']}" for r in rows)
        + ". The accuracies need ImageNet and are not repeated here.")
def table_1():
    rows = []
    for net, batch, samples, minutes, cut_minutes, way, top1, top5 in PAPER["table-1"]["rows"]:
        iterations = PAPER["table-1"]["epochs"] * PAPER["table-1"]["images"] / batch
        by_sample, cut = (seconds * iterations / 60 for seconds in (sample_seconds(net, samples, way), cut_seconds(net, samples, way, machine(net))))
        rows.append({"net": net, "by sample": by_sample, "paper, by sample": minutes, "cut further": cut, "paper, cut further": cut_minutes,
                     "gain": by_sample / cut, "paper, gain": minutes / cut_minutes, "paper, top-1 %": top1, "paper, top-5 %": top5})
    return rows


def sample_seconds(net, samples, way):
    count = LARGEST // way
    return simulate(net, machine(net), count, samples * count, "data")["step_seconds"]


def cut_seconds(net, samples, way, on):
    count, kind = LARGEST // way, "w" if net == "wrn-50-4" else "xy"
    return simulate(net, on, LARGEST, samples * count, hybrid(net, count, way, kind))["step_seconds"]


def otherwise(net, rate, sockets):
    """The net's machine with convolutions at `rate` of their efficiencies and so many GB/s between devices of two sockets."""
    own = json.loads(pathlib.Path(machine(net)).read_text())
    passes = own["calibration"]["efficiency"]["convolution"]
    own["calibration"]["efficiency"]["convolution"] = {name: rate * value for name, value in passes.items()}
    own["nodes"][0]["links"][-1]["bandwidth_gb_per_s"] = sockets
    return save(own, f"lassen-{net}-{rate}-{sockets}")


@figure("channels", "table-1b", "Gains of table 1 on machines that are slower at what is cut", "table 1",
        picture={"kind": "bars", "x": ["GB/s between sockets", "rate when cut"], "series": [row[0] for row in PAPER["table-1"]["rows"]], "unit": "times"},
        note=lambda rows: "The paper calls the link between sockets significantly slower than NVLink and gives no figure: 32 GB/s is an estimate. It finds that cuDNN's convolutions lose rate "
        "where they have few channels (its figure 3). `rate when cut`: all convolutions of the net that is cut compute at this part of the rate that they have by sample. "
        f"The last line is the paper's. {nearest(rows)}")
def table_1b():
    nets = {row[0]: (row[2], row[5]) for row in PAPER["table-1"]["rows"]}
    rows = [{"GB/s between sockets": sockets, "rate when cut": rate}
            | {net: sample_seconds(net, *how) / cut_seconds(net, *how, otherwise(net, rate, sockets)) for net, how in nets.items()}
            for sockets in (32, 24, 20, 16) for rate in (1.0, 0.8)]
    return rows + [{"GB/s between sockets": "paper", "rate when cut": ""} | {row[0]: row[3] / row[4] for row in PAPER["table-1"]["rows"]}]


def nearest(rows):
    *machines, paper = rows
    nets = [row[0] for row in PAPER["table-1"]["rows"]]
    worst = {id(row): max(abs(float(row[net]) / float(paper[net]) - 1) for net in nets) for row in machines}
    best = min(machines, key=lambda row: worst[id(row)])
    return (f"Nearest to all three is {best['GB/s between sockets']} GB/s with rate {best['rate when cut']}: within {100 * worst[id(best)]:.0f} %.")


if __name__ == "__main__":
    common.main("channels")
