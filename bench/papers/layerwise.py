#!/usr/bin/env python3
"""Figures and tables of layer-wise parallelism (Jia et al.), each by an option: bench/papers/layerwise.py --help."""

import common
from common import MEASURED, PUBLISHED, calibrated, figure, one_layer, plan, server_seconds, simulate, text_of
from deepa import P100, p100_host
from layers import NETS, configurations, median_seconds

PAPER = PUBLISHED["layerwise"]
WAYS = ["server", "data", "model", "owt", "auto"]


@figure("layerwise", "figure-1", "conv8 of VGG-16 on four P100s, 128 samples, cut in each way", "section 3",
        picture={"kind": "bars", "x": ["cut"], "series": ["computing, ms", "messages, ms"], "unit": "ms"},
        note=lambda rows: "The roofline gives equal shares equal times; only messages differ. "
        "Figure 1m times our kernels.")
def figure_1():
    rows = []
    for config in configurations(4, "nchwr"):
        forward, backward, messages = one_layer("Convolution", 128, 512, 28, 512, 3, 1, 1, config, P100, 4)
        rows.append({"cut": text_of(config), "computing, ms": 1e3 * (forward + backward), "messages, ms": 1e3 * messages})
    return rows


@figure("layerwise", "figure-1m", "conv8 of VGG-16: one of four devices' part on this machine, 8 samples in all", "section 3", MEASURED,
        {"kind": "bars", "x": ["cut"], "series": ["ms"], "unit": "ms"},
        note=lambda rows: "Without messages. The fastest part is that of " + min(rows, key=lambda r: float(r["ms"]))["cut"] + ", the slowest that of "
        + max(rows, key=lambda r: float(r["ms"]))["cut"] + ": a device's rate depends on how a layer is cut, on a CPU as on the paper's GPUs.")
def figure_1m():
    return [{"cut": text_of(config), "ms": 1e3 * median_seconds(8, 512, 512, 28, 3, config)} for config in configurations(4, "nchwr")]


@figure("layerwise", "figure-3", "Inception-v3's third and last layer by sample on P100s, 512 samples", "section 3",
        picture={"kind": "bars", "x": ["layer", "devices"], "series": ["computing, ms", "communication, ms"], "unit": "ms"},
        note=lambda rows: "The convolution is best on 16, as in the paper. The inner product is best on "
        + min((r for r in rows if r["layer"] == "last"), key=lambda r: float(r["computing, ms"]) + float(r["communication, ms"]))["devices"]
        + " (paper: 4).")
def figure_3():
    rows = []
    for name, arguments in {"third": ("Convolution", 32, 147, 64, 3, 1, 1), "last": ("InnerProduct", 2048, 1, 1000, 1, 1, 0)}.items():
        for devices in (1, 2, 4, 8, 16):
            forward, backward, sums = one_layer(arguments[0], 512, *arguments[1:], {"n": devices}, calibrated(P100, "inception-v3"), devices)
            rows.append({"layer": name, "devices": devices, "computing, ms": 1e3 * (forward + backward), "communication, ms": 1e3 * sums})
    return rows


def most_off(rows):
    """Of auto's scaling from the paper's, in %."""
    return max(abs(100 * (float(r["auto, times one"]) / float(r["paper, times one"]) - 1)) for r in rows if r["paper, times one"])


def throughput(net, devices, way):
    machine, batch = calibrated(P100, net), 32 * devices
    if way == "server":
        return batch / server_seconds(net, machine, devices, batch, p100_host())
    return simulate(net, machine, devices, batch, "single" if devices == 1 else way)["images_per_second"]


@figure("layerwise", "figure-7", "Images a second on 1 to 16 P100s, 32 images each", "section 6.1",
        picture={"kind": "bars", "x": ["net", "devices"], "series": WAYS, "unit": "images/s", "log": True},
        note=lambda rows: "The paper's opponent is its own data parallelism, by a parameter server for each layer, whose messages are hidden in part. `data` "
        "hides all that can be, `server` nothing: the paper's factor should lie between auto over `data` and auto over the best of `server` and `model`. It is "
        + ", ".join(f"{r['paper']} for {r['net']} ({r['auto over data']} and {r['auto over best other']})" for r in rows if r["paper"])
        + ". From 1 to 16: auto "
        + ", ".join(f"{r['auto, times one']} (paper {r['paper, times one']})" for r in rows if r["paper"])
        + ", the best other " + ", ".join(f"{r['best other, times one']} (paper {r['paper, best other']})" for r in rows if r["paper"])
        + f". The paper's own scaling comes out within {most_off(rows):.0f} %.")
def figure_7():
    rows = []
    for net in NETS:
        one = throughput(net, 1, "data")
        for devices in (1, 2, 4, 8, 16):
            of = {way: throughput(net, devices, way) for way in WAYS}
            best, last = max(of["server"], of["model"]), devices == 16
            rows.append({"net": net, "devices": devices, **of, "auto over best other": of["auto"] / best,
                         "paper": PAPER["figure-7"]["over_best_other"][net] if last else None, "auto over data": of["auto"] / of["data"],
                         "auto, times one": of["auto"] / one, "paper, times one": PAPER["scaling"]["auto"][net] if last else None,
                         "best other, times one": best / one, "paper, best other": PAPER["scaling"]["best_other"][net] if last else None})
    return rows


@figure("layerwise", "figure-8", "What all devices send in an iteration, 32 samples each", "section 6.1",
        picture={"kind": "bars", "x": ["net", "devices"], "series": ["data, GB", "owt, GB", "plan, GB"], "unit": "GB", "only": ("machine", "layer-wise-sizes"), "log": True},
        note=lambda rows: "OWT saves " + span(rows, "data over owt") + " times against data parallelism (paper: 1.1 to 23), the plan "
        + span(rows, "owt over plan") + " times against OWT (paper: 1.2 to 2.5). Model parallelism sends "
        + span(rows, "model over plan") + " times what the plan does.")
def figure_8():
    rows = []
    for machine in ("layer-wise-sizes", P100):
        for net in NETS:
            for devices in (4, 16):
                p = plan(net, machine, devices, 32 * devices, "nchw")
                gb = {way: p["baselines"][way]["bytes_per_iteration"] / 1e9 for way in ("data", "model", "owt")} | {"plan": p["bytes_per_iteration"] / 1e9}
                rows.append({"machine": machine, "net": net, "devices": devices, **{f"{way}, GB": value for way, value in gb.items()},
                             "data over owt": gb["data"] / gb["owt"], "owt over plan": gb["owt"] / gb["plan"], "model over plan": gb["model"] / gb["plan"]})
    return rows


def span(rows, key):
    values = sorted((float(r[key]) for r in rows))
    return f"{values[0]:g} to {values[-1]:g}"


@figure("layerwise", "table-1", "What kinds of layers can be cut along", "section 3",
        note=lambda rows: "Found by simulating a layer of each kind cut in two along each dimension. Ours cut along the summed dimension r, too.")
def table_1():
    rows = []
    theirs = {"fully connected": "n c", "1D convolution": "n c w", "2D convolution": "n c h w", "3D convolution": "n c d h w"}
    for kind, dims in (("fully connected", ()), ("1D convolution", (16,)), ("2D convolution", (16, 16)), ("3D convolution", (8, 8, 8))):
        rows.append({"layer": kind, "can be cut along": " ".join(axis for axis in "ncdhwr" if can_cut(dims, axis)), "paper": theirs[kind]})
    return rows


def can_cut(dims, axis):
    """Whether a layer over positions of these extents can be cut along the axis: what cortado says."""
    import json
    import pathlib
    import subprocess
    import tempfile
    folder = pathlib.Path(tempfile.mkdtemp(dir=common.scratch.name))
    shape = " ".join(f"dim: {d}" for d in (4, 8, *dims))
    layer = ("type: \"Convolution\" convolution_param { num_output: 8 kernel_size: 3 pad: 1 }" if dims
             else "type: \"InnerProduct\" inner_product_param { num_output: 8 }")
    (folder / "net.prototxt").write_text(
        f'name: "x"\nlayer {{ name: "data" type: "DummyData" top: "data" top: "target" dummy_data_param {{ shape {{ {shape} }} shape {{ {shape} }} }} }}\n'
        f'layer {{ name: "one" bottom: "data" top: "one" {layer} }}\n'
        'layer { name: "loss" type: "EuclideanLoss" bottom: "one" bottom: "target" top: "loss" }\n')
    (folder / "cut.json").write_text(json.dumps({"format": "cortado-strategy", "version": 1, "layers": {"one": {axis: 2}, "loss": {"n": 2}}}))
    command = [str(common.cortado), "simulate", "--model", folder / "net.prototxt", "--machine", P100, "--devices", "2", "--strategy", folder / "cut.json"]
    return subprocess.run(command, cwd=common.ROOT, capture_output=True).returncode == 0


@figure("layerwise", "table-2", "How the search grows with configurations and layers", "section 5.2", MEASURED,
        {"kind": "lines", "x": ["devices"], "series": ["alexnet, ms", "vgg-16, ms", "inception-v3, ms"], "unit": "ms", "log": True},
        note=lambda rows: "The paper's bound is O(E C^3 + K C^K) with K = 2. Ours is the time of the search alone, by the clock of the plan, "
        "once; it depends on the machine's load.")
def table_2():
    rows = []
    for devices in (1, 2, 4, 8, 16):
        rows.append({"devices": devices} | {f"{net}, ms": 1e3 * plan(net, P100, devices, 32 * devices, "nchw")["search_seconds"] for net in NETS})
    return rows


@figure("layerwise", "table-3", "Time to find the best strategy for four devices", "section 5.2", MEASURED,
        {"kind": "bars", "x": ["net"], "series": ["search, ms", "costs, ms"], "unit": "ms"},
        note=lambda rows: "Search and estimate of costs by the clock of the plan, once, with h and w among the cuts, as in the paper.")
def table_3():
    rows = []
    for net in ("lenet", *NETS):
        shape = {"lenet": "1x28x28"}
        common.SHAPES.update(shape)
        p = plan(net, P100, 4, 128, "nchw")
        paper = PAPER["table-3"]
        rows.append({"net": net, "search, ms": 1e3 * p["search_seconds"], "costs, ms": 1e3 * p["pricing_seconds"], "paper, ms": 1e3 * paper["seconds"][net],
                     "paper's depth-first search": paper["baseline"][net], "layers of the plan": len(p["layers"])})
    return rows


@figure("layerwise", "table-4", "Eq. 1 over a simulated iteration of the same plan, %", "section 6.2",
        picture=None,
        note=lambda rows: "The paper compares Eq. 1 with its runs, where it is within 10 %. Here the other side is the simulation, in which messages hide "
        "under computing: Eq. 1, which hides nothing, is above it by up to " + max((r["Eq. 1 over simulated, %"] for r in rows), key=float)
        + " %. What simulation itself is off by is in [simulation](simulation.md#eight-ranks-over-a-real-network).")
def table_4():
    rows = []
    for net in NETS:
        for index, devices in enumerate((1, 2, 4, 8, 16)):
            machine = calibrated(P100, net)
            p = plan(net, machine, devices, 32 * devices, "nchw")
            simulated = simulate(net, machine, devices, 32 * devices, "auto" if devices > 1 else "single")["step_seconds"]
            rows.append({"net": net, "devices": devices, "Eq. 1, ms": 1e3 * p["cost_seconds"], "simulated, ms": 1e3 * simulated,
                         "Eq. 1 over simulated, %": 100 * (p["cost_seconds"] / simulated - 1), "paper, %": PAPER["table-4"]["percent"][net][index]})
    return rows


@figure("layerwise", "table-5", "VGG-16 on four P100s, 128 samples", "section 6.3",
        note=lambda rows: "With the paper's way to cost transfers (`layer-wise-sizes`) the inner products are cut as in the paper. conv5 stays by sample: "
        "halos between its layers cost more than they save, and by a roofline equal shares take equal times.")
def table_5():
    rows = []
    plans = {name: {l["name"]: text_of(l["config"]) for l in plan("vgg-16", machine, 4, 128, dimensions)["layers"]}
             for name, machine, dimensions in (("layer-wise-sizes, nchw", "layer-wise-sizes", "nchw"), ("layer-wise-p100, nchw", P100, "nchw"),
                                               ("layer-wise-p100, all", P100, None))}
    for layer in next(iter(plans.values())):
        theirs = PAPER["table-5"].get(layer, PAPER["table-5"].get(layer[:5], ""))
        rows.append({"layer": layer, **{name: cuts.get(layer, "") for name, cuts in plans.items()}, "paper": theirs})
    return rows


if __name__ == "__main__":
    common.main("layerwise")
