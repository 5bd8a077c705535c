#!/usr/bin/env python3
"""Every operator that is read from ONNX computes what PyTorch computes, also after the net went to ONNX and back.

    tests/onnx/operators_as_pytorch.py --runner build/dev/tests/onnx/onnx_run [NAME...]

Each case is a small graph made by hand and a function of PyTorch. onnx_run imports and runs the graphs, exports the
nets that it made, imports them again and runs these. Needs Debian's python3-torch and python3-onnx; exits 77 where they
are missing.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import torch
    import torch.nn.functional as F
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(f"skipped: {error} (Debian's packages belong to /usr/bin/python3; this is {sys.executable})")
    sys.exit(77)

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
import safetensors_io  # noqa: E402

RANDOM = np.random.default_rng(5)
TOLERANCE = 1e-5


def draw(*shape, low=-1.0, high=1.0):
    return RANDOM.uniform(low, high, shape).astype(np.float32)


def whole(*values):
    return np.array(values, dtype=np.int64)


def node(kind, inputs, outputs="out", **attributes):
    return helper.make_node(kind, inputs.split(","), outputs.split(","), **attributes)


class Case:
    """nodes: of the graph. inputs and constants: {name: array}. expected: what PyTorch gives for the inputs, an output each.
    refused: words of the error that is expected instead. shapes: what the graph says of its inputs, if not their own. back: the net
    can go to ONNX again."""

    def __init__(self, name, nodes, inputs, constants=None, expected=None, refused=None, opset=13, shapes=None, back=True):
        self.name, self.nodes, self.inputs, self.constants = name, nodes, inputs, constants or {}
        self.refused, self.opset, self.shapes, self.back = refused, opset, shapes or {}, back
        self.expected = [] if expected is None else expected if isinstance(expected, list) else [expected]

    def model(self):
        made = [output for one in self.nodes for output in one.output if output]
        read = {name for one in self.nodes for name in one.input}
        outputs = [name for name in made if name not in read]
        graph = helper.make_graph(
            self.nodes, self.name,
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, self.shapes.get(name, list(values.shape)))
             for name, values in self.inputs.items()],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            [numpy_helper.from_array(values, name) for name, values in self.constants.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)]), outputs


def t(array):
    return torch.tensor(array)


def convolutions():
    x, w, b = draw(2, 4, 9, 8), draw(6, 4, 3, 3), draw(6)
    conv = [node("Conv", "x,w,b", kernel_shape=[3, 3], strides=[2, 1], pads=[1, 0, 1, 0])]
    yield Case("conv", conv, {"x": x}, {"w": w, "b": b}, F.conv2d(t(x), t(w), t(b), (2, 1), (1, 0)))
    yield Case("conv_no_bias", [node("Conv", "x,w")], {"x": x}, {"w": w}, F.conv2d(t(x), t(w)))
    g = draw(6, 2, 3, 3)
    yield Case("conv_group_dilation", [node("Conv", "x,w", group=2, dilations=[2, 1])], {"x": x}, {"w": g},
               F.conv2d(t(x), t(g), dilation=(2, 1), groups=2))
    for name, pads in (("front", [0, 2, 1, 0]), ("back", [2, 0, 0, 1])):
        top, left, bottom, right = pads
        yield Case(f"conv_unequal_{name}", [node("Conv", "x,w,b", pads=pads, strides=[2, 2])], {"x": x}, {"w": w, "b": b},
                   F.conv2d(F.pad(t(x), (left, right, top, bottom)), t(w), t(b), 2))
    yield Case("conv_same_upper", [node("Conv", "x,w", auto_pad="SAME_UPPER", strides=[2, 2])], {"x": x}, {"w": w},
               F.conv2d(F.pad(t(x), (0, 1, 1, 1)), t(w), stride=2))
    yield Case("conv_same_lower", [node("Conv", "x,w", auto_pad="SAME_LOWER", strides=[2, 2])], {"x": x}, {"w": w},
               F.conv2d(F.pad(t(x), (1, 0, 1, 1)), t(w), stride=2))
    yield Case("pad_conv", [node("Pad", "x,p", "z"), node("Conv", "z,w", pads=[1, 1, 1, 1])], {"x": x},
               {"p": whole(0, 0, 1, 0, 0, 0, 2, 3), "w": w}, F.conv2d(F.pad(t(x), (0, 3, 1, 2)), t(w), padding=1))
    line, wl = draw(2, 4, 11), draw(5, 4, 3)
    yield Case("conv_1d", [node("Conv", "x,w", pads=[1, 1])], {"x": line}, {"w": wl}, F.conv1d(t(line), t(wl), padding=1))
    box, wb = draw(1, 2, 5, 6, 7), draw(3, 2, 3, 2, 3)
    yield Case("conv_3d", [node("Conv", "x,w", pads=[1, 0, 1, 1, 0, 1])], {"x": box}, {"w": wb},
               F.conv3d(t(box), t(wb), padding=(1, 0, 1)))
    half = w.astype(np.float16)
    yield Case("conv_half", [node("Conv", "x,w")], {"x": x}, {"w": half}, F.conv2d(t(x), t(half.astype(np.float32))))
    yield Case("pad_relu", [node("Pad", "x,p", "z"), node("Relu", "z")], {"x": x}, {"p": whole(0, 0, 1, 1, 0, 0, 1, 1)},
               refused="padded by a Pad")
    yield Case("conv_weight_computed", [node("Conv", "x,w")], {"x": x, "w": w}, refused="must be a constant")


def transposed():
    x, w, b = draw(2, 4, 5, 6), draw(4, 3, 3, 3), draw(3)
    for name, options in (("plain", {}), ("stride", {"stride": 2, "padding": 1}),
                          ("more", {"stride": 2, "padding": 1, "output_padding": 1}),
                          ("more_unpadded", {"stride": 3, "output_padding": 2})):
        attributes = {"strides": [options.get("stride", 1)] * 2, "pads": [options.get("padding", 0)] * 4}
        if "output_padding" in options:
            attributes["output_padding"] = [options["output_padding"]] * 2
        yield Case(f"deconv_{name}", [node("ConvTranspose", "x,w,b", **attributes)], {"x": x}, {"w": w, "b": b},
                   F.conv_transpose2d(t(x), t(w), t(b), **options))
    g = draw(4, 3, 2, 2)
    yield Case("deconv_group", [node("ConvTranspose", "x,w", group=2, strides=[2, 2])], {"x": x}, {"w": g},
               F.conv_transpose2d(t(x), t(g), stride=2, groups=2))
    yield Case("deconv_unequal", [node("ConvTranspose", "x,w", pads=[0, 1, 1, 0], strides=[2, 2])], {"x": x}, {"w": w},
               F.conv_transpose2d(t(x), t(w), stride=2)[:, :, :-1, 1:])
    yield Case("deconv_shape_below_1", [node("ConvTranspose", "x,w", output_shape=[-2**63, 12], strides=[2, 2])], {"x": x}, {"w": w},
               refused="give 1 or more")
    yield Case("deconv_shape", [node("ConvTranspose", "x,w", output_shape=[10, 12], strides=[2, 2])], {"x": x}, {"w": w},
               F.conv_transpose2d(t(x), t(w), stride=2)[:, :, 1:, 1:])


def poolings():
    x = draw(2, 3, 9, 8)
    for kernel, stride, pad, ceil in ((3, 2, 1, False), (3, 2, 1, True), (3, 2, 0, True), (2, 2, 0, False), (2, 3, 1, True)):
        attributes = dict(kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, ceil_mode=int(ceil))
        name = f"{kernel}{stride}{pad}{'_ceil' if ceil else ''}"
        yield Case(f"max_{name}", [node("MaxPool", "x", **attributes)], {"x": x},
                   expected=F.max_pool2d(t(x), kernel, stride, pad, ceil_mode=ceil))
        for counted in (0, 1):
            yield Case(f"average_{name}_{counted}", [node("AveragePool", "x", count_include_pad=counted, **attributes)], {"x": x},
                       expected=F.avg_pool2d(t(x), kernel, stride, pad, ceil_mode=ceil, count_include_pad=bool(counted)))
    yield Case("max_oblong", [node("MaxPool", "x", kernel_shape=[3, 2], strides=[1, 2], pads=[1, 0, 1, 0])], {"x": x},
               expected=F.max_pool2d(t(x), (3, 2), (1, 2), (1, 0)))
    even = draw(2, 3, 8, 8)
    yield Case("max_unequal", [node("MaxPool", "x", kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")], {"x": even},
               expected=F.max_pool2d(F.pad(t(even), (0, 1, 0, 1), value=-9e9), 3, 2))
    yield Case("max_infinity", [node("Pad", "x,p,v", "z"), node("MaxPool", "z", kernel_shape=[3, 3], strides=[2, 2])], {"x": even},
               {"p": whole(0, 0, 1, 1, 0, 0, 1, 1), "v": np.array(-np.inf, np.float32)}, F.max_pool2d(t(even), 3, 2, 1))
    yield Case("max_zero_pad", [node("Relu", "x", "r"), node("Pad", "r,p", "z"), node("MaxPool", "z", kernel_shape=[3, 3], strides=[2, 2])],
               {"x": even}, {"p": whole(0, 0, 1, 1, 0, 0, 1, 1)}, F.max_pool2d(F.relu(t(even)), 3, 2, 1))
    yield Case("max_zero_refused", [node("Pad", "x,p", "z"), node("MaxPool", "z", kernel_shape=[3, 3])], {"x": even},
               {"p": whole(0, 0, 1, 1, 0, 0, 1, 1)}, refused="pads with 0")
    yield Case("average_pad", [node("Pad", "x,p", "z"), node("AveragePool", "z", kernel_shape=[3, 3], strides=[2, 2])], {"x": even},
               {"p": whole(0, 0, 1, 1, 0, 0, 1, 1)}, F.avg_pool2d(F.pad(t(even), (1, 1, 1, 1)), 3, 2))
    yield Case("max_dilated", [node("MaxPool", "x", kernel_shape=[2, 2], dilations=[2, 2])], {"x": x}, refused="dilations has 2")
    yield Case("max_indices", [node("MaxPool", "x", "y,i", kernel_shape=[2, 2])], {"x": x}, refused="indices are read")
    line = draw(2, 3, 9)
    yield Case("max_1d", [node("MaxPool", "x", kernel_shape=[3], strides=[2])], {"x": line}, expected=F.max_pool1d(t(line), 3, 2))
    yield Case("global_average", [node("GlobalAveragePool", "x")], {"x": x}, expected=t(x).mean((2, 3), keepdim=True))
    yield Case("global_max", [node("GlobalMaxPool", "x")], {"x": x}, expected=t(x).amax((2, 3), keepdim=True))


def products():
    x, w, b = draw(3, 5), draw(4, 5), draw(4)
    yield Case("gemm", [node("Gemm", "x,w,b", transB=1)], {"x": x}, {"w": w, "b": b}, F.linear(t(x), t(w), t(b)))
    yield Case("gemm_factors", [node("Gemm", "x,w,b", alpha=0.5, beta=2.0)], {"x": x}, {"w": w.T.copy(), "b": b[None]},
               0.5 * t(x) @ t(w).T + 2 * t(b))
    yield Case("gemm_one_bias", [node("Gemm", "x,w,b", transB=1)], {"x": x}, {"w": w, "b": b[:1]}, F.linear(t(x), t(w)) + t(b[:1]))
    yield Case("gemm_transposed", [node("Gemm", "x,w", transA=1)], {"x": x}, {"w": draw(3, 2)}, refused="transA is 1")
    yield Case("mat_mul_add", [node("MatMul", "x,w", "z"), node("Add", "z,b")], {"x": x}, {"w": w.T.copy(), "b": b},
               F.linear(t(x), t(w), t(b)))
    three = draw(2, 3, 5)
    yield Case("mat_mul_3", [node("MatMul", "x,w")], {"x": three}, {"w": w.T.copy()}, t(three) @ t(w).T)
    yield Case("mat_mul_transposed_weight", [node("Transpose", "w", "v", perm=[1, 0]), node("MatMul", "x,v")], {"x": x}, {"w": w},
               t(x) @ t(w).T)
    rows = draw(3, 1)
    yield Case("mat_mul_3_add_rows", [node("MatMul", "x,w", "z"), node("Add", "z,b")], {"x": three}, {"w": w.T.copy(), "b": rows},
               t(three) @ t(w).T + t(rows))
    image, wide = draw(2, 3, 4, 2), draw(5, 24)
    yield Case("flatten_gemm", [node("Flatten", "x", "f"), node("Gemm", "f,w", transB=1)], {"x": image}, {"w": wide},
               F.linear(t(image).flatten(1), t(wide)))


def norms():
    x = draw(2, 5, 4, 3)
    scale, bias, mean, variance = draw(5, low=0.5), draw(5), draw(5), draw(5, low=0.2)
    yield Case("batch_norm", [node("BatchNormalization", "x,s,b,m,v", epsilon=1e-3)], {"x": x},
               {"s": scale, "b": bias, "m": mean, "v": variance},
               F.batch_norm(t(x), t(mean), t(variance), t(scale), t(bias), eps=1e-3))
    yield Case("lrn", [node("LRN", "x", size=3, alpha=0.2, beta=0.6, bias=1.5)], {"x": x},
               expected=F.local_response_norm(t(x), 3, 0.2, 0.6, 1.5))
    yield Case("lrn_even", [node("LRN", "x", size=4)], {"x": x}, refused="size is 4")
    for axis in (1, -1):
        yield Case(f"softmax_{axis}", [node("Softmax", "x", axis=axis)], {"x": x}, expected=t(x).softmax(axis))
    yield Case("lp_norm", [node("LpNormalization", "x", axis=1)], {"x": x}, expected=F.normalize(t(x), dim=1))
    rows = draw(4, 7)
    yield Case("lp_norm_last", [node("LpNormalization", "x", p=2)], {"x": rows}, expected=F.normalize(t(rows), dim=-1))
    yield Case("lp_norm_1", [node("LpNormalization", "x", axis=1, p=1)], {"x": x}, refused="p is 1")
    yield Case("lp_norm_axis", [node("LpNormalization", "x")], {"x": x}, refused="axis 3")
    yield Case("log_softmax", [node("LogSoftmax", "x", axis=1)], {"x": x}, expected=t(x).log_softmax(1))


def pointwise():
    x, positive = draw(2, 3, 4, 5, low=-3, high=3), draw(2, 3, 4, 5, low=0.3, high=3)
    slope, one = draw(3, 1, 1), draw(1)
    numbers = {"low": np.float32(-0.5).reshape(()), "high": np.float32(1.5).reshape(()), "six": np.float32(6).reshape(()),
               "zero": np.float32(0).reshape(()), "power": np.float32(2).reshape(())}
    numbers = {name: np.array(value) for name, value in numbers.items()}
    for name, nodes, function in (
            ("relu", [node("Relu", "x")], F.relu), ("leaky", [node("LeakyRelu", "x", alpha=0.2)], lambda v: F.leaky_relu(v, 0.2)),
            ("leaky_default", [node("LeakyRelu", "x")], F.leaky_relu), ("elu", [node("Elu", "x", alpha=0.7)], lambda v: F.elu(v, 0.7)),
            ("sigmoid", [node("Sigmoid", "x")], torch.sigmoid), ("tanh", [node("Tanh", "x")], torch.tanh),
            ("softplus", [node("Softplus", "x")], F.softplus), ("abs", [node("Abs", "x")], torch.abs),
            ("exp", [node("Exp", "x")], torch.exp), ("neg", [node("Neg", "x")], torch.neg),
            ("hard_sigmoid", [node("HardSigmoid", "x", alpha=0.3, beta=0.4)], lambda v: (0.3 * v + 0.4).clamp(0, 1)),
            ("prelu", [node("PRelu", "x,slope")], lambda v: F.prelu(v, t(slope).flatten())),
            ("prelu_one", [node("PRelu", "x,one")], lambda v: F.prelu(v, t(one))),
            ("clip", [node("Clip", "x,low,high")], lambda v: v.clamp(-0.5, 1.5)),
            ("clip_low", [node("Clip", "x,low")], lambda v: v.clamp(min=-0.5)),
            ("clip_high", [node("Clip", "x,,high")], lambda v: v.clamp(max=1.5)),
            ("relu6", [node("Clip", "x,zero,six")], F.relu6), ("square", [node("Pow", "x,power")], lambda v: v ** 2),
            ("dropout", [node("Dropout", "x", "y,mask")], lambda v: v), ("identity", [node("Identity", "x", "z"), node("Relu", "z")], F.relu)):
        outputs = None if name == "dropout" else function(t(x))
        if name == "dropout":
            nodes, outputs = [node("Dropout", "x,high0", "z"), node("Relu", "z")], F.relu(t(x))
        used = {word for one_node in nodes for word in one_node.input}
        constants = {**numbers, "slope": slope, "one": one, "high0": np.array(np.float32(0.5))}
        yield Case(name, nodes, {"x": x}, {key: value for key, value in constants.items() if key in used}, outputs)
    yield Case("hard_swish", [node("HardSwish", "x")], {"x": x}, expected=F.hardswish(t(x)), opset=14)
    for name, function in (("Log", torch.log), ("Sqrt", torch.sqrt), ("Reciprocal", torch.reciprocal)):
        yield Case(name.lower(), [node(name, "x")], {"x": positive}, expected=function(t(positive)))
    yield Case("erf", [node("Erf", "x")], {"x": x}, refused="this operator is not read")


def arithmetic():
    x, y = draw(2, 3, 4, 5), draw(2, 3, 4, 5, low=0.5, high=2)
    channel, number, gate = draw(3, 1, 1, low=0.5), np.array(np.float32(1.5)), draw(2, 3, 1, 1, low=0.5)
    plane = draw(1, 1, 4, 5, low=0.5)
    for name, kind, function in (("add", "Add", torch.add), ("sub", "Sub", torch.sub), ("mul", "Mul", torch.mul), ("div", "Div", torch.div)):
        yield Case(name, [node(kind, "x,y")], {"x": x, "y": y}, expected=function(t(x), t(y)))
        for form, other in (("channel", channel), ("number", number), ("plane", plane), ("full_row", draw(5, low=0.5))):
            yield Case(f"{name}_{form}", [node(kind, "x,c")], {"x": x}, {"c": other}, function(t(x), t(other)))
            yield Case(f"{name}_{form}_first", [node(kind, "c,y")], {"y": y}, {"c": other}, function(t(other), t(y)))
        yield Case(f"{name}_gate", [node(kind, "x,y")], {"x": x, "y": gate}, expected=function(t(x), t(gate)))
        yield Case(f"{name}_gate_first", [node(kind, "x,y")], {"x": gate, "y": y}, expected=function(t(gate), t(y)))
        map_of = draw(2, 1, 4, 5, low=0.5)
        yield Case(f"{name}_map", [node(kind, "x,y")], {"x": x, "y": map_of}, expected=function(t(x), t(map_of)))
    yield Case("swish", [node("Sigmoid", "x", "g"), node("Mul", "x,g")], {"x": x}, expected=F.silu(t(x)))
    yield Case("swish_read_twice", [node("Sigmoid", "x", "g"), node("Mul", "g,x", "z"), node("Add", "z,g")], {"x": x},
               expected=F.silu(t(x)) + torch.sigmoid(t(x)))
    both = draw(2, 3, 1, 5), draw(2, 1, 4, 5)
    yield Case("add_both", [node("Add", "x,y")], {"x": both[0], "y": both[1]}, expected=t(both[0]) + t(both[1]))
    yield Case("add_enlarged", [node("Add", "x,c")], {"x": both[0]}, {"c": both[1]}, refused="would enlarge")
    yield Case("sum", [node("Sum", "x,y,z")], {"x": x, "y": y, "z": x * 2}, expected=t(x) + t(y) + t(x * 2))
    yield Case("max", [node("Max", "x,y")], {"x": x, "y": y}, expected=torch.maximum(t(x), t(y)))
    yield Case("mean", [node("Mean", "x,y")], {"x": x, "y": y}, expected=(t(x) + t(y)) / 2)
    w, b = draw(6, 3, 3, 3), draw(6, 1, 1)
    yield Case("conv_add_bias", [node("Conv", "x,w", "z"), node("Add", "z,b")], {"x": x}, {"w": w, "b": b}, F.conv2d(t(x), t(w)) + t(b))
    yield Case("conv_add_twice_read", [node("Conv", "x,w", "z"), node("Add", "z,b", "s"), node("Add", "z,s")], {"x": x},
               {"w": w, "b": b}, 2 * F.conv2d(t(x), t(w)) + t(b))


def views():
    x = draw(2, 6, 4, 5)
    yield Case("flatten", [node("Flatten", "x", axis=1)], {"x": x}, expected=t(x).flatten(1))
    yield Case("reshape", [node("Reshape", "x,s")], {"x": x}, {"s": whole(0, 3, -1, 5)}, t(x).reshape(2, 3, 8, 5))
    yield Case("reshape_batch", [node("Reshape", "x,s", "z"), node("Relu", "z")], {"x": x}, {"s": whole(2, -1)}, F.relu(t(x).flatten(1)))
    yield Case("squeeze", [node("GlobalAveragePool", "x", "z"), node("Squeeze", "z,a")], {"x": x}, {"a": whole(2, 3)}, t(x).mean((2, 3)))
    flat = draw(2, 6)
    yield Case("unsqueeze", [node("Relu", "x", "z"), node("Unsqueeze", "z,a")], {"x": flat}, {"a": whole(-1, 2)}, F.relu(t(flat))[:, :, None, None])
    yield Case("shuffle", [node("Reshape", "x,a", "b"), node("Transpose", "b", "c", perm=[0, 2, 1, 3, 4]), node("Reshape", "c,d", "e"),
                           node("Relu", "e")], {"x": x}, {"a": whole(2, 3, 2, 4, 5), "d": whole(2, -1, 4, 5)},
               F.relu(t(x).reshape(2, 3, 2, 4, 5).transpose(1, 2).reshape(2, 6, 4, 5)))
    yield Case("transpose_back", [node("Transpose", "x", "a", perm=[0, 2, 3, 1]), node("Transpose", "a", "b", perm=[0, 3, 1, 2]),
                                  node("Relu", "b")], {"x": x}, expected=F.relu(t(x)))
    last = draw(2, 4, 5, 3)
    yield Case("channels_last_input", [node("Transpose", "x", "a", perm=[0, 3, 1, 2]), node("Relu", "a")],
               {"x": last.transpose(0, 3, 1, 2).copy()}, expected=F.relu(t(last).permute(0, 3, 1, 2)), shapes={"x": [2, 4, 5, 3]})
    yield Case("transpose_ones", [node("GlobalMaxPool", "x", "a"), node("Transpose", "a", "b", perm=[0, 2, 3, 1]), node("Relu", "b")],
               {"x": x}, expected=F.relu(t(x).amax((2, 3), keepdim=True).permute(0, 2, 3, 1)))
    channels_last = node("Transpose", "x", "a", perm=[0, 2, 3, 1])
    yield Case("transpose_relu", [channels_last, node("Relu", "a")], {"x": x}, expected=F.relu(t(x)).permute(0, 2, 3, 1))
    yield Case("transpose_out", [node("Relu", "x", "r"), node("Transpose", "r", perm=[0, 3, 1, 2])], {"x": x},
               expected=F.relu(t(x)).permute(0, 3, 1, 2))
    rows = draw(7, 120)
    yield Case("transpose_gemm", [channels_last, node("Flatten", "a", "f"), node("Gemm", "f,w", transB=1)], {"x": x}, {"w": rows},
               F.linear(t(x).permute(0, 2, 3, 1).flatten(1), t(rows)))
    yield Case("transpose_add", [channels_last, node("Add", "a,b")], {"x": x}, {"b": draw(6) * 0 + 0.5}, t(x).permute(0, 2, 3, 1) + 0.5)
    yield Case("shape_arithmetic", [node("Shape", "x", "a"), node("Gather", "a,zero", "b", axis=0), node("Unsqueeze", "b,axis", "c"),
                                    node("Concat", "c,minus", "d", axis=0), node("Reshape", "x,d", "e"), node("Relu", "e")],
               {"x": x}, {"zero": np.array(0, np.int64), "axis": whole(0), "minus": whole(-1)}, F.relu(t(x).flatten(1)))
    single, narrow = draw(1, 3, 2, 2), draw(2, 1, 4)
    yield Case("open_batch", [node("Flatten", "x", "f"), node("Relu", "f")], {"x": single}, expected=F.relu(t(single).flatten(1)),
               shapes={"x": ["N", 3, 2, 2]})
    yield Case("expand", [node("Expand", "x,s")], {"x": narrow}, {"s": whole(2, 3, 1)}, t(narrow).expand(2, 3, 4))


def parts():
    x, y = draw(2, 6, 4, 5), draw(2, 3, 4, 5)
    yield Case("concat", [node("Concat", "x,y", axis=1)], {"x": x, "y": y}, expected=torch.cat([t(x), t(y)], 1))
    z = draw(2, 6, 4, 2)
    yield Case("concat_last", [node("Concat", "x,y", axis=-1)], {"x": x, "y": z}, expected=torch.cat([t(x), t(z)], -1))
    yield Case("split", [node("Split", "x,s", "a,b", axis=1)], {"x": x}, {"s": whole(2, 4)}, [t(x)[:, :2], t(x)[:, 2:]])
    yield Case("split_equal", [node("Split", "x", "a,b,c", axis=1)], {"x": x}, expected=list(t(x).chunk(3, 1)))
    yield Case("split_one_read", [node("Split", "x", "a,,c", axis=1)], {"x": x}, expected=[t(x)[:, :2], t(x)[:, 4:]])
    yield Case("split_18", [node("Split", "x", "a,b", axis=1, num_outputs=2)], {"x": x}, expected=list(t(x).chunk(2, 1)), opset=18)
    yield Case("slice", [node("Slice", "x,b,e,a")], {"x": x}, {"b": whole(1, -3), "e": whole(2**63 - 1, -1), "a": whole(1, 3)},
               t(x)[:, 1:, :, -3:-1])
    yield Case("slice_step", [node("Slice", "x,b,e,a,s")], {"x": x}, {"b": whole(0), "e": whole(6), "a": whole(1), "s": whole(2)},
               refused="step along axis 1 is 2")
    yield Case("gather_of_a_view", [node("Unsqueeze", "x,axis", "a"), node("Gather", "a,i", "b", axis=1), node("Relu", "b")], {"x": x},
               {"axis": whole(1), "i": np.array(0, np.int64)}, F.relu(t(x)))
    yield Case("gather", [node("Gather", "x,i", axis=1)], {"x": x}, {"i": np.array(-2, np.int64)}, t(x)[:, -2])
    yield Case("tile", [node("Tile", "x,r")], {"x": y}, {"r": whole(1, 2, 1, 3)}, t(y).repeat(1, 2, 1, 3))


def reductions():
    x = draw(2, 3, 4, 5)
    for kind, function in (("ReduceMean", torch.mean), ("ReduceSum", torch.sum), ("ReduceL1", lambda v, *a, **k: v.abs().sum(*a, **k)),
                           ("ReduceSumSquare", lambda v, *a, **k: (v ** 2).sum(*a, **k))):
        for axes in ([2, 3], [1, 2, 3], [-1]):
            for keep in (0, 1):
                name = f"{kind}_{len(axes)}_{keep}"
                expected = function(t(x), axes, keepdim=bool(keep))
                if kind == "ReduceSum":
                    yield Case(name, [node(kind, "x,a", keepdims=keep)], {"x": x}, {"a": whole(*axes)}, expected)
                else:
                    yield Case(name, [node(kind, "x", axes=axes, keepdims=keep)], {"x": x}, expected=expected)
    yield Case("reduce_mean_18", [node("ReduceMean", "x,a")], {"x": x}, {"a": whole(2, 3)}, t(x).mean((2, 3), keepdim=True), opset=18)
    yield Case("reduce_max", [node("ReduceMax", "x", axes=[2, 3])], {"x": x}, expected=t(x).amax((2, 3), keepdim=True))
    yield Case("reduce_channels", [node("ReduceMean", "x", axes=[1])], {"x": x}, refused="not all after it")


def resizes():
    x = draw(2, 3, 4, 5)
    for factor in (2, 3, 4):
        scales = {"s": np.array([1, 1, factor, factor], np.float32)}
        yield Case(f"nearest_{factor}", [node("Resize", "x,,s", mode="nearest", coordinate_transformation_mode="asymmetric",
                                              nearest_mode="floor")], {"x": x}, scales, F.interpolate(t(x), scale_factor=factor))
        yield Case(f"linear_{factor}", [node("Resize", "x,,s", mode="linear", coordinate_transformation_mode="pytorch_half_pixel")],
                   {"x": x}, scales, F.interpolate(t(x), scale_factor=factor, mode="bilinear", align_corners=False))
    yield Case("nearest_sizes", [node("Resize", "x,,,s", mode="nearest")], {"x": x}, {"s": whole(2, 3, 8, 15)},
               F.interpolate(t(x), (8, 15)))
    scales = {"s": np.array([1, 1, 2, 3], np.float32)}
    yield Case("linear_oblong", [node("Resize", "x,,s", mode="linear")], {"x": x}, scales,
               F.interpolate(t(x), (8, 15), mode="bilinear", align_corners=False))
    corners = [node("Resize", "x,,s", mode="linear", coordinate_transformation_mode="align_corners")]
    yield Case("align_corners", corners, {"x": x}, scales, F.interpolate(t(x), (8, 15), mode="bilinear", align_corners=True))
    sizes = [node("Resize", "x,,,s", mode="linear", coordinate_transformation_mode="align_corners")]
    yield Case("align_corners_sizes", sizes, {"x": x}, {"s": whole(2, 3, 3, 11)},
               F.interpolate(t(x), (3, 11), mode="bilinear", align_corners=True))
    yield Case("align_corners_channels", sizes, {"x": x}, {"s": whole(2, 6, 3, 11)}, refused="only spatial axes")
    yield Case("cubic", [node("Resize", "x,,s", mode="cubic")], {"x": x}, scales, refused="mode cubic")
    yield Case("resize_part", [node("Resize", "x,,s", mode="nearest")], {"x": x}, {"s": np.array([1, 1, 1.5, 2], np.float32)},
               refused="resizes axis 2 by 1.5")


FAMILIES = (convolutions, transposed, poolings, products, norms, pointwise, arithmetic, views, parts, reductions, resizes)


def difference(ours, expected):
    """The largest, relative to the largest value; infinite where shapes or names differ."""
    expected = np.asarray(expected)
    if ours is None or ours.shape != expected.shape or not np.isfinite(ours).all():
        return np.inf
    return float(np.abs(ours - expected).max() / max(1, np.abs(expected).max())) if ours.size else 0


def faults(case, folder):
    error = folder / "error.txt"
    message = error.read_text() if error.exists() else ""
    if case.refused:
        yield from [] if case.refused in message else [f"expected an error with '{case.refused}', got '{message}'"]
        return
    if message and case.back:
        yield message
        return
    for name in ("output", "again") if case.back else ("output",):
        values, _ = safetensors_io.read(folder / f"{name}.safetensors")
        if len(values) != len(case.expected):
            yield f"{name}: {len(values)} outputs ({', '.join(values)}) in place of {len(case.expected)}"
        for i, expected in enumerate(case.expected):
            worst = difference(values.get(case.outputs[i]), expected)
            if not worst < TOLERANCE:
                yield f"{name} '{case.outputs[i]}': largest difference {worst:.1e} (blobs: {', '.join(values)})"
    if not case.back:
        return
    try:
        onnx.checker.check_model(onnx.load(str(folder / "back.onnx")), full_check=True)
    except Exception as problem:  # noqa: BLE001: whatever the checker says
        yield f"onnx.checker: {problem}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", required=True, help="onnx_run")
    parser.add_argument("names", nargs="*", help="which cases (default: all)")
    arguments = parser.parse_args()
    cases = [case for family in FAMILIES for case in family() if not arguments.names or case.name in arguments.names]
    failures = 0
    with tempfile.TemporaryDirectory() as temporary:
        folders = []
        for case in cases:
            folder = pathlib.Path(temporary) / case.name
            folder.mkdir()
            folders.append(folder)
            model, case.outputs = case.model()
            onnx.save(model, str(folder / "model.onnx"))
            safetensors_io.write(folder / "input.safetensors", case.inputs)
        result = subprocess.run([arguments.runner, *map(str, folders)], capture_output=True, text=True)
        if result.returncode != 0:
            print(f"FAILED: onnx_run gave {result.returncode}: {result.stderr.strip()}")
            return 1
        for case, folder in zip(cases, folders):
            for fault in faults(case, folder):
                print(f"FAILED: {case.name}: {fault}")
                failures += 1
    print(f"{len(cases)} cases, {failures} faults")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
