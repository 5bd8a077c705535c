"""Reads and writes safetensors files of float32 tensors: 8 bytes of little-endian header length, a JSON header,
then the tensors' data, row-major and little-endian."""

import json
import struct

import numpy


def write(path, tensors, metadata=None):
    """tensors: {name: array}; metadata: {text: text}."""
    header, offset = {"__metadata__": metadata} if metadata else {}, 0
    arrays = {name: numpy.array(values, dtype="<f4", order="C") for name, values in tensors.items()}
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the data starts aligned
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            file.write(array.tobytes())


def read(path):
    """({name: array}, metadata)"""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = numpy.frombuffer(data[begin:end], "<f4").reshape(entry["shape"])
    return tensors, metadata
