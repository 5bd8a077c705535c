"""Just enough of binary formats to write what is wrong with them."""

import json
import struct


def varint(number):
    groups = [number & 127]
    while number := number >> 7:
        groups.append(number & 127)
    return bytes([group | 128 for group in groups[:-1]] + [groups[-1]])


def field(number, value):
    """A field of a protobuf message: an int, or bytes (a text, a message)."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value % (1 << 64))
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


# Caffe's messages: a layer has name 1, type 2, blobs 7; a net has name 1, layers 100; a blob has data 5, shape 7.
def blob(shape, count):
    dims = b"".join(varint(extent % (1 << 64)) for extent in shape)
    return field(7, field(1, dims)) + field(5, bytes(4 * count))


def caffemodel(*layers):
    """Of (name, type, blobs)."""
    return field(1, "net") + b"".join(
        field(100, field(1, name) + field(2, kind) + b"".join(field(7, one) for one in blobs)) for name, kind, blobs in layers)


def safetensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


# ONNX: a model has ir_version 1, graph 7, opset_import 8; a graph has nodes 1, name 2, initializers 5, inputs 11, outputs 12.
def onnx_value(name, dims):
    shape = b"".join(field(1, field(1, extent)) for extent in dims)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def onnx_node(operator, inputs, outputs, *attributes):
    return (b"".join(field(1, name) for name in inputs) + b"".join(field(2, name) for name in outputs) + field(3, operator + "_node")
            + field(4, operator) + b"".join(field(5, one) for one in attributes))


def onnx_ints(name, values):
    return field(1, name) + b"".join(field(8, value) for value in values) + field(20, 7)


def onnx_tensor(name, dims, data=None, kind=1, external=None):
    text = b"".join(field(1, extent) for extent in dims) + field(2, kind) + field(8, name)
    if external:
        return text + field(14, 1) + b"".join(field(13, field(1, key) + field(2, value)) for key, value in external.items())
    return text + field(9, data if data is not None else b"")


def onnx(nodes, tensors=(), inputs=(("x", (1, 3, 8, 8)),), outputs=(("y", (1, 3, 8, 8)),), opset=13):
    graph = (b"".join(field(1, node) for node in nodes) + field(2, "g") + b"".join(field(5, tensor) for tensor in tensors)
             + b"".join(field(11, onnx_value(*one)) for one in inputs) + b"".join(field(12, onnx_value(*one)) for one in outputs))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, opset))


def png(width, height, depth=8, colour=2, data=b"", crc=None):
    import zlib

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content) if crc is None else crc)

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""))


def jpeg_header(width, height):
    return b"\xff\xd8\xff\xc0\x00\x11\x08" + struct.pack(">HH", height, width) + b"\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01" + b"\xff\xda\x00\x0c\x03\x01\x00\x02\x11\x03\x11\x00\x3f\x00"


def lmdb(page=4096, magic=0xBEEFC0DE, entries=3, root=2, depth=1, keys=(b"a", b"b", b"c"), last=2, lower=None, own_root=False):
    """Two meta pages and a leaf; or, where `own_root`, a branch that names itself."""
    header = lambda number, flags, low, high: struct.pack("<QHHHH", number, 0, flags, low, high)
    nothing, metas = 2**64 - 1, b""
    for number in (0, 1):
        free = struct.pack("<IHHQQQQQ", page, 8, 0, 0, 0, 0, 0, nothing)
        main = struct.pack("<IHHQQQQQ", 0, 0, depth, 0, 1, 0, entries, root)
        metas += (header(number, 8, 0, 0) + struct.pack("<IIQQ", magic, 1, 0, 1 << 22) + free + main + struct.pack("<QQ", last, number)).ljust(4096, b"\0")
    places, nodes, upper = b"", b"", 4096
    for key in keys:
        node = (struct.pack("<HHHH", 2, 0, 0, len(key)) + key) if own_root else (struct.pack("<HHHH", 3, 0, 0, len(key)) + key + b"one")
        node += b"\0" * (len(node) % 2)
        upper -= len(node)
        places, nodes = places + struct.pack("<H", upper), node + nodes
    return metas + (header(2, 1 if own_root else 2, 16 + len(places) if lower is None else lower, upper) + places).ljust(upper, b"\0") + nodes
