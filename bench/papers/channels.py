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


def hybrid(net, rows, way, kind):
    """A strategy file: `rows` parts of the batch times `way` devices each. conv1 and the first block in space, then channels
    by kind: "x" along r, "y" along c, "w" along r (way / 2) and c (2)."""
    layers = {}
    for name, type_ in names(net):
        if type_ in ("Data", "Accuracy"):
            continue
        early = re.match(r"conv1|pool1|conv2|res2|layer1|stage1|block1", name)
        if early and type_ not in ("InnerProduct",):
            layers[name] = {"n": rows, "h": way}
        elif type_ == "Convolution":
            layers[name] = {"n": rows} | {"x": {"r": way}, "y": {"c": way}, "w": {"r": way // 2, "c": 2}}[kind]
        elif type_ in ("SoftmaxWithLoss", "InnerProduct"):
            layers[name] = {"n": rows}
        else:
            layers[name] = {"n": rows, "c": way}
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
        picture={"kind": "lines", "x": ["rows"], "series": ["sample", "2 ways + spatial", "4 ways + spatial"], "unit": "ms"},
        note=lambda rows: f"At {rows[-1]['rows']} rows four ways are {rows[-1]['sample over 4 ways']} times as fast as sample parallelism (paper: up to 1.6 at its largest "
        f"scale, 2,048 devices). Simulated to {LARGEST} devices.")
def figure_7():
    rows = []
    for count in (1, 2, 4, 8, 16, 32):
        row = {"rows": count, "batch": 32 * count}
        row["sample"] = 1e3 * simulate("resnet-50", machine("resnet-50"), count, 32 * count, "data" if count > 1 else "single")["step_seconds"]
        for way in (2, 4):
            row[f"{way} ways + spatial"] = 1e3 * simulate("resnet-50", machine("resnet-50"), count * way, 32 * count, hybrid("resnet-50", count, way, "x"))["step_seconds"]
        rows.append(row | {"sample over 4 ways": row["sample"] / row["4 ways + spatial"]})
    return rows


@figure("channels", "figure-8", "WRN-50-2 and WRN-50-4 end to end, 16 and 8 samples a row: ms a batch", "section 6.2",
        picture={"kind": "bars", "x": ["net", "rows"], "series": ["sample", "8 ways x + spatial", "4x2 w + spatial"], "unit": "ms"},
        note=lambda rows: "; ".join(f"{r['net']}, {r['rows']} rows: stationary-x {r['sample over x']}, stationary-w {r['sample over w']} times as fast as by sample (paper up to {r['paper']})"
                                    for r in rows if r["paper"])
        + ". Here a device's rate does not depend on how its layer is cut; the paper's cuDNN loses rate as channels are partitioned (its figure 3), "
        "so gains from channels come out too large. Its 2.4 of WRN-50-2 mix stationary-x and -y.")
def figure_8():
    rows = []
    for net, samples in (("wrn-50-2", 16), ("wrn-50-4", 8)):
        for count in (2, 4, 8, 16):
            row = {"net": net, "rows": count, "batch": samples * count}
            own = machine(net)
            row["sample"] = 1e3 * simulate(net, own, count, samples * count, "data")["step_seconds"]
            for name, kind in (("8 ways x + spatial", "x"), ("4x2 w + spatial", "w")):
                row[name] = 1e3 * simulate(net, own, 8 * count, samples * count, hybrid(net, count, 8, kind))["step_seconds"]
            rows.append(row | {"sample over x": row["sample"] / row["8 ways x + spatial"], "sample over w": row["sample"] / row["4x2 w + spatial"],
                               "paper": PAPER["figure-8"]["most"][net] if count == 16 else None})
    return rows


@figure("channels", "table-1", "Minutes of 90 epochs of ImageNet", "table 1",
        picture={"kind": "bars", "x": ["net"], "series": ["by sample", "paper, by sample", "cut further", "paper, cut further"], "unit": "minutes"},
        note=lambda rows: "By sample is what the machine is calibrated on. Cut further: 4 ways of stationary-x for ResNet-50, 8 for WRN-50-2, 4x2 of stationary-w for WRN-50-4, "
        f"simulated with as many rows as make {LARGEST} devices and taken for all: "
        + ", ".join(f"{r['gain']} times (paper {r['paper, gain']}) for {r['net']}" for r in rows)
        + ". The accuracies need ImageNet and are not repeated here.")
def table_1():
    rows = []
    for net, batch, samples, minutes, cut_minutes, way, top1, top5 in PAPER["table-1"]["rows"]:
        iterations = PAPER["table-1"]["epochs"] * PAPER["table-1"]["images"] / batch
        count, kind = LARGEST // way, "w" if net == "wrn-50-4" else "x"
        own = machine(net)
        by_sample = simulate(net, own, count, samples * count, "data")["step_seconds"] * iterations / 60
        cut = simulate(net, own, LARGEST, samples * count, hybrid(net, count, way, kind))["step_seconds"] * iterations / 60
        rows.append({"net": net, "by sample": by_sample, "paper, by sample": minutes, "cut further": cut, "paper, cut further": cut_minutes,
                     "gain": by_sample / cut, "paper, gain": minutes / cut_minutes, "paper, top-1 %": top1, "paper, top-5 %": top5})
    return rows


if __name__ == "__main__":
    common.main("channels")
