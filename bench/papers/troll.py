#!/usr/bin/env python3
"""Figures of Caffe con Troll, each by an option: bench/papers/troll.py --help. Caffe's binary cannot be had here. Two
re-creations of its algorithm for convolutions stand in for it. `--ladder` times the exact one (bench/caffe_bench.cpp):
N x C x H x W, image by image, im2col on one thread in Caffe's order of loops, OpenBLAS on all; it leaves out every layer
that is no convolution. `caffe` of the other figures is the same in our channels-last order inside whole nets, whose other
layers are ours."""

import subprocess

import common
from common import GPU, MEASURED, PUBLISHED, figure
from layers import time_of

PAPER = PUBLISHED["troll"]


def table(*options, program="lowering_bench"):
    """Rows of a table that the program prints as `|`-separated cells."""
    text = subprocess.run([str(common.binaries / program), *options], cwd=common.ROOT, check=True, capture_output=True, text=True).stdout
    keys, rows = None, []
    for line in text.splitlines():
        if not line.startswith("|"):
            keys = None
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if keys is None:
            keys = [f"{cell} {cells[:i].count(cell) + 1}" if cell in cells[:i] else cell for i, cell in enumerate(cells)]
        elif not set(cells[0]) <= set("-:"):
            rows.append(dict(zip(keys, cells)))
    return rows


@figure("troll", "figure-2", "The GEMM of conv3 over images and threads", "figure 2", MEASURED,
        note=lambda rows: "GFLOP/s; a column of 2 threads belongs to the library before it. On two threads OpenBLAS multiplies one image at "
        f"{100 * float(rows[0]['2 threads']) / float(rows[-1]['2 threads']):.0f} % of the rate of {rows[-1]['images']}. In the paper, on 8 cores, one image is too thin for threads.")
def figure_2():
    return table("figure2")


@figure("troll", "figure-3", "Partitions of the batch", "figure 3", MEASURED,
        note=lambda rows: "Milliseconds of both passes of CaffeNet's convolutions, 64 images. On two threads the best is "
        + "{threads} threads in {partitions} partitions, {images at a time} of its images at a time".format_map(min((r for r in rows if r["threads"] == "2"), key=lambda r: float(r["all"]))) + ".")
def figure_3():
    return table("figure3")


@figure("troll", "figure-4a", "One layer on CPU and GPU", "figure 4a", GPU)
def figure_4a():
    return []


def caffenet(batch, kernels):
    net = common.ROOT / "models/caffenet/train_val.prototxt"
    return time_of(net, None, None, "--input-shape", "3x227x227", "--batch", str(batch), *(["--kernels", kernels] if kernels else []))


@figure("troll", "figure-4b", "CaffeNet end to end on this CPU, 256 images", "figure 4b", MEASURED,
        {"kind": "bars", "x": ["convolutions"], "series": ["times Caffe's algorithm", "paper"], "unit": "times"},
        note=lambda rows: "BVLC Caffe's algorithm is re-created here; its BLAS has gained since 2015, so less is left to gain.")
def figure_4b():
    seconds = {name: caffenet(256, kernels) for name, kernels in (("caffe", "caffe"), ("lowering of the batch", "lowering-1"), ("as chosen", None))}
    return [{"convolutions": name, "seconds": value, "images/s": 256 / value, "times Caffe's algorithm": seconds["caffe"] / value,
             "paper": PAPER["figure-4"]["over_caffe"] if name == "lowering of the batch" else None} for name, value in seconds.items()]


@figure("troll", "ladder", "The convolutions of CaffeNet as BVLC Caffe computes them, and ours", "figure 4b", MEASURED,
        {"kind": "bars", "x": ["layer"], "series": ["times Caffe", "implicit times Caffe"], "unit": "times Caffe's algorithm"},
        note=lambda rows: "Caffe's algorithm is re-created (bench/caffe_convolution.h), exactly: image by image, im2col on one thread, OpenBLAS on all, its "
        "order of loops. The program first checks that it computes what our reference kernel does. It leaves out all that is no convolution, and its "
        "OpenBLAS is of today. conv1 wants no gradient of the images, as in training.")
def ladder():
    return table("64", program="caffe_bench")


@figure("troll", "figure-5", "Several GPUs, and a GPU and a CPU", "figure 5", GPU)
def figure_5():
    return []


@figure("troll", "figure-6", "What the three types of lowering cost, for the convolutions of AlexNet", "figure 6",
        picture={"kind": "bars", "x": ["layer"], "series": ["type 1, lowered MB", "type 2, lowered MB", "type 3, lowered MB"], "unit": "MB an image"},
        note=lambda rows: "The paper's formulas for the sizes of its Figure 7, one image, no padding or stride. The operations of type 3 "
        "exceed those of type 1 most for " + max(rows, key=lambda r: float(r["type 3, GFLOP"]) / float(r["type 1, GFLOP"]))["layer"] + ".")
def figure_6():
    rows = []
    for name, (n, k, d, o) in PAPER["figure-7"]["rows"].items():
        m = n - k + 1
        lowered = {1: k * k * d * m * m, 2: k * d * m * n, 3: d * n * n}
        flops = {1: 2 * o * k * k * d * m * m, 2: 2 * o * k * k * d * m * n + m * m * k * o, 3: 2 * o * k * k * d * n * n + m * m * k * k * o}
        rows.append({"layer": name} | {f"type {t}, lowered MB": 4 * lowered[t] / 1e6 for t in lowered} | {f"type {t}, GFLOP": flops[t] / 1e9 for t in flops})
    return rows


@figure("troll", "figure-7", "Sizes of AlexNet's convolutions", "figure 7",
        note=lambda rows: "As `models/caffenet` has them. Its conv2, conv4 and conv5 have two groups, so a filter reads half of the channels; the paper gives all.")
def figure_7():
    shown = common.run("show", "--model", "models/caffenet/train_val.prototxt", "--input-shape", "3x227x227")["layers"]
    rows, height = [], 227
    for layer in shown:
        if layer["type"] == "Convolution":
            outputs, inputs, kernel, _ = layer["weights"].split("x")
            theirs = PAPER["figure-7"]["rows"][layer["name"]]
            rows.append({"layer": layer["name"], "n": height, "k": kernel, "d of a filter": inputs, "o": outputs,
                         **dict(zip(("paper's n", "paper's k", "paper's d", "paper's o"), theirs))})
        extents = layer["output"].split(",")[0].split("x")
        height = extents[2] if len(extents) == 4 else height
    return rows


@figure("troll", "figure-8", "The three types over the numbers of channels", "figure 8", MEASURED,
        note=lambda rows: "Milliseconds of types 1, 2 and 3, and how many times as fast as type 1 is type 3 (1/3): first forward alone, then all passes. d: channels of the "
        "input, o: of the output. As in the paper, the ratio d/o decides: type 3 is ahead where it is large.")
def figure_8():
    return table("figure8")


@figure("troll", "figure-9", "Two parts of this CPU share a batch by p: seconds of the slower part", "appendix B", MEASURED,
        {"kind": "lines", "x": ["p"], "series": ["speedup"], "unit": "times the faster part alone"},
        note=lambda rows: "In place of a GPU and a CPU: the fast part has two threads, the slow part one, each timed alone. "
        f"Best p {max(rows, key=lambda r: float(r['speedup']))['p']}; by FLOPS 0.67.")
def figure_9():
    net, batch, rows = common.ROOT / "models/caffenet/train_val.prototxt", 48, []
    shape = ("--input-shape", "3x227x227")
    alone = time_of(net, 2, None, *shape, "--batch", str(batch))
    for p in (0.5, 0.6, 0.67, 0.75, 0.83, 0.9):
        fast, slow = round(batch * p), batch - round(batch * p)
        seconds = max(time_of(net, 2, None, *shape, "--batch", str(fast)), time_of(net, 1, None, *shape, "--batch", str(slow)))
        rows.append({"p": p, "seconds": seconds, "speedup": alone / seconds})
    return rows


@figure("troll", "price", "What an iteration costs on a CPU over a GPU", "section 3.2",
        note=lambda rows: "From the paper's own hourly prices and speeds (Figure 4b): its text says 2.6. Prices of today's machines go into "
        "`price_per_hour` of a machine file; `cortado plan --sweep` computes with them.")
def price():
    p = PAPER["price"]
    gpu = p["dollars_an_hour"]["g2.2xlarge"]
    return [{"machine": name, "dollars an hour": p["dollars_an_hour"][name], "speed over Caffe's GPU": speed,
             "cost over the GPU": p["dollars_an_hour"][name] / speed / gpu, "paper": p["cpu_over_gpu"] if name == "c4.4xlarge" else None}
            for name, speed in p["over_caffe_gpu"].items()]


if __name__ == "__main__":
    common.main("troll")
