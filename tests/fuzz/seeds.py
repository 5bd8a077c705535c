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
SMALL = 24_000  # bytes of a file that is a good seed


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


def lmdb():
    """Two meta pages, a leaf of three records, and two pages of the third one's value."""
    page, pages = 4096, 5
    header = lambda number, flags, lower, upper: struct.pack("<QHHHH", number, 0, flags, lower, upper)
    database = lambda depth, leaves, more, entries, root: struct.pack("<IHHQQQQQ", page if depth == 0 and entries else 0, 0, depth, 0, leaves, more, entries, root)
    nothing, none = 2**64 - 1, 0
    metas = b""
    for number, transaction in ((0, 0), (1, 1)):
        free = struct.pack("<IHHQQQQQ", page, 8, 0, 0, 0, 0, 0, nothing)  # its pad is the size of a page
        main = database(1, 1, 2, 3, 2) if number else database(0, 0, 0, 0, nothing)
        body = struct.pack("<IIQQ", 0xBEEFC0DE, 1, none, page * 1024) + free + main + struct.pack("<QQ", pages - 1, transaction)
        metas += (header(number, 8, 0, 0) + body).ljust(page, b"\0")
    large, places, nodes, upper = bytes(range(256)) * 20, b"", b"", page
    for key, value, flags in ((b"a", b"one", 0), (b"b", datum(b"123", False), 0), (b"c", struct.pack("<Q", 3), 1)):
        size = len(large) if flags else len(value)
        node = struct.pack("<HHHH", size & 65535, size >> 16, flags, len(key)) + key + value
        node += b"\0" * (len(node) % 2)
        upper -= len(node)
        places, nodes = places + struct.pack("<H", upper), node + nodes
    leaf = header(2, 2, 16 + len(places), upper) + places
    overflow = struct.pack("<QHHI", 3, 0, 4, 2) + large
    return metas + leaf.ljust(upper, b"\0") + nodes + overflow.ljust(2 * page, b"\0")


def wire():
    yield b"\0hello 0123 0 17 host\nhere 1 2 3 waits 0,1 the sum\nhere 2 2 3 works * layer\n"
    yield b"\0goodbye 2 7 a message\nsnapshot /a/b c.safetensors\n"
    yield b"\1" + b"0123456789abcdef 4711 60 10.0.0.1 ::1 127.0.0.1"
    for launcher in ("mpiexec -hosts a,b:2 -ppn 1", "mpirun --host a:2,b:2 -x CORTADO_JOB", "srun -w 'a,b[1-3]'"):
        yield b"\2" + launcher.encode()
    yield b"\3" + b"= BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n---\nPrimary job terminated\n---\nloss: 1.0\n"


def seeds():
    yield "lmdb", "three", lmdb()
    for number, words in enumerate(wire()):
        yield "wire", str(number), words
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
