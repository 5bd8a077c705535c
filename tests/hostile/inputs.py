"""Files that were made to do harm, and the command that reads each."""

import dataclasses
import json
import struct

import formats
from formats import field, varint

NET = """name: "net"
layer { name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } shape { dim: 2 } data_filler { type: "gaussian" } data_filler { value: 1 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "fc" type: "InnerProduct" bottom: "conv" top: "fc" inner_product_param { num_output: 3 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" top: "loss" }
"""
SOLVER = 'net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 1 snapshot_prefix: "s"\n'
TRAIN = ["train", "--solver", "solver.prototxt"]
SHOW = ["show", "--model", "net.prototxt"]


@dataclasses.dataclass
class Case:
    name: str
    files: dict  # path to bytes or text
    words: list

    def write(self, folder):
        for path, content in self.files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if file.is_dir():
                file.rmdir()
            file.write_bytes(content.encode() if isinstance(content, str) else content)


def write_good(folder):
    (folder / "net.prototxt").write_text(NET)
    (folder / "solver.prototxt").write_text(SOLVER)


def layer(text, **replaced):
    """NET with its second layer replaced."""
    lines = NET.splitlines(keepends=True)
    return "".join(lines[:3]) + text + "\n" + "".join(lines[4:])


def nets():
    conv = 'layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param { %s } }'
    yield "nested", NET + "layer { " * 100_000
    yield "open_brace", NET + "layer {"
    yield "open_text", NET + 'layer { name: "x'
    yield "zero_bytes", NET.encode() + b"\0" * 1000
    yield "not_utf8", NET.encode() + b'layer { name: "\xff\xfe" type: "\xc3" }'
    yield "long_name", NET + 'layer { name: "%s" type: "ReLU" bottom: "fc" top: "r" }' % ("n" * 1_000_000)
    yield "many_layers", "layer { }\n" * 300_000
    yield "unknown_type", layer('layer { name: "conv" type: "Convolutoin" bottom: "data" top: "conv" }')
    yield "unknown_field", NET + 'layer { name: "x" tpye: "ReLU" }'
    yield "unknown_bottom", layer('layer { name: "conv" type: "ReLU" bottom: "dta" top: "conv" }')
    yield "own_bottom", layer('layer { name: "conv" type: "Convolution" bottom: "conv" top: "conv" convolution_param { num_output: 4 kernel_size: 3 } }')
    yield "same_top", NET + 'layer { name: "x" type: "Convolution" bottom: "data" top: "conv" convolution_param { num_output: 4 kernel_size: 3 } }'
    for name, text in (("no_outputs", "kernel_size: 3"), ("zero_outputs", "num_output: 0 kernel_size: 3"), ("huge_outputs", "num_output: 4294967295 kernel_size: 3"),
                       ("negative_outputs", "num_output: -1 kernel_size: 3"), ("zero_kernel", "num_output: 4 kernel_size: 0"), ("no_kernel", "num_output: 4"),
                       ("huge_kernel", "num_output: 4 kernel_size: 4294967295"), ("zero_stride", "num_output: 4 kernel_size: 3 stride: 0"),
                       ("zero_group", "num_output: 4 kernel_size: 3 group: 0"), ("group_of_3_for_4", "num_output: 4 kernel_size: 3 group: 3"),
                       ("huge_pad", "num_output: 4 kernel_size: 3 pad: 4294967295"), ("large_pad", "num_output: 4 kernel_size: 3 pad: 2000000000"),
                       ("zero_dilation", "num_output: 4 kernel_size: 3 dilation: 0"), ("huge_dilation", "num_output: 4 kernel_size: 3 dilation: 4294967295"),
                       ("axis_beyond", "num_output: 4 kernel_size: 3 axis: 9"), ("many_kernels", "num_output: 4 " + "kernel_size: 3 " * 1000),
                       ("unknown_filler", 'num_output: 4 kernel_size: 3 weight_filler { type: "random" }'),
                       ("nan_filler", 'num_output: 4 kernel_size: 3 weight_filler { type: "gaussian" std: -1 }')):
        yield "conv_" + name, layer(conv % text)
    shapes = {"zero_batch": "dim: 0 dim: 3 dim: 8 dim: 8", "negative": "dim: -1 dim: 3 dim: 8 dim: 8", "huge": "dim: 9223372036854775807 dim: 3 dim: 8 dim: 8",
              "product_overflows": "dim: 4294967296 dim: 4294967296 dim: 4294967296 dim: 2", "tera": "dim: 1048576 dim: 1048576 dim: 16 dim: 1",
              "many_axes": "dim: 1 " * 1000}
    for name, shape in shapes.items():
        yield "shape_" + name, NET.replace("dim: 2 dim: 3 dim: 8 dim: 8", shape)
    others = {"pool_huge": 'type: "Pooling" pooling_param { kernel_size: 4294967295 }', "pool_zero_stride": 'type: "Pooling" pooling_param { kernel_size: 2 stride: 0 }',
              "pool_pad_over_kernel": 'type: "Pooling" pooling_param { kernel_size: 2 pad: 2 }', "lrn_even": 'type: "LRN" lrn_param { local_size: 4 }',
              "lrn_huge": 'type: "LRN" lrn_param { local_size: 4294967295 }', "dropout_two": 'type: "Dropout" dropout_param { dropout_ratio: 2 }', "reshape_overflow": 'type: "Reshape" reshape_param { shape { dim: 9223372036854775807 dim: -1 } }',
              "reshape_two_unknown": 'type: "Reshape" reshape_param { shape { dim: -1 dim: -1 } }', "reshape_negative": 'type: "Reshape" reshape_param { shape { dim: -2 } }',
              "crop_beyond": 'type: "Crop" bottom: "data" crop_param { offset: 4294967295 }', "slice_beyond": 'type: "Slice" top: "b" slice_param { slice_point: 4294967295 }',
              "concat_axis": 'type: "Concat" concat_param { axis: 77 }', "flatten_axes": 'type: "Flatten" flatten_param { axis: 3 end_axis: 1 }',
              "tile_huge": 'type: "Tile" tile_param { tiles: 2147483647 }', "embed_input_0": 'type: "Embed" embed_param { input_dim: 0 num_output: 3 }',
              "embed_huge": 'type: "Embed" embed_param { input_dim: 4294967295 num_output: 4294967295 }', "deconv_huge": 'type: "Deconvolution" convolution_param { num_output: 1 kernel_size: 3 stride: 4294967295 }',
              "permute_twice": 'type: "Permute" permute_param { order: 1 order: 1 }', "python": 'type: "Python" python_param { module: "os" layer: "system" }',
              "spp_levels": 'type: "SPP" spp_param { pyramid_height: 4294967295 }', "argmax_topk": 'type: "ArgMax" argmax_param { top_k: 4294967295 }'}
    for name, text in others.items():
        yield name, layer('layer { name: "conv" bottom: "data" top: "conv" %s }' % text)


def solvers():
    yield "empty", ""
    yield "two_nets", SOLVER + 'train_net: "net.prototxt"'
    yield "itself", SOLVER.replace("net.prototxt", "solver.prototxt")
    yield "net_is_a_folder", SOLVER.replace("net.prototxt", ".")
    yield "net_is_a_device", SOLVER.replace("net.prototxt", "/dev/zero")
    for name, text in (("iterations_negative", "max_iter: -1"), ("iterations_huge", "max_iter: 99999999999"), ("rate_nan", "base_lr: nan"), ("rate_text", 'base_lr: "x"'),
                       ("policy", 'lr_policy: "fast"'), ("type", 'type: "Newton"'), ("step_without_size", 'lr_policy: "step"'), ("iter_size", "iter_size: 0"),
                       ("average_loss", "average_loss: 0"), ("nested", "net_param { " * 100_000), ("mode", "solver_mode: TPU")):
        key = text.split(":")[0]
        yield name, "".join(part for part in [SOLVER.replace(f'{key}: "fixed"', "").replace(f"{key}: 0.01", "").replace(f"{key}: 1 ", "")]) + text


def weights():
    right = ("conv", "Convolution", [formats.blob((4, 3, 3, 3), 108), formats.blob((4,), 4)])
    model = formats.caffemodel(right)
    yield "empty.caffemodel", b"\xff"
    yield "text.caffemodel", "these are no weights"
    yield "cut.caffemodel", model[: len(model) // 2]
    yield "length.caffemodel", varint(100 << 3 | 2) + varint(1 << 40)
    yield "endless_varint.caffemodel", b"\xff" * 10_000
    yield "shape.caffemodel", formats.caffemodel(("conv", "Convolution", [formats.blob((4, 3, 5, 5), 300), formats.blob((4,), 4)]))
    yield "too_few_values.caffemodel", formats.caffemodel(("conv", "Convolution", [formats.blob((4, 3, 3, 3), 7), formats.blob((4,), 4)]))
    yield "negative_shape.caffemodel", formats.caffemodel(("conv", "Convolution", [formats.blob((-4, -27), 108), formats.blob((4,), 4)]))
    yield "overflowing_shape.caffemodel", formats.caffemodel(("conv", "Convolution", [formats.blob((2**62, 4), 0)]))
    yield "one_blob.caffemodel", formats.caffemodel(("conv", "Convolution", [formats.blob((4, 3, 3, 3), 108)]))
    yield "groups.caffemodel", varint(3 << 3 | 3) * 100_000
    yield "many.caffemodel", field(100, b"") * 300_000
    entry = {"dtype": "F32", "shape": [4, 3, 3, 3], "data_offsets": [0, 432]}
    good = {"conv/weight": entry}
    for name, content in {
        "cut": formats.safetensors(good, bytes(100)), "header_length": formats.safetensors(good, bytes(432), 1 << 62), "header_length_small": formats.safetensors(good, bytes(432), 3),
        "no_json": formats.safetensors(b"{" * 200_000), "list": formats.safetensors([1, 2]), "number": formats.safetensors(b"17"),
        "overlap": formats.safetensors({"a": entry, "b": entry}, bytes(432)), "backwards": formats.safetensors({"a": {**entry, "data_offsets": [432, 0]}}, bytes(432)),
        "beyond": formats.safetensors({"a": {**entry, "data_offsets": [0, 1 << 60]}}, bytes(432)), "negative": formats.safetensors({"a": {**entry, "data_offsets": [-432, 0]}}, bytes(432)),
        "type": formats.safetensors({"a": {**entry, "dtype": "F7"}}, bytes(432)), "shape": formats.safetensors({"a": {**entry, "shape": [2**62, 2**62]}}, bytes(432)),
        "negative_shape": formats.safetensors({"a": {**entry, "shape": [-4, -27]}}, bytes(432)), "text_shape": formats.safetensors({"a": {**entry, "shape": "4"}}, bytes(432)),
        "twice": formats.safetensors(b'{"a": %s, "a": %s}' % ((json.dumps(entry).encode(),) * 2), bytes(432)), "short": b"\1\2\3"}.items():
        yield name + ".safetensors", content
    yield "text.h5", "these are no weights"
    yield "magic_alone.h5", b"\x89HDF\r\n\x1a\n"
    yield "magic_and_noise.h5", b"\x89HDF\r\n\x1a\n" + bytes(range(256)) * 40


def strategies():
    head = '{"format": "cortado-strategy", "version": 1, "net": "net", "ranks": 2, "layers": %s}'
    yield "nested", "[" * 1_000_000
    yield "open", '{"format": "cortado-strategy"'
    yield "list", "[]"
    yield "version", head.replace("1", "99", 1) % "{}"
    yield "format", head.replace("cortado-strategy", "cortado-machine") % "{}"
    yield "ranks_huge", head.replace('"ranks": 2', '"ranks": 1e300') % "{}"
    yield "ranks_negative", head.replace('"ranks": 2', '"ranks": -2') % "{}"
    for name, layers in (("degree_0", '{"conv": {"n": 0}}'), ("degree_huge", '{"conv": {"n": 9223372036854775807}}'), ("degree_text", '{"conv": {"n": "two"}}'),
                         ("degree_fraction", '{"conv": {"n": 1.5}}'), ("product", '{"conv": {"n": 2, "c": 2}}'), ("devices_beyond", '{"conv": {"devices": [7]}}'),
                         ("devices_twice", '{"conv": {"n": 2, "devices": [0, 0]}}'), ("devices_negative", '{"conv": {"devices": [-1]}}'), ("letter", '{"conv": {"q": 2}}'),
                         ("unknown_layer", '{"cnov": {"n": 2}}'), ("not_an_object", '{"conv": 2}'), ("sync", '{"conv": {"n": 2, "sync": "never"}}')):
        yield name, head % layers
    yield "twice", head % '{"conv": {"n": 2}, "conv": {"c": 2}}'


def machines():
    good = {"format": "cortado-machine", "version": 1, "name": "m", "nodes": [{"count": 2, "devices": [
        {"count": 1, "name": "d", "gflops": 100, "memory_bandwidth_gb_per_s": 10, "memory_gib": 1, "task_overhead_us": 1}], "nic_bandwidth_gb_per_s": 1}],
        "network": {"latency_us": 4, "bandwidth_gb_per_s": 1}}

    def changed(path, value):
        text = json.loads(json.dumps(good))
        at = text
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        return json.dumps(text)

    yield "nested", '{"nodes":' * 500_000
    yield "no_object", "17"
    node, device = ["nodes", 0], ["nodes", 0, "devices", 0]
    for name, path, value in (("nodes_huge", [*node, "count"], 10**9), ("nodes_zero", [*node, "count"], 0), ("nodes_negative", [*node, "count"], -3), ("devices_huge", [*device, "count"], 2**62),
                              ("no_devices", [*node, "devices"], []), ("no_nodes", ["nodes"], []), ("gflops_0", [*device, "gflops"], 0), ("gflops_negative", [*device, "gflops"], -1),
                              ("gflops_text", [*device, "gflops"], "fast"), ("memory_huge", [*device, "memory_gib"], 1e300), ("bandwidth_0", ["network", "bandwidth_gb_per_s"], 0),
                              ("latency_negative", ["network", "latency_us"], -1), ("unknown_key", [*device, "gflop"], 1), ("name_number", ["name"], 7)):
        yield name, changed(path, value)
    yield "infinite", json.dumps(good).replace('"gflops": 100', '"gflops": 1e999')
    yield "nan", json.dumps(good).replace('"gflops": 100', '"gflops": NaN')


def databases():
    yield "not_lmdb", b"x" * 20_000
    yield "empty", b""
    yield "meta_alone", formats.lmdb()[:4096]
    yield "cut", formats.lmdb()[:9000]
    yield "magic", formats.lmdb(magic=1)
    for name, changes in (("page_size_0", {"page": 0}), ("page_size_huge", {"page": 1 << 31}), ("page_size_odd", {"page": 4097}), ("root_beyond", {"root": 10**9}), ("root_is_meta", {"root": 0}),
                          ("entries_huge", {"entries": 2**63}), ("depth_huge", {"depth": 60000}), ("branch_of_itself", {"own_root": True, "depth": 3}), ("last_page_huge", {"last": 2**62}),
                          ("lower_beyond", {"lower": 60000}), ("lower_small", {"lower": 3})):
        yield name, formats.lmdb(**changes)
    yield "no_datum", formats.lmdb()


def images():
    yield "bomb.png", formats.png(60_000, 60_000, data=bytes(1000))
    yield "bomb_of_bits.png", formats.png(2**31 - 1, 2**31 - 1, depth=1, colour=0)
    yield "no_width.png", formats.png(0, 5)
    yield "cut.png", formats.png(8, 8, data=bytes(200))[:50]
    yield "crc.png", formats.png(8, 8, data=bytes(200), crc=7)
    yield "bomb.jpg", formats.jpeg_header(65535, 65535)
    yield "header.jpg", formats.jpeg_header(8, 8)[:20]
    yield "text.jpg", "no image"
    yield "empty.jpg", b""
    yield "loop.gif", b"GIF89a" + bytes(100)


def onnx_models():
    conv = formats.onnx_node("Conv", ["x", "w"], ["y"], formats.onnx_ints("kernel_shape", [3, 3]))
    weight = formats.onnx_tensor("w", (3, 3, 3, 3), bytes(324))
    yield "empty", b""
    yield "text", "no model"
    yield "cut", formats.onnx([conv], [weight])[:60]
    yield "length", varint(7 << 3 | 2) + varint(1 << 40)
    yield "no_nodes", formats.onnx([])
    yield "unknown_operator", formats.onnx([formats.onnx_node("Erf", ["x"], ["y"])])
    yield "no_such_input", formats.onnx([formats.onnx_node("Relu", ["z"], ["y"])])
    yield "circle", formats.onnx([formats.onnx_node("Relu", ["y"], ["y"])])
    yield "huge_shape", formats.onnx([formats.onnx_node("Relu", ["x"], ["y"])], inputs=(("x", (2**62, 2**62)),))
    yield "negative_shape", formats.onnx([formats.onnx_node("Relu", ["x"], ["y"])], inputs=(("x", (1, -5, 8, 8)),))
    yield "weight_cut", formats.onnx([conv], [formats.onnx_tensor("w", (3, 3, 3, 3), bytes(100))])
    yield "weight_huge", formats.onnx([conv], [formats.onnx_tensor("w", (2**40, 2**40), bytes(4))])
    yield "weight_type", formats.onnx([conv], [formats.onnx_tensor("w", (3, 3, 3, 3), bytes(324), kind=99)])
    for name, where, length in (("up", "../../../../etc/passwd", "324"), ("absolute", "/etc/passwd", "324"), ("device", "/dev/zero", "324"), ("missing", "w.bin", "324"),
                                ("beyond", "net.prototxt", "1000000000"), ("negative", "net.prototxt", "-1")):
        yield "external_" + name, formats.onnx([conv], [formats.onnx_tensor("w", (3, 3, 3, 3), external={"location": where, "length": length})])
    for name, values in (("kernel_negative", [-3, -3]), ("kernel_huge", [2**62, 2**62]), ("kernel_axes", [3] * 50)):
        yield name, formats.onnx([formats.onnx_node("Conv", ["x", "w"], ["y"], formats.onnx_ints("kernel_shape", values))], [weight])
    constant = lambda name, values: formats.onnx_tensor(name, (len(values),), struct.pack(f"<{len(values)}q", *values), kind=7)
    yield "reshape_huge", formats.onnx([formats.onnx_node("Reshape", ["x", "s"], ["y"])], [constant("s", [2**62, 2**62])])
    yield "expand_huge", formats.onnx([formats.onnx_node("Expand", ["x", "s"], ["y"])], [constant("s", [2**40, 3, 8, 8])])
    yield "pads_huge", formats.onnx([formats.onnx_node("Pad", ["x", "s"], ["y"])], [constant("s", [0, 0, 2**62, 2**62, 0, 0, 2**62, 2**62])])
    yield "range_huge", formats.onnx([formats.onnx_node("ConstantOfShape", ["s"], ["y"])], [constant("s", [2**40, 2**20])])


def cases():
    for name, net in nets():
        yield Case(f"net_{name}", {"net.prototxt": net}, SHOW)
    for name, solver in solvers():
        yield Case(f"solver_{name}", {"solver.prototxt": solver}, TRAIN)
    for name, content in weights():
        yield Case(f"weights_{name}", {name: content}, [*TRAIN, "--weights", name])
    for name in ("cut.safetensors", "short.safetensors", "text.h5"):
        yield Case(f"snapshot_{name}", {name: dict(weights())[name]}, [*TRAIN, "--snapshot", name])
    yield Case("snapshot_noise.solverstate", {"a.solverstate": b"\xff" * 100}, [*TRAIN, "--snapshot", "a.solverstate"])
    yield Case("snapshot_elsewhere.solverstate", {"a.solverstate": field(1, 5) + field(2, "../../../etc/passwd")}, [*TRAIN, "--snapshot", "a.solverstate"])
    for name, strategy in strategies():
        yield Case(f"strategy_{name}", {"s.json": strategy}, ["simulate", "--model", "net.prototxt", "--machine", "lassen", "--devices", "2", "--strategy", "s.json"])
    for name, machine in machines():
        yield Case(f"machine_{name}", {"m.json": machine}, ["plan", "--model", "net.prototxt", "--machine", "m.json"])
    for name, content in databases():
        yield Case(f"lmdb_{name}", {"db/data.mdb": content}, ["data", "mean", "db", "mean.binaryproto"])
    for name, content in images():
        image_data = ('layer { name: "data" type: "ImageData" top: "data" top: "label" image_data_param { source: "list.txt" batch_size: 2 new_height: 8 new_width: 8 } }\n'
                      + "".join(NET.splitlines(keepends=True)[3:]))
        yield Case(f"image_{name}", {name: content, "list.txt": f"{name} 0\n", "net.prototxt": image_data}, TRAIN)
    for name, model in onnx_models():
        yield Case(f"onnx_{name}", {"m.onnx": model}, ["convert", "m.onnx", "--output", "made"])
    idx = lambda kind, *extents: struct.pack(f">I{len(extents)}I", 0x800 | kind, *extents)
    for name, pictures, labels in (("magic", b"\0\0\0\0", idx(1, 1) + b"\0"), ("count", idx(3, 2**32 - 1, 28, 28), idx(1, 2**32 - 1)), ("extents", idx(3, 1, 2**32 - 1, 2**32 - 1), idx(1, 1) + b"\0"),
                                   ("unequal", idx(3, 1, 2, 2) + bytes(4), idx(1, 2) + bytes(2)), ("cut", idx(3, 2, 2, 2) + bytes(5), idx(1, 2) + bytes(2))):
        yield Case(f"idx_{name}", {"i": pictures, "l": labels}, ["data", "mnist", "i", "l", "out"])
    yield Case("cifar_cut", {f"c/data_batch_{i}.bin": bytes(3073 * 2 - 1) for i in range(1, 6)} | {"c/test_batch.bin": bytes(3073)}, ["data", "cifar", "c", "out"])
    for name, files in (("no_manifest", {"CURRENT": "MANIFEST-000001\n"}), ("current_up", {"CURRENT": "../../../etc/passwd\n"}), ("current_empty", {"CURRENT": ""}),
                        ("noise", {"CURRENT": "MANIFEST-000001\n", "MANIFEST-000001": bytes(range(256)) * 200})):
        yield Case(f"leveldb_{name}", {f"db/{path}": content for path, content in files.items()}, ["data", "leveldb", "db", "out"])
    hdf5 = 'layer { name: "data" type: "HDF5Data" top: "data" top: "label" hdf5_data_param { source: "list.txt" batch_size: 2 } }\n' + "".join(NET.splitlines(keepends=True)[3:])
    for name, text, content in (("missing", "nosuch.h5\n", b""), ("text", "a.h5\n", b"no data"), ("magic", "a.h5\n", b"\x89HDF\r\n\x1a\n" + bytes(500)), ("device", "/dev/zero\n", b""), ("empty_list", "", b"")):
        yield Case(f"hdf5_{name}", {"net.prototxt": hdf5, "list.txt": text, "a.h5": content}, TRAIN)
