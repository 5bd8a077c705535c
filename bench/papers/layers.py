"""Nets, and single layers timed on this machine, that several papers' figures need."""

import itertools
import json
import pathlib
import subprocess

import common

NETS = ["alexnet", "vgg-16", "inception-v3"]


def configurations(devices, axes="nchw"):
    """All degrees along the axes whose product is the number of devices."""
    powers = [2 ** i for i in range(devices.bit_length()) if devices % 2 ** i == 0]
    for degrees in itertools.product(powers, repeat=len(axes)):
        product = 1
        for degree in degrees:
            product *= degree
        if product == devices:
            yield {axis: degree for axis, degree in zip(axes, degrees) if degree > 1}


def median_seconds(batch, channels, filters, height, kernel, config, threads=None):
    """Seconds of forward and both backward passes of one device's part of a convolution, on this machine: the part as a
    layer of its own."""
    folder = pathlib.Path(common.scratch.name)
    n, c, r = batch // config.get("n", 1), filters // config.get("c", 1), channels // config.get("r", 1)
    h, w = -(-height // config.get("h", 1)), -(-height // config.get("w", 1))
    (folder / "part.prototxt").write_text(
        'name: "part"\nforce_backward: true\n'
        f'layer {{ name: "data" type: "DummyData" top: "data" dummy_data_param {{ shape {{ dim: {n} dim: {r} dim: {h} dim: {w} }} }} }}\n'
        f'layer {{ name: "target" type: "DummyData" top: "target" dummy_data_param {{ shape {{ dim: {n} dim: {c} dim: {h} dim: {w} }} }} }}\n'
        f'layer {{ name: "part" type: "Convolution" bottom: "data" top: "part" convolution_param {{ num_output: {c} kernel_size: {kernel} pad: {kernel // 2} }} }}\n'
        'layer { name: "loss" type: "EuclideanLoss" bottom: "part" bottom: "target" top: "loss" }\n')
    return time_of(folder / "part.prototxt", threads, "part")


def time_of(net, threads=None, layer=None, *options, iterations=5):
    """Seconds of an iteration, or of one of its layers, by cortado time."""
    out = pathlib.Path(common.scratch.name) / "time.json"
    command = [str(common.cortado), "time", "--model", str(net), "--iterations", str(iterations), "--json", str(out), *options]
    subprocess.run(command + (["--threads", str(threads)] if threads else []), cwd=common.ROOT, check=True, capture_output=True)
    result = json.loads(out.read_text())
    if not layer:
        return result["step_seconds"]
    return sum(row["forward_seconds"] + row["backward_seconds"] for row in result["layers"] if row["name"].startswith(layer))
