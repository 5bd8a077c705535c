"""Runs a Caffe model file in PyTorch, layer by layer: an independent reading of the same file.

It knows the layers that the model zoo uses. Written against Debian's python3-torch (1.13).
"""

import torch
import torch.nn.functional as F

from prototxt import parse

SOURCES = ("Data", "HDF5Data", "Input")


def read_layers(path, phase):
    """The layers of a model file that stand in `phase` ("TRAIN" or "TEST")."""
    with open(path) as file:
        layers = parse(file.read()).all("layer")
    return [layer for layer in layers
            if all(rule.get("phase", phase) == phase for rule in layer.all("include"))]


def extents(options, prefix, axes, default):
    """kernel_size, stride, pad or dilation per spatial axis: one value, one per axis, or PREFIX_h and PREFIX_w."""
    base = prefix.replace("_size", "")
    if options.get(f"{base}_h") is not None:
        return [options.get(f"{base}_h"), options.get(f"{base}_w")]
    values = options.all(prefix) or [default]
    return values * axes if len(values) == 1 else values


class CaffeNet:
    """A net of one phase. Parameters, named LAYER/ROLE in Caffe's shapes, are made when first used: `initialize`
    is called with (name, layer type, shape) and returns the tensor."""

    def __init__(self, path, phase="TRAIN", initialize=None, dropout=True):
        self.phase, self.dropout = phase, dropout
        self.layers = read_layers(path, phase)
        self.initialize = initialize
        self.parameters = {}
        self.multipliers = {}  # name: (lr_mult, decay_mult)

    def parameter(self, layer, index, role, shape, device):
        name = f"{layer.get('name')}/{role}"
        if name not in self.parameters:
            values = (torch.empty(shape, device=device) if device.type == "meta"
                      else self.initialize(name, layer.get("type"), shape))
            self.parameters[name] = values.requires_grad_()
            rules = layer.all("param")
            rule = rules[index] if index < len(rules) else None
            self.multipliers[name] = (rule.get("lr_mult", 1), rule.get("decay_mult", 1)) if rule else (1, 1)
        return self.parameters[name]

    def forward(self, **blobs):
        """Runs all layers on the sources' blobs; returns (all blobs, the weighted sum of the losses)."""
        loss = 0
        for layer in self.layers:
            kind = layer.get("type")
            if kind in SOURCES or kind == "Accuracy":
                continue
            bottoms = [blobs[name] for name in layer.all("bottom")]
            top = getattr(self, kind)(layer, bottoms)
            tops = layer.all("top")
            blobs.update(zip(tops, top if len(tops) > 1 else [top]))
            if kind == "SoftmaxWithLoss":
                loss = loss + layer.get("loss_weight", 1) * top
        return blobs, loss

    def parameter_count(self):
        return sum(p.numel() for p in self.parameters.values())

    def convolve(self, layer, x, functions, weight_channels):
        """One of `functions` (1-D, 2-D, 3-D); weight_channels(inputs, outputs, group) begins the weight's shape."""
        options, axes = layer.get("convolution_param"), x.dim() - 2
        outputs, group = options.get("num_output"), options.get("group", 1)
        shape = weight_channels(x.shape[1], outputs, group) + extents(options, "kernel_size", axes, None)
        weight = self.parameter(layer, 0, "weight", shape, x.device)
        bias = self.parameter(layer, 1, "bias", [outputs], x.device) if options.get("bias_term", True) else None
        return functions[axes - 1](x, weight, bias, groups=group, stride=extents(options, "stride", axes, 1),
                                   padding=extents(options, "pad", axes, 0),
                                   dilation=extents(options, "dilation", axes, 1))

    def Convolution(self, layer, bottoms):
        return self.convolve(layer, bottoms[0], (F.conv1d, F.conv2d, F.conv3d),
                             lambda inputs, outputs, group: [outputs, inputs // group])

    def Deconvolution(self, layer, bottoms):
        return self.convolve(layer, bottoms[0], (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d),
                             lambda inputs, outputs, group: [inputs, outputs // group])

    def InnerProduct(self, layer, bottoms):
        x, options = bottoms[0].flatten(1), layer.get("inner_product_param")
        outputs = options.get("num_output")
        weight = self.parameter(layer, 0, "weight", [outputs, x.shape[1]], x.device)
        bias = self.parameter(layer, 1, "bias", [outputs], x.device) if options.get("bias_term", True) else None
        return F.linear(x, weight, bias)

    def Pooling(self, layer, bottoms):
        x, options = bottoms[0], layer.get("pooling_param")
        axes, method = x.dim() - 2, options.get("pool", "MAX")
        if options.get("global_pooling", False):
            kernel, stride, pad = list(x.shape[2:]), [1] * axes, [0] * axes
        else:
            kernel = extents(options, "kernel_size", axes, None)
            stride, pad = extents(options, "stride", axes, 1), extents(options, "pad", axes, 0)
        functions = ((F.max_pool1d, F.max_pool2d, F.max_pool3d) if method == "MAX"
                     else (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d))
        ceil = options.get("round_mode", "CEIL") == "CEIL"
        return functions[axes - 1](x, kernel, stride, pad, ceil_mode=ceil)

    def LRN(self, layer, bottoms):
        x, options = bottoms[0], layer.get("lrn_param")
        size, alpha, beta = options.get("local_size", 5), options.get("alpha", 1.0), options.get("beta", 0.75)
        if options.get("norm_region", "ACROSS_CHANNELS") == "WITHIN_CHANNEL":
            return x / (1 + alpha * F.avg_pool2d(x * x, size, 1, size // 2)) ** beta
        return F.local_response_norm(x, size, alpha, beta, options.get("k", 1.0))

    def BatchNorm(self, layer, bottoms):
        options = layer.get("batch_norm_param")
        if not options.get("use_global_stats", self.phase == "TEST"):
            return F.batch_norm(bottoms[0], None, None, training=True, eps=options.get("eps", 1e-5))
        raise ValueError(f"{layer.get('name')}: only batch statistics are supported")

    def Scale(self, layer, bottoms):
        x, options = bottoms[0], layer.get("scale_param")
        if len(bottoms) == 2:  # the second lies in the first from `axis` on
            axis, factors = options.get("axis", 1), bottoms[1]
            return x * factors.view([1] * axis + list(factors.shape) + [1] * (x.dim() - axis - factors.dim()))
        shape = [-1] + [1] * (x.dim() - 2)
        y = x * self.parameter(layer, 0, "weight", [x.shape[1]], x.device).view(shape)
        if options.get("bias_term", False):
            y = y + self.parameter(layer, 1, "bias", [x.shape[1]], x.device).view(shape)
        return y

    def ReLU(self, layer, bottoms):
        return F.leaky_relu(bottoms[0], layer.get("relu_param").get("negative_slope", 0.0))

    def Clip(self, layer, bottoms):
        options = layer.get("clip_param")
        return bottoms[0].clamp(options.get("min"), options.get("max"))

    def Sigmoid(self, layer, bottoms):
        return torch.sigmoid(bottoms[0])

    def Swish(self, layer, bottoms):
        return bottoms[0] * torch.sigmoid(layer.get("swish_param").get("beta", 1.0) * bottoms[0])

    def Flatten(self, layer, bottoms):
        return bottoms[0].flatten(1)

    def Dropout(self, layer, bottoms):
        ratio = layer.get("dropout_param").get("dropout_ratio", 0.5)
        return F.dropout(bottoms[0], ratio, training=self.dropout and self.phase == "TRAIN")

    def Concat(self, layer, bottoms):
        return torch.cat(bottoms, layer.get("concat_param").get("axis", 1))

    def Slice(self, layer, bottoms):
        if layer.get("slice_param").all("slice_point"):
            raise ValueError(f"{layer.get('name')}: only equal parts are supported")
        return bottoms[0].chunk(len(layer.all("top")), layer.get("slice_param").get("axis", 1))

    def ShuffleChannel(self, layer, bottoms):
        x, group = bottoms[0], layer.get("shuffle_channel_param").get("group", 1)
        return x.unflatten(1, (group, x.shape[1] // group)).transpose(1, 2).flatten(1, 2)

    def Eltwise(self, layer, bottoms):
        return sum(bottoms[1:], bottoms[0])

    def Softmax(self, layer, bottoms):
        return F.softmax(bottoms[0], layer.get("softmax_param").get("axis", 1))

    def SoftmaxWithLoss(self, layer, bottoms):
        scores, labels = bottoms
        return F.cross_entropy(scores, labels.reshape([scores.shape[0]] + list(scores.shape[2:])).long())
