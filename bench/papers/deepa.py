#!/usr/bin/env python3
"""Figures and tables of DeePa, each by an option: bench/papers/deepa.py --help."""

import functools
import json
import re
import subprocess

import common
from common import MEASURED, PUBLISHED, calibrated, figure, host_for, message_for, one_layer, plan, server_seconds, simulate, text_of
from layers import NETS, configurations, median_seconds

PAPER = PUBLISHED["deepa"]
K80, P100 = "deepa-k80", "layer-wise-p100"
SERVERS = PUBLISHED["servers"]["images_per_second"]
ONE_LINK = PAPER["host_gb_per_s"]["value"]


def worst(rows, net):
    """How far the predictions of a net are from the paper's, in %."""
    return max(abs(100 * (float(r["auto over server"]) / float(r["paper"]) - 1)) for r in rows if r["net"] == net and r["paper"])


@functools.lru_cache(maxsize=None)
def k80_host():
    """GB/s of a host's memory for all its K80s, by one data-parallel point: VGG-16 on 8 of them by parameter servers in
    that memory, as TensorFlow's benchmarks published it."""
    point = SERVERS["vgg-16"]
    return host_for(8 * point["batch"] / point["8"], "vgg-16", calibrated(K80, "vgg-16"), 8, 8 * point["batch"])


@functools.lru_cache(maxsize=None)
def p100_host():
    """The hosts' bandwidth at which four P100s take the 10 % more than DeePa's 0.34 s (appendix A.3) that its data
    parallelism gains over the frameworks: a data-parallel point."""
    return host_for(1.1 * PAPER["figure-15"]["data_seconds"], "vgg-16", calibrated(P100, "vgg-16"), 4, 128)


@figure("deepa", "servers", "Parameter servers on 1 to 8 K80s: what TensorFlow published and what `server` predicts", "TensorFlow's benchmarks, May 2017",
        picture={"kind": "lines", "x": ["devices"], "series": [f"{net}, {who}" for net in NETS for who in ("published", "predicted")], "unit": "images/s", "log": True},
        note=lambda rows: f"Its servers lay in CPU memory, as the paper's. One point, VGG-16 on 8, is fitted: {rows[-1]['host GB/s']} GB/s between the host's memory and all "
        "its devices. The other points on two or more are predicted, within "
        f"{max(abs(float(r[f'{net}, off %'])) for r in rows for net in NETS):.1f} %. So the strategy `server` is what such servers take.")
def servers():
    rows = []
    for devices in (1, 2, 4, 8):
        row = {"devices": devices}
        for net in NETS:
            batch = devices * SERVERS[net]["batch"]
            published = SERVERS[net][str(devices)]
            predicted = batch / server_seconds(net, calibrated(K80, net), devices, batch, k80_host())
            row |= {f"{net}, published": published, f"{net}, predicted": predicted, f"{net}, off %": 100 * (predicted / published - 1)}
        rows.append(row | {"host GB/s": k80_host()})
    return rows


# Layers of the paper's Table 1: input channels, filters, height, kernel.
LAYERS = {"C1": (128, 128, 112, 3), "C2": (512, 512, 28, 3), "C3": (192, 64, 35, 1), "C4": (48, 64, 35, 5), "C5": (64, 192, 27, 5),
          "C6": (256, 256, 13, 3), "C7": (32, 64, 147, 3), "C8": (448, 384, 8, 3)}


@figure("deepa", "figure-1", "One layer cut in different ways over four devices: throughput of computing", "p. 2", MEASURED,
        {"kind": "bars", "x": ["layer"], "series": ["by sample over worst", "best over worst"], "unit": "times the worst"},
        note=lambda rows: "One of four devices' part, timed on this machine without messages: convolutions of Inception-v3, VGG-16 and AlexNet, 32 images in all. "
        "By sample is the best way of " + (", ".join(r["layer"] for r in rows if r["best"] == "n4") or "none") + ". The best way is up to "
        + max((r["best over worst"] for r in rows), key=float) + " times as fast as the worst; how far ways differ on the paper's GPUs its text does not give.")
def figure_1():
    rows = []
    for name, (channels, filters, height, kernel) in LAYERS.items():
        seconds = {text_of(config): median_seconds(32, channels, filters, height, kernel, config) for config in configurations(4)
                   if channels % config.get("r", 1) == 0}
        worst, best = max(seconds.values()), min(seconds, key=seconds.get)
        rows.append({"layer": name, "by sample over worst": worst / seconds["n4"], "best over worst": worst / seconds[best],
                     "best": best, "worst": max(seconds, key=seconds.get), "by sample, ms": 1e3 * seconds["n4"]})
    return rows


@figure("deepa", "figure-2", "Three layers of Inception-v3 by sample, 512 images: computing and sums of gradients", "p. 2",
        picture={"kind": "bars", "x": ["layer", "devices"], "series": ["computing, ms", "sums, ms"], "unit": "ms"},
        note=lambda rows: "The convolutions gain from every device. The last layer is best on "
        + min((r for r in rows if r["layer"] == "fc"), key=lambda r: float(r["computing, ms"]) + float(r["sums, ms"]))["devices"]
        + " here, on four in the paper: its sums were those of a server, ours are rings.")
def figure_2():
    rows = []
    for name, arguments in {"C7": ("Convolution", 32, 147, 64, 3, 1, 1), "C8": ("Convolution", 448, 8, 384, 3, 1, 1),
                            "fc": ("InnerProduct", 2048, 1, 1000, 1, 1, 0)}.items():
        for devices in (1, 2, 4, 8, 16):
            forward, backward, sums = one_layer(arguments[0], 512, *arguments[1:], {"n": devices}, calibrated(K80, "inception-v3"), devices)
            rows.append({"layer": name, "devices": devices, "computing, ms": 1e3 * (forward + backward), "sums, ms": 1e3 * sums})
    return rows


def throughputs(net, name, devices, batch, server):
    """Images a second by the ways of the paper's Figures 7, 13 and 14."""
    machine = calibrated(name, net)
    of = {"server": batch / server_seconds(net, machine, devices, batch, server)}
    for way, strategy, options in (("data, not hidden", "data", ("--gradient-chunks", "one", "--no-late-updates")),
                                   ("data", "data", ()), ("owt", "owt", ()), ("auto", "auto", ())):
        of[way] = simulate(net, machine, devices, batch, "single" if devices == 1 else strategy, *options)["images_per_second"]
    return of


WAYS = ["server", "data, not hidden", "data", "owt", "auto"]


@figure("deepa", "figure-7", "16 K80, 512 images: images a second", "p. 7",
        picture={"kind": "bars", "x": ["net"], "series": WAYS, "unit": "images/s", "log": True},
        note=lambda rows: "Against the paper's opponent, parameter servers in host memory, `auto` is "
        + ", ".join(f"{r['auto over server']} times as fast for {r['net']} (paper {r['paper']})" for r in rows)
        + f". The host is TensorFlow's (above), {rows[0]['host GB/s']} GB/s. The paper's factors need {', '.join(r['GB/s for the factor'] for r in rows)}. With one host of "
        f"{rows[0]['fitted GB/s']}, fitted to AlexNet's and VGG-16's factors, they are " + ", ".join(r["auto over server, fitted"] for r in rows)
        + ". So for these two the deviation is the bandwidth of the paper's host, whose memory 16 devices share. Inception-v3 has few bytes and many parameters, each a "
        f"message of each device: {rows[-1]['us a message for the factor']} us a message, in place of 10, give its factor. "
        f"With the {ONE_LINK:g} GB/s by which the paper costs a transfer (Table 2) they would be " + ", ".join(r["by one link"] for r in rows)
        + ": that is one link's rate, and 16 devices have several. Against rings that are hidden under computing `auto` gains "
        + ", ".join(f"{r['auto over data']}" for r in rows) + " times. Hiding alone gains "
        + ", ".join(f"{r['hiding gains, %']} %" for r in rows) + " (paper: 10 to 30).")
def figure_7():
    paper, rows = PAPER["figure-7"]["over_frameworks"], []
    of = {net: throughputs(net, K80, 16, 512, k80_host()) for net in NETS}
    needed = {net: host_for(512 / of[net]["auto"] * paper[net], net, calibrated(K80, net), 16, 512) for net in NETS}
    fitted = (needed["alexnet"] * needed["vgg-16"]) ** 0.5
    for net in NETS:
        factor = lambda host: of[net]["auto"] * server_seconds(net, calibrated(K80, net), 16, 512, host) / 512
        rows.append({"net": net, **of[net], "auto over server": factor(k80_host()), "paper": paper[net], "GB/s for the factor": needed[net],
                     "auto over server, fitted": factor(fitted), "us a message for the factor": message_for(512 / of[net]["auto"] * paper[net], net, calibrated(K80, net), 16, 512, fitted)
                     if net == "inception-v3" else None, "by one link": factor(ONE_LINK), "auto over data": of[net]["auto"] / of[net]["data"],
                     "owt over data": of[net]["owt"] / of[net]["data"], "paper's owt over data": PAPER["figure-7"]["owt_over_data"][net],
                     "host GB/s": k80_host(), "fitted GB/s": fitted, "hiding gains, %": 100 * (of[net]["data"] / of[net]["data, not hidden"] - 1)})
    return rows


@figure("deepa", "figure-8", "What 16 devices send in an iteration of 512 images", "p. 7",
        picture={"kind": "bars", "x": ["net"], "series": ["data, GB", "owt, GB", "plan, GB"], "unit": "GB", "only": ("machine", "deepa-tables")},
        note=lambda rows: "`deepa-tables` has the paper's own costs of transfers (Tables 2 and 3): there the plan sends up to "
        + max((r for r in rows if r["machine"] == "deepa-tables"), key=lambda r: float(r["data over plan"]))["data over plan"]
        + " times less than data parallelism (paper: up to 23). With the links of the data sheets it pays less to send less. "
        "AlexNet's factor exceeds the paper's since by those costs the plan leaves 12 of the 16 devices out (figure 9).")
def figure_8():
    rows = []
    for machine in ("deepa-tables", K80):
        for net in NETS:
            p = plan(net, machine, 16, 512, "nchw")
            data, owt, own = (x / 1e9 for x in (p["baselines"]["data"]["bytes_per_iteration"], p["baselines"]["owt"]["bytes_per_iteration"],
                                                p["bytes_per_iteration"]))
            rows.append({"machine": machine, "net": net, "data, GB": data, "owt, GB": owt, "plan, GB": own, "data over plan": data / own,
                         "data over owt": data / owt, "owt over plan": owt / own,
                         "paper": "1.05-8.4 (data/owt), 1.2-2.7 (owt/plan), to 23"})
    return rows


def configurations_of(net):
    """The plan by the paper's costs, layer by layer, beside the paper's."""
    theirs = PAPER["configurations"].get(net, {})
    rows = []
    for layer in plan(net, "deepa-tables", 16, 512, "nchw")["layers"]:
        kind = next((theirs[k] for k in (layer["name"], layer["name"][:5], layer["name"][:4]) if k in theirs), "")
        rows.append({"layer": layer["name"], "with": " ".join(layer["with"]), "plan": text_of(layer["config"]),
                     "devices": len(layer["devices"]), "paper": kind})
    return rows


def differing(rows):
    others = [r["layer"] for r in rows if r["paper"] and r["paper"] != r["plan"]]
    return f"Layers that differ: {', '.join(others) or 'none'}. "


@figure("deepa", "figure-9", "AlexNet's configurations on 16 devices", "p. 8", picture=None,
        note=lambda rows: differing(rows) + "Convolutions run on 4 devices, since their sums over 16 cost more by these costs than they gain "
        "in computing; the paper keeps all.")
def figure_9():
    return configurations_of("alexnet")


@figure("deepa", "figure-10", "VGG-16's configurations on 16 devices", "p. 8", picture=None,
        note=lambda rows: differing(rows) + "conv5 runs on four devices, as in the paper, by sample: see Table 3.")
def figure_10():
    return configurations_of("vgg-16")


@figure("deepa", "figure-11", "Inception-v3's configurations on 16 devices", "p. 9", picture={"kind": "bars", "x": ["plan"], "series": ["layers"], "unit": "layers"},
        note=lambda rows: "How many layers have each configuration: " + ", ".join(f"{r['plan']} ({r['layers']})" for r in rows[:4]) + ".")
def figure_11():
    counts = {}
    for row in configurations_of("inception-v3"):
        counts.setdefault(row["plan"], []).append(row["layer"])
    return [{"plan": config, "layers": len(names), "first": names[0], "last": names[-1]} for config, names in counts.items()]


@figure("deepa", "figure-12", "The branches of Inception-v3's module E1 on 16 devices", "p. 9", picture=None,
        note=lambda rows: "The paper puts branches on different devices. Our candidates always use devices from 0 on, so branches share them.")
def figure_12():
    rows = [r for r in configurations_of("inception-v3") if re.match(r"(mixed_?7b|Mixed_7b|mixed8|inception_e1|e1)", r["layer"])]
    return rows or configurations_of("inception-v3")[-30:-4]


@figure("deepa", "figure-13", "16 K80 with other sizes of batches: auto over parameter servers", "p. 10",
        picture={"kind": "lines", "x": ["batch"], "series": NETS, "unit": "times as fast"},
        note=lambda rows: "The paper's factors stay within 4.6 to 6.5, 1.6 to 1.9 and 1.2 to 1.5. With nothing hidden the servers' part must shrink as the "
        "batch grows, and does. That the paper's factors stay means that its frameworks lost time that grows with the batch, which parameters do not.")
def figure_13():
    rows = []
    for batch in (256, 512, 1024, 2048):
        row = {"batch": batch}
        for net in NETS:
            of = throughputs(net, K80, 16, batch, k80_host())
            row[net] = None if batch == 2048 and net != "alexnet" else of["auto"] / of["server"]
        rows.append(row)
    return rows


@figure("deepa", "figure-14", "Weak scaling on P100s, 32 images each: images a second", "p. 10",
        picture={"kind": "bars", "x": ["net", "devices"], "series": ["server", "data", "auto"], "unit": "images/s", "log": True},
        note=lambda rows: "The servers' host bandwidth is fitted to one data-parallel point, VGG-16 on four P100s (1.1 times the 0.34 s of appendix A.3). "
        "Everything else is predicted: auto over servers "
        + ", ".join(f"{r['auto over server']} for {r['net']} on {r['devices']} (paper {r['paper']})" for r in rows if r["paper"])
        + f". VGG-16 is off by up to {worst(rows, 'vgg-16'):.0f} %, AlexNet by up to {worst(rows, 'alexnet'):.0f} %, Inception-v3 by "
        f"{worst(rows, 'inception-v3'):.0f}. AlexNet's share of 32 images takes a device {1e3 * 32 / PUBLISHED['single-device'][P100]['alexnet']['images_per_second']:.0f} ms "
        f"by TensorFlow's point, which has 512 images: see figure 14b. Inception-v3 falls short as on K80s, where a longer message explains it (figure 7).")
def figure_14():
    rows, server = [], p100_host()
    for net in NETS:
        for devices in (1, 4, 8, 16):
            of = throughputs(net, P100, devices, 32 * devices, server)
            paper = {4: "one_node", 16: "four_nodes"}.get(devices)
            rows.append({"net": net, "devices": devices, "server": of["server"], "data": of["data"], "owt": of["owt"], "auto": of["auto"],
                         "auto over server": of["auto"] / of["server"], "paper": PAPER["figure-14"][paper][net] if paper else None,
                         "auto over data": of["auto"] / of["data"]})
    return rows


@figure("deepa", "figure-14b", "AlexNet on P100s if one device trained it more slowly: auto over parameter servers", "p. 10",
        picture={"kind": "lines", "x": ["one device, images/s"], "series": ["4 devices", "16 devices", "paper, 4", "paper, 16"], "unit": "times as fast"},
        note=lambda rows: "The only single-device point of AlexNet, TensorFlow's, has a batch of 512, the paper's devices 32. The paper's two factors come out together, "
        f"within {least_off(rows)[0]:.0f} %, at {least_off(rows)[1]} images a second of a device: so it is the single device's rate that the calibration has wrong, not the servers'. "
        f"The axis of the paper's figure ends at {PAPER['figure-14']['axis_images_per_second']} images a second for 16 devices.")
def figure_14b():
    rows, paper = [], PAPER["figure-14"]
    for rate in (PUBLISHED["single-device"][P100]["alexnet"]["images_per_second"], 2000, 1500, 1150, 1000, 800):
        machine = common.calibrated_to(P100, "alexnet", 32, rate)
        factor = lambda devices: (server_seconds("alexnet", machine, devices, 32 * devices, p100_host())
                                  / simulate("alexnet", machine, devices, 32 * devices)["step_seconds"])
        rows.append({"one device, images/s": rate, "4 devices": factor(4), "16 devices": factor(16), "paper, 4": paper["one_node"]["alexnet"],
                     "paper, 16": paper["four_nodes"]["alexnet"]})
    return rows


def least_off(rows):
    """(how far the worse of both factors is from the paper's in %, images a second) where that is least."""
    off = lambda r: max(abs(100 * (float(r[f"{n} devices"]) / float(r[f"paper, {n}"]) - 1)) for n in (4, 16))
    best = min(rows, key=off)
    return off(best), best["one device, images/s"]


@figure("deepa", "figure-15", "Timeline of VGG-16, 128 images on four P100s", "p. 12",
        picture={"kind": "spans", "lane": "lane", "start": "begin, ms", "length": "takes, ms", "colour_of": "what"},
        note=lambda rows: "Rank 0's two lanes under `data` and under the plan without cuts of space. The table below has the seconds and bytes of both.")
def figure_15():
    rows = []
    for strategy in ("data", "owt"):
        for event in timeline("vgg-16", calibrated(P100, "vgg-16"), 4, 128, strategy):
            if event["pid"] == 0 and event["dur"] > 200:
                rows.append({"lane": f"{strategy} {'messages' if event['tid'] else 'computing'}", "what": event["cat"], "step": event["name"],
                             "begin, ms": event["ts"] / 1e3, "takes, ms": event["dur"] / 1e3})
    return rows


def timeline(net, machine, devices, batch, strategy):
    path = f"{common.scratch.name}/trace.json"
    command = [str(common.cortado), "simulate", *common.model(net), "--machine", machine, "--devices", str(devices), "--batch", str(batch),
               "--strategy", strategy, "--trace", path]
    subprocess.run(command, cwd=common.ROOT, check=True, capture_output=True)
    with open(path) as file:
        return [e for e in json.load(file)["traceEvents"] if e["ph"] == "X"]


@figure("deepa", "figure-15b", "The iteration of Figure 15: seconds and bytes", "p. 12",
        picture={"kind": "bars", "x": ["way"], "series": ["seconds", "paper, seconds"], "unit": "s"},
        note=lambda rows: "The paper's data parallelism does not hide its 4 GB; hidden rings do (`data`). With nothing hidden and the hosts' "
        "servers it takes what it was fitted to.")
def figure_15b():
    machine, paper = calibrated(P100, "vgg-16"), PAPER["figure-15"]
    data = simulate("vgg-16", machine, 4, 128, "data")
    owt = simulate("vgg-16", machine, 4, 128, "owt")
    auto = simulate("vgg-16", machine, 4, 128, "auto")
    server = simulate("vgg-16", common.with_host(machine, p100_host()), 4, 128, "server")
    return [{"way": "server", "seconds": server["step_seconds"], "paper, seconds": 1.1 * paper["data_seconds"],
             "GB": server["bytes_per_iteration"] / 1e9, "paper, GB": None},
            {"way": "data", "seconds": data["step_seconds"], "paper, seconds": paper["data_seconds"], "GB": data["bytes_per_iteration"] / 1e9,
             "paper, GB": paper["data_gb"]},
            {"way": "owt", "seconds": owt["step_seconds"], "paper, seconds": None, "GB": owt["bytes_per_iteration"] / 1e9, "paper, GB": None},
            {"way": "auto", "seconds": auto["step_seconds"], "paper, seconds": paper["plan_seconds"], "GB": auto["bytes_per_iteration"] / 1e9,
             "paper, GB": paper["plan_gb"]}]


@figure("deepa", "figure-16", "ImageNet-22K: 21,841 classes on 16 K80, 512 images", "p. 13, appendix A.4",
        picture={"kind": "bars", "x": ["net"], "series": ["server loses, %", "data loses, %", "auto loses, %"], "unit": "% of images/s"},
        note=lambda rows: "The paper's frameworks lose 20 to 45 %: `server` loses " + ", ".join(r["server loses, %"] for r in rows)
        + " %. DeePa loses 3 %, `auto` " + ", ".join(r["auto loses, %"] for r in rows)
        + " %. Bytes grow by what the larger layer's sums move, unless the plan cuts it by channel, which it does only where that saves time.")
def figure_16():
    rows = []
    for net in NETS:
        small, large = net, wide(net)
        machine = calibrated(K80, net)
        of = {}
        for name, which in (("small", small), ("large", large)):
            of[name] = {"server": server_seconds(which, machine, 16, 512, k80_host()),
                        "data": simulate(which, machine, 16, 512, "data"), "auto": simulate(which, machine, 16, 512, "auto")}
        seconds = lambda name, way: of[name][way] if way == "server" else of[name][way]["step_seconds"]
        gb = lambda name, way: of[name][way]["bytes_per_iteration"] / 1e9
        rows.append({"net": net, **{f"{way} loses, %": 100 * (1 - seconds("small", way) / seconds("large", way)) for way in ("server", "data", "auto")},
                     "paper, frameworks": "20-45", "paper, DeePa": 3, "data grows, GB": gb("large", "data") - gb("small", "data"),
                     "auto grows, GB": gb("large", "auto") - gb("small", "auto"), "data over auto, bytes": gb("large", "data") / gb("large", "auto"),
                     "paper, bytes": "3.7-44.5"})
    return rows


def wide(net):
    """The net with 21,841 classes."""
    text = (common.ROOT / f"models/{net}/train_val.prototxt").read_text()
    path = f"{common.scratch.name}/{net}.22k.prototxt"
    with open(path, "w") as file:
        file.write(re.sub(r"num_output: 1000\b", "num_output: 21841", text))
    common.SHAPES[path] = common.SHAPES.get(net, "3x224x224")
    return path


def table_of(title, paper):
    """A table that plan_papers prints, beside the paper's columns."""
    text = subprocess.run([str(common.binaries / "plan_papers")], cwd=common.ROOT, check=True, capture_output=True, text=True).stdout
    lines = text[text.index(title):].split("\n\n")[0].splitlines()[2:]
    rows = []
    for line, (config, *theirs) in zip(lines, paper["rows"]):
        transfer, compute, sums, total = (float(x) for x in line.split("|")[0].split()[-4:])
        rows.append({"cut": config, "transfer, ms": transfer, "paper's transfer": theirs[0], "computing, ms": compute,
                     "paper's computing": theirs[1], "sums, ms": sums, "paper's sums": theirs[2], "total, ms": total, "paper's total": theirs[3]})
    return rows


@figure("deepa", "table-2", "AlexNet's first inner product, 512 samples on 16 devices", "p. 8",
        picture={"kind": "bars", "x": ["cut"], "series": ["total, ms", "paper's total"], "unit": "ms"},
        note=lambda rows: "The order is the paper's. Computing holds the update of the parameters, which the paper leaves out.")
def table_2():
    return table_of("DeePa, Table 2", PAPER["table-2"])


@figure("deepa", "table-3", "VGG-16's last three convolutions on 16 devices", "p. 9",
        picture={"kind": "bars", "x": ["cut"], "series": ["total, ms", "paper's total"], "unit": "ms"},
        note=lambda rows: f"Four devices are best, as in the paper, but by sample ({rows[2]['total, ms']} ms), not in space "
        f"({rows[3]['total, ms']}): our transfers hold the halos between these layers, "
        f"{float(rows[3]['transfer, ms']) - float(rows[2]['transfer, ms']):.0f} ms; the paper counts none between layers of one configuration.")
def table_3():
    return table_of("DeePa, Table 3", PAPER["table-3"])


if __name__ == "__main__":
    common.main("deepa")
