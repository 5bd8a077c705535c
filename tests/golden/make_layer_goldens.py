#!/usr/bin/env python3
"""Writes layers.safetensors: what PyTorch computes for single layers, forward and backward.

Each case is one layer as Caffe's files describe it, with inputs, parameters, outputs and gradients under the names
CASE/input0, CASE/output0, CASE/weight, CASE/input0_gradient, CASE/weight_gradient, CASE/output0_gradient and so on;
the metadata's "cases" is a JSON list of {"name", "layer" (prototxt text), "phase", "parameters" (roles in order)}.
Inputs are float32; PyTorch computes in double precision; results are rounded to float32.

Needs Debian's python3-torch. Run it again only to add cases: the file it writes is kept in the repository.
"""

import json
import pathlib
import zlib

import torch
import torch.nn.functional as F

import safetensors_io


class Recorder:
    def __init__(self):
        self.cases, self.tensors = [], {}

    def case(self, name, layer, function, inputs, parameters=None, *, phase="TRAIN", constant=(), after=None):
        """Runs function(*inputs, **parameters) and records it with all gradients.

        inputs and parameters are shapes (filled with normal random numbers) or tensors; those whose name
        ("input1", "mean") is in `constant` have no gradient. `after`: {role: tensor} that forward leaves
        in parameters."""
        generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))

        def leaf(role, values):
            if not isinstance(values, torch.Tensor):
                values = torch.randn(values, generator=generator)
            values = values.float().double()
            return values if role in constant else values.requires_grad_()

        inputs = {f"input{i}": leaf(f"input{i}", values) for i, values in enumerate(inputs)}
        parameters = {role: leaf(role, values) for role, values in (parameters or {}).items()}
        output = function(*inputs.values(), **parameters)
        gradient = torch.randn(output.shape, generator=generator).double().float().double()
        output.backward(gradient)

        record = {**inputs, **parameters, "output0": output, "output0_gradient": gradient}
        record |= {f"{role}_gradient": leaf.grad for role, leaf in {**inputs, **parameters}.items()
                   if leaf.grad is not None}
        record |= {f"{role}_after": values for role, values in (after(*inputs.values()) if after else {}).items()}
        self.tensors |= {f"{name}/{role}": values.detach().numpy() for role, values in record.items()}
        self.cases.append({"name": name, "layer": layer, "phase": phase, "parameters": list(parameters)})


def convolutions(record):
    def case(name, options, x, weight, **torch_options):
        axes, bias = len(x) - 2, "bias_term: false" not in options
        convolve = (F.conv1d, F.conv2d, F.conv3d)[axes - 1]
        record.case(name, f'type: "Convolution" convolution_param {{ num_output: {weight[0]} {options} }}',
                    lambda x, weight, bias=None: convolve(x, weight, bias, **torch_options), [x],
                    {"weight": weight, "bias": [weight[0]]} if bias else {"weight": weight})

    case("conv_3x3", "kernel_size: 3 pad: 1", [2, 8, 9, 7], [16, 8, 3, 3], padding=1)
    case("conv_1x1", "kernel_size: 1", [2, 16, 5, 6], [24, 16, 1, 1])
    case("conv_1x1_stride", "kernel_size: 1 stride: 2 bias_term: false", [2, 16, 7, 7], [8, 16, 1, 1], stride=2)
    case("conv_first_layer", "kernel_size: 7 stride: 2 pad: 3 bias_term: false", [2, 3, 15, 17], [16, 3, 7, 7],
         stride=2, padding=3)
    case("conv_11x11", "kernel_size: 11 stride: 4 pad: 2", [1, 3, 27, 31], [8, 3, 11, 11], stride=4, padding=2)
    case("conv_1x7", "kernel_h: 1 kernel_w: 7 pad_h: 0 pad_w: 3", [2, 8, 6, 9], [8, 8, 1, 7], padding=(0, 3))
    case("conv_uneven", "kernel_h: 3 kernel_w: 2 stride_h: 1 stride_w: 2 pad_h: 2 pad_w: 0", [2, 5, 6, 9],
         [7, 5, 3, 2], stride=(1, 2), padding=(2, 0))
    case("conv_dilated", "kernel_size: 3 pad: 2 dilation: 2", [2, 4, 10, 9], [6, 4, 3, 3], padding=2, dilation=2)
    case("conv_group", "kernel_size: 3 pad: 1 group: 2", [2, 8, 6, 5], [16, 4, 3, 3], padding=1, groups=2)
    case("conv_depthwise", "kernel_size: 3 pad: 1 stride: 2 group: 8", [2, 8, 7, 7], [8, 1, 3, 3], padding=1,
         stride=2, groups=8)
    case("conv_wide", "kernel_size: 3 pad: 1", [1, 48, 6, 6], [32, 48, 3, 3], padding=1)
    case("conv_1d", "kernel_size: 3 stride: 2 pad: 1", [3, 6, 17], [10, 6, 3], stride=2, padding=1)
    case("conv_1d_dilated", "kernel_size: 3 pad: 3 dilation: 3 group: 2", [2, 6, 15], [4, 3, 3], padding=3,
         dilation=3, groups=2)
    case("conv_3d", "kernel_size: 3 pad: 1", [2, 4, 5, 6, 4], [8, 4, 3, 3, 3], padding=1)
    case("conv_3d_stride", "kernel_size: 2 kernel_size: 3 kernel_size: 3 stride: 1 stride: 2 stride: 2 group: 2",
         [1, 6, 4, 7, 7], [4, 3, 2, 3, 3], stride=(1, 2, 2), groups=2)


def deconvolutions(record):
    def case(name, options, x, weight, outputs, **torch_options):
        axes = len(x) - 2
        convolve = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[axes - 1]
        record.case(name, f'type: "Deconvolution" convolution_param {{ num_output: {outputs} {options} }}',
                    lambda x, weight, bias: convolve(x, weight, bias, **torch_options), [x],
                    {"weight": weight, "bias": [outputs]})

    case("deconv_2x2", "kernel_size: 2 stride: 2", [2, 8, 5, 4], [8, 6, 2, 2], 6, stride=2)
    case("deconv_pad", "kernel_size: 4 stride: 2 pad: 1", [2, 6, 4, 5], [6, 8, 4, 4], 8, stride=2, padding=1)
    case("deconv_group", "kernel_size: 3 group: 2", [2, 4, 5, 5], [4, 3, 3, 3], 6, groups=2)
    case("deconv_dilated", "kernel_size: 3 dilation: 2 pad: 2", [1, 4, 5, 6], [4, 4, 3, 3], 4, dilation=2, padding=2)
    case("deconv_1d", "kernel_size: 3 stride: 2", [2, 4, 7], [4, 6, 3], 6, stride=2)
    case("deconv_3d", "kernel_size: 2 stride: 2", [1, 6, 3, 4, 3], [6, 4, 2, 2, 2], 4, stride=2)


def poolings(record):
    def case(name, method, options, x, **torch_options):
        axes = len(x) - 2
        pool = {"MAX": (F.max_pool1d, F.max_pool2d, F.max_pool3d), "AVE": (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)}
        record.case(name, f'type: "Pooling" pooling_param {{ pool: {method} {options} }}',
                    lambda x: pool[method][axes - 1](x, **torch_options), [x])

    for method in ("MAX", "AVE"):
        prefix = method.lower()
        case(f"{prefix}_pool", method, "kernel_size: 2 stride: 2", [2, 8, 6, 8], kernel_size=2, stride=2)
        case(f"{prefix}_pool_ceil", method, "kernel_size: 3 stride: 2", [2, 8, 8, 7], kernel_size=3, stride=2,
             ceil_mode=True)
        case(f"{prefix}_pool_floor", method, "kernel_size: 3 stride: 2 pad: 1 round_mode: FLOOR", [2, 8, 8, 7],
             kernel_size=3, stride=2, padding=1)
        case(f"{prefix}_pool_pad_ceil", method, "kernel_size: 3 stride: 2 pad: 1", [2, 8, 8, 7], kernel_size=3,
             stride=2, padding=1, ceil_mode=True)
        case(f"{prefix}_pool_same", method, "kernel_size: 3 pad: 1", [2, 8, 5, 6], kernel_size=3, stride=1, padding=1)
        case(f"{prefix}_pool_global", method, "global_pooling: true", [2, 8, 5, 6], kernel_size=(5, 6))
        case(f"{prefix}_pool_1d", method, "kernel_size: 3 stride: 2", [2, 4, 10], kernel_size=3, stride=2,
             ceil_mode=True)
        case(f"{prefix}_pool_3d", method, "kernel_size: 2 stride: 2", [2, 4, 4, 6, 5], kernel_size=2, stride=2,
             ceil_mode=True)


def inner_products(record):
    record.case("inner_product", 'type: "InnerProduct" inner_product_param { num_output: 12 }',
                lambda x, weight, bias: F.linear(x.flatten(1), weight, bias), [[5, 4, 3, 2]],
                {"weight": [12, 24], "bias": [12]})
    record.case("inner_product_transposed",
                'type: "InnerProduct" inner_product_param { num_output: 12 bias_term: false transpose: true }',
                lambda x, weight: x @ weight, [[5, 16]], {"weight": [16, 12]})
    record.case("inner_product_axis", 'type: "InnerProduct" inner_product_param { num_output: 7 axis: 2 }',
                lambda x, weight, bias: F.linear(x, weight, bias), [[3, 4, 10]], {"weight": [7, 10], "bias": [7]})
    record.case("embed", 'type: "Embed" embed_param { num_output: 6 input_dim: 9 }',
                lambda x, weight, bias: F.embedding(x.long(), weight) + bias,
                [torch.tensor([[1, 3, 8], [0, 3, 3]])], {"weight": [9, 6], "bias": [6]}, constant=("input0",))


def normalizations(record):
    record.case("lrn", 'type: "LRN" lrn_param { local_size: 5 alpha: 0.5 beta: 0.75 }',
                lambda x: F.local_response_norm(x, 5, 0.5, 0.75, 1), [[2, 9, 4, 3]])
    record.case("lrn_k", 'type: "LRN" lrn_param { local_size: 3 alpha: 0.01 beta: 0.6 k: 2 }',
                lambda x: F.local_response_norm(x, 3, 0.01, 0.6, 2), [[2, 8, 3, 3]])
    for name, x in (("batch_norm", [4, 8, 5, 3]), ("batch_norm_rank_2", [6, 8]), ("batch_norm_3d", [2, 4, 3, 4, 3])):
        axes = [axis for axis in range(len(x)) if axis != 1]
        record.case(name, 'type: "BatchNorm" batch_norm_param { eps: 0.001 moving_average_fraction: 0.9 }',
                    lambda x, **_: F.batch_norm(x, None, None, training=True, eps=0.001), [x],
                    {"mean": torch.zeros(x[1]), "variance": torch.zeros(x[1]), "factor": torch.zeros(1)},
                    constant=("mean", "variance", "factor"),
                    after=lambda x, axes=axes: {"mean": x.mean(axes), "variance": x.var(axes, unbiased=True),
                                                "factor": torch.ones(1)})
    for name, option, phase in (("batch_norm_test", "", "TEST"), ("batch_norm_global", "use_global_stats: true", "TRAIN")):
        record.case(name, f'type: "BatchNorm" batch_norm_param {{ eps: 0.001 {option} }}',
                    lambda x, mean, variance, factor: F.batch_norm(x, mean / factor, variance / factor, eps=0.001),
                    [[4, 8, 5, 3]], {"mean": [8], "variance": torch.arange(1, 9), "factor": torch.tensor([2.0])},
                    phase=phase, constant=("mean", "variance", "factor"))


def as_ssd_and_senet(record):
    record.case("permute", 'type: "Permute" permute_param { order: 0 order: 2 order: 3 order: 1 }',
                lambda x: x.permute(0, 2, 3, 1), [[2, 8, 3, 5]])
    record.case("normalize", 'type: "Normalize" norm_param { across_spatial: false channel_shared: false }',
                lambda x, weight: F.normalize(x, dim=1) * weight.view(1, -1, 1, 1), [[2, 8, 3, 5]], {"weight": [8]})
    record.case("normalize_sample", 'type: "Normalize" norm_param { }',
                lambda x, weight: (F.normalize(x.flatten(1), dim=1) * weight).view_as(x), [[2, 8, 3, 5]],
                {"weight": []})
    record.case("axpy", 'type: "Axpy"', lambda a, x, y: a * x + y, [[2, 8, 1, 1], [2, 8, 3, 5], [2, 8, 3, 5]])


def choices(record):
    record.case("batch_reindex", 'type: "BatchReindex"', lambda x, i: x[i.long()],
                [[3, 4, 2, 5], torch.tensor([2, 0, 0, 1, 2])], constant=("input1",))
    record.case("parameter", 'type: "Parameter" parameter_param { shape { dim: 3 dim: 8 dim: 5 } }',
                lambda weight: weight * 1, [], {"weight": [3, 8, 5]})


def unfolded(record):
    record.case("im2col", 'type: "Im2col" convolution_param { kernel_h: 3 kernel_w: 2 stride: 2 pad: 1 }',
                lambda x: F.unfold(x, (3, 2), padding=1, stride=2).view(2, 24, 4, 5), [[2, 4, 7, 8]])
    record.case("im2col_dilated", 'type: "Im2col" convolution_param { kernel_size: 3 dilation: 2 }',
                lambda x: F.unfold(x, 3, dilation=2).view(2, 36, 3, 4), [[2, 4, 7, 8]])


def resamplings(record):
    for axes, mode in ((1, "linear"), (2, "bilinear"), (3, "trilinear")):
        x = [[2, 4, 7], [2, 4, 5, 6], [1, 4, 3, 4, 3]][axes - 1]
        record.case(f"upsample_{axes}d", 'type: "Upsample" upsample_param { scale: 3 }',
                    lambda x: F.interpolate(x, scale_factor=3, mode="nearest"), [x])
        record.case(f"upsample_linear_{axes}d", 'type: "Upsample" upsample_param { scale: 2 mode: BILINEAR }',
                    lambda x: F.interpolate(x, scale_factor=2, mode=mode, align_corners=False), [x])
        record.case(f"interp_zoom_{axes}d", 'type: "Interp" interp_param { zoom_factor: 3 }',
                    lambda x: F.interpolate(x, [(n - 1) * 3 + 1 for n in x.shape[2:]], mode=mode, align_corners=True),
                    [x])
    record.case("interp_size", 'type: "Interp" interp_param { height: 9 width: 4 pad_beg: -1 pad_end: -2 }',
                lambda x: F.interpolate(x[:, :, 1:-2, 1:-2], [9, 4], mode="bilinear", align_corners=True),
                [[2, 4, 8, 9]])


def recurrent(record):
    # Caffe's gates are i, f, o, g; PyTorch's i, f, g, o. A sequence that begins forgets its states.
    def lstm(x, cont, weight, bias, hidden, static=None, static_weight=None):
        units = hidden.shape[1]
        order = torch.cat([torch.arange(2 * units), torch.arange(3 * units, 4 * units), torch.arange(2 * units, 3 * units)])
        h = c = torch.zeros(x.shape[1], units, dtype=x.dtype)
        steps = []
        for t in range(x.shape[0]):
            begins = cont[t][:, None]
            sums = bias if static is None else bias + static @ static_weight.t()
            inputs = torch.cat([x[t].flatten(1), sums.expand(x.shape[1], -1)], 1)
            weights = torch.cat([weight, torch.eye(4 * units, dtype=x.dtype)], 1)[order]
            h, c = torch._VF.lstm_cell(inputs, (h * begins, c * begins), weights, hidden[order], None, None)
            steps.append(h)
        return torch.stack(steps)

    def rnn(x, cont, input_weight, bias, hidden_weight, output_weight, output_bias):
        h = torch.zeros(x.shape[1], hidden_weight.shape[1], dtype=x.dtype)
        steps = []
        for t in range(x.shape[0]):
            h = torch._VF.rnn_tanh_cell(x[t].flatten(1), h * cont[t][:, None], input_weight, hidden_weight, bias, 0 * bias)
            steps.append(torch.tanh(F.linear(h, output_weight, output_bias)))
        return torch.stack(steps)

    cont = torch.tensor([[0, 0, 0], [1, 1, 1], [1, 0, 1], [1, 1, 0], [0, 1, 1]])
    options = "recurrent_param { num_output: 5 }"
    weights = {"input_weight": [20, 6], "bias": [20]}
    record.case("lstm", f'type: "LSTM" {options}',
                lambda x, cont, input_weight, bias, hidden_weight: lstm(x, cont, input_weight, bias, hidden_weight),
                [[5, 3, 2, 3], cont], weights | {"hidden_weight": [20, 5]}, constant=("input1",))
    record.case("lstm_static", f'type: "LSTM" {options}',
                lambda x, cont, static, input_weight, bias, static_weight, hidden_weight:
                lstm(x, cont, input_weight, bias, hidden_weight, static, static_weight),
                [[5, 3, 6], cont, [3, 4]], weights | {"static_weight": [20, 4], "hidden_weight": [20, 5]},
                constant=("input1",))
    record.case("rnn", f'type: "RNN" {options}', rnn, [[5, 3, 6], cont],
                {"input_weight": [5, 6], "bias": [5], "hidden_weight": [5, 5], "output_weight": [5, 5],
                 "output_bias": [5]}, constant=("input1",))


def pointwise(record):
    functions = {
        "relu": ('type: "ReLU"', F.relu),
        "relu_leaky": ('type: "ReLU" relu_param { negative_slope: 0.1 }', lambda x: F.leaky_relu(x, 0.1)),
        "elu": ('type: "ELU" elu_param { alpha: 0.7 }', lambda x: F.elu(x, 0.7)),
        "sigmoid": ('type: "Sigmoid"', torch.sigmoid),
        "tanh": ('type: "TanH"', torch.tanh),
        "bnll": ('type: "BNLL"', F.softplus),
        "abs": ('type: "AbsVal"', torch.abs),
        "exp": ('type: "Exp" exp_param { base: 2 scale: 0.5 shift: 1 }', lambda x: 2 ** (1 + 0.5 * x)),
        "power": ('type: "Power" power_param { power: 3 scale: 0.5 shift: 1 }', lambda x: (1 + 0.5 * x) ** 3),
    }
    for name, (layer, function) in functions.items():
        record.case(name, layer, function, [[2, 8, 5, 3]])
    record.case("relu6", 'type: "ReLU6"', F.relu6, [torch.linspace(-4, 10, 48).reshape(2, 8, 3)])
    record.case("log", 'type: "Log" log_param { scale: 2 shift: 1 }', lambda x: torch.log(1 + 2 * x),
                [torch.linspace(0.1, 3, 48).reshape(2, 8, 3)])
    record.case("prelu", 'type: "PReLU"', lambda x, slope: F.prelu(x, slope), [[2, 8, 5, 3]], {"slope": [8]})
    record.case("prelu_shared", 'type: "PReLU" prelu_param { channel_shared: true }',
                lambda x, slope: F.prelu(x, slope.reshape(1)), [[2, 8, 5, 3]], {"slope": []})
    record.case("scale", 'type: "Scale" scale_param { bias_term: true }',
                lambda x, weight, bias: x * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1), [[2, 8, 5, 3]],
                {"weight": [8], "bias": [8]})
    shapes = [[2, 8, 3, 3]] * 3
    record.case("eltwise_sum", 'type: "Eltwise" eltwise_param { operation: SUM coeff: 1 coeff: -0.5 coeff: 2 }',
                lambda a, b, c: a - 0.5 * b + 2 * c, shapes)
    record.case("eltwise_product", 'type: "Eltwise" eltwise_param { operation: PROD }',
                lambda a, b, c: a * b * c, shapes)
    record.case("eltwise_max", 'type: "Eltwise" eltwise_param { operation: MAX }',
                lambda a, b, c: torch.maximum(torch.maximum(a, b), c), shapes)
    record.case("concat", 'type: "Concat"', lambda a, b: torch.cat([a, b], 1), [[2, 8, 3, 4], [2, 5, 3, 4]])


def losses(record):
    record.case("softmax", 'type: "Softmax"', lambda x: F.softmax(x, 1), [[3, 10, 2, 3]])
    record.case("softmax_axis", 'type: "Softmax" softmax_param { axis: 2 }', lambda x: F.softmax(x, 2), [[3, 4, 5]])
    record.case("softmax_loss", 'type: "SoftmaxWithLoss"', lambda x, t: F.cross_entropy(x, t.long()),
                [[6, 10], torch.tensor([1, 0, 9, 3, 3, 7])], constant=("input1",))
    labels = torch.tensor([0, 3, 255, 1, 2, 255, 255, 3, 0, 1, 1, 2]).reshape(2, 1, 2, 3)
    for name, mode, divisor in (("valid", "VALID", 9), ("full", "FULL", 12), ("batch", "BATCH_SIZE", 2),
                                ("none", "NONE", 1)):
        record.case(f"softmax_loss_{name}",
                    f'type: "SoftmaxWithLoss" loss_param {{ ignore_label: 255 normalization: {mode} }}',
                    lambda x, t, divisor=divisor: F.cross_entropy(x, t[:, 0].long(), ignore_index=255,
                                                                  reduction="sum") / divisor,
                    [[2, 4, 2, 3], labels], constant=("input1",))
    record.case("multinomial_logistic_loss", 'type: "MultinomialLogisticLoss"',
                lambda p, t: F.nll_loss(torch.log(p), t.long()),
                [torch.linspace(0.05, 1, 24).reshape(4, 6), torch.tensor([5, 0, 2, 2])], constant=("input1",))
    record.case("infogain_loss", 'type: "InfogainLoss"',
                lambda x, t, h: -(h[t[:, 0].long()].permute(0, 3, 1, 2) * F.log_softmax(x, 1)).sum() / t.numel(),
                [[2, 4, 2, 3], labels % 4, torch.rand(4, 4, generator=torch.Generator().manual_seed(1))],
                constant=("input1", "input2"))
    record.case("euclidean_loss", 'type: "EuclideanLoss"',
                lambda a, b: F.mse_loss(a, b, reduction="sum") / (2 * a.shape[0]), [[5, 3, 2], [5, 3, 2]])
    record.case("sigmoid_cross_entropy_loss", 'type: "SigmoidCrossEntropyLoss"',
                lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction="sum") / x.shape[0],
                [[5, 7], torch.linspace(0, 1, 35).reshape(5, 7)], constant=("input1",))


def main():
    recorder = Recorder()
    for group in (convolutions, deconvolutions, poolings, inner_products, normalizations, as_ssd_and_senet, choices, unfolded, resamplings, recurrent, pointwise, losses):
        group(recorder)
    path = pathlib.Path(__file__).resolve().parent / "layers.safetensors"
    safetensors_io.write(path, recorder.tensors, {"cases": json.dumps(recorder.cases, separators=(",", ":"))})
    print(f"{path.name}: {len(recorder.cases)} cases, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
