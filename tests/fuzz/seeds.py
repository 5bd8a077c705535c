#!/usr/bin/env python3
"""Writes small files of each kind that a fuzzer begins with: FOLDER/TARGET/...

    seeds.py FOLDER

ONNX models are those of tests/onnx, where Debian's python3-torch and python3-onnx are; else that fuzzer begins from nothing.
"""

import json
import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = 20_000  # bytes of a file that is a good seed


def safetensors(tensors, metadata=None):
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name, (kind, size, shape) in tensors.items():
        length = size
        for extent in shape:
            length *= extent
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + length]}
        at += length
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(at)


def datum(image, encoded):
    """channels, height, width, data, label, encoded: Caffe's fields 1 to 5 and 7."""
    def varint(number):
        groups = [number & 127]
        while number := number >> 7:
            groups.append(number & 127)
        return bytes([group | 128 for group in groups[:-1]] + [groups[-1]])

    return b"\x08\x03\x10\x04\x18\x04\x22" + varint(len(image)) + image + b"\x28\x02" + (b"\x38\x01" if encoded else b"")


def onnx_models():
    sys.path.insert(0, str(ROOT / "tests/onnx"))
    try:
        from operators_as_pytorch import FAMILIES
    except SystemExit:
        return
    for family in FAMILIES:
        for case in family():
            yield case.name, case.model()[0].SerializeToString()


def seeds():
    for path in [*ROOT.glob("models/*/train_val.prototxt"), *ROOT.glob("examples/**/*.prototxt")]:
        yield "prototxt", f"{path.parent.name}_{path.name}", path.read_bytes()
    for path in [*ROOT.glob("tests/python/*.caffemodel"), *ROOT.glob("tests/python/*.solverstate"), *ROOT.glob("tests/**/*.binaryproto")]:
        yield "caffemodel", path.name, path.read_bytes()
    for path in ROOT.glob("machines/*.json"):
        yield "machine", path.name, path.read_bytes()
    for path in ROOT.glob("examples/strategies/*.json"):
        yield "strategy", path.name, path.read_bytes()
    for path in (ROOT / "tests/data/images").glob("*.[jp]*g"):
        yield "datum", path.name, datum(path.read_bytes(), True)
    yield "datum", "plain", datum(bytes(range(48)), False)
    for path in (ROOT / "tests/data/leveldb").glob("*/*"):
        for kind in range(5):
            yield "leveldb", f"{path.parent.name}_{path.name}_{kind}", bytes([kind]) + path.read_bytes()
    yield "windows", "two", b"# 0\na.jpg\n3\n30\n40\n2\n1 0.9 2 3 20 25\n0 0.1 0 0 39 29\n# 1\nb.jpg\n3\n30\n40\n0\n"
    for order in "<>":
        header = struct.pack(order + "i36x8h14x2h34x3f224x4s4x", 348, 3, 4, 3, 2, 1, 1, 1, 1, 16, 32, 352, 0, 0, b"n+1")
        yield "volume", "little" if order == "<" else "big", header + bytes(96)
    yield "safetensors", "two", safetensors({"a/weight": ("F32", 4, (2, 3)), "a/bias": ("F32", 4, (3,))}, {"format": "pt"})
    yield "safetensors", "types", safetensors({"n": ("I64", 8, ()), "h": ("F16", 2, (3,)), "e": ("F32", 4, (0, 2))})
    yield "safetensors", "golden", (ROOT / "tests/golden/layers.safetensors").read_bytes()
    for name, model in onnx_models():
        yield "onnx", name, model


def main():
    folder, count = pathlib.Path(sys.argv[1]), {}
    for target, name, data in seeds():
        if len(data) > SMALL:
            continue
        (folder / target).mkdir(parents=True, exist_ok=True)
        (folder / target / name).write_bytes(data)
        count[target] = count.get(target, 0) + 1
    print("seeds:", ", ".join(f"{target} {number}" for target, number in sorted(count.items())))


if __name__ == "__main__":
    main()
