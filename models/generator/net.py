"""A small helper that writes Caffe nets layer by layer.

Every method adds layers and returns the name of the blob they leave, so that a net reads as its data flow.
A net is written twice from one description: as `train_val` (fillers, learning-rate multipliers, data, loss,
accuracy) and as `deploy` (an Input and the scores).
"""

from .prototxt import Enum, text

# Users of Caffe let biases learn twice as fast and do not decay them; batch norm's scale is not decayed.
WEIGHT_AND_BIAS = [{"lr_mult": 1, "decay_mult": 1}, {"lr_mult": 2, "decay_mult": 0}]
WEIGHT_ONLY = [{"lr_mult": 1, "decay_mult": 1}]
NO_DECAY = [{"lr_mult": 1, "decay_mult": 0}, {"lr_mult": 1, "decay_mult": 0}]

MSRA = {"type": "msra"}
XAVIER = {"type": "xavier"}


def gaussian(std):
    return {"type": "gaussian", "std": std}


def constant(value):
    return {"type": "constant", "value": value}


def window(prefix, extent):
    """Caffe's fields of a window extent: `pad: 1`, or `pad_h: 0 pad_w: 3` where height and width differ."""
    if isinstance(extent, tuple):
        base = prefix.removesuffix("_size")
        return {f"{base}_h": extent[0], f"{base}_w": extent[1]}
    return {prefix: extent}


class Net:
    def __init__(self, name, deploy):
        self.deploy = deploy
        self.fields = [("name", name)]

    def text(self):
        return text(self.fields)

    def layer(self, kind, name, bottoms, tops, **options):
        bottoms = [bottoms] if isinstance(bottoms, str) else bottoms
        tops = [tops] if isinstance(tops, str) else tops
        head = {"name": name, "type": kind, "bottom": bottoms, "top": tops}
        self.fields.append(("layer", head | options))
        return tops[0]

    def learned(self, kind, name, bottom, options, field, params, weight_filler, bias_filler):
        """A layer with weights; a deploy net takes them from a file and needs neither fillers nor multipliers."""
        if self.deploy:
            return self.layer(kind, name, bottom, name, **{field: options})
        fillers = {"weight_filler": weight_filler, "bias_filler": bias_filler}
        return self.layer(kind, name, bottom, name, param=params, **{field: options | fillers})

    def conv(self, name, bottom, outputs, kernel, stride=1, pad=0, group=1, *, bias=True, filler=MSRA, bias_value=0,
             params=None, kind="Convolution"):
        options = {"num_output": outputs, "bias_term": None if bias else False}
        if pad:
            options |= window("pad", pad)
        options |= window("kernel_size", kernel)
        options |= {"stride": stride if stride != 1 else None, "group": group if group != 1 else None}
        params = params if params is not None else WEIGHT_AND_BIAS if bias else WEIGHT_ONLY
        return self.learned(kind, name, bottom, options, "convolution_param", params, filler,
                            constant(bias_value) if bias else None)

    def fc(self, name, bottom, outputs, *, filler=MSRA, bias_value=0, params=WEIGHT_AND_BIAS):
        return self.learned("InnerProduct", name, bottom, {"num_output": outputs}, "inner_product_param", params,
                            filler, constant(bias_value))

    def relu(self, name, blob):
        return self.layer("ReLU", name, blob, blob)

    def clip(self, name, blob, low, high):
        return self.layer("Clip", name, blob, blob, clip_param={"min": low, "max": high})

    def swish(self, name, blob):
        """Not in place: its gradient is computed from its input."""
        return self.layer("Swish", name, blob, name)

    def squeeze_excitation(self, name, bottom, inputs, squeezed, activation):
        """Multiplies every feature map by a factor in 0..1 that two 1x1 convolutions make of all maps' averages (Hu et
        al., "Squeeze-and-excitation networks", 2018). The factors are N x C, as Caffe's Scale from axis 0 on wants."""
        top = self.conv(f"{name}_squeeze", self.global_average(f"{name}_average", bottom), squeezed, 1)
        top = self.conv(f"{name}_excite", activation(self, f"{name}_squeeze_act", top), inputs, 1)
        top = self.layer("Sigmoid", f"{name}_sigmoid", top, top)
        factors = self.flatten(f"{name}_factors", top)
        return self.layer("Scale", f"{name}_weighed", [bottom, factors], f"{name}_weighed", scale_param={"axis": 0})

    def dropout(self, name, blob, ratio=0.5):
        return self.layer("Dropout", name, blob, blob, dropout_param={"dropout_ratio": ratio})

    def lrn(self, name, bottom, **options):
        return self.layer("LRN", name, bottom, name, lrn_param=options)

    def pool(self, name, bottom, method, kernel, stride, pad=0, *, floor=False):
        """`floor` rounds the output's extent down, as other frameworks do; Caffe itself rounds it up."""
        options = {"pool": Enum(method), "kernel_size": kernel, "stride": stride, "pad": pad or None}
        options["round_mode"] = Enum("FLOOR") if floor else None
        return self.layer("Pooling", name, bottom, name, pooling_param=options)

    def global_average(self, name, bottom):
        return self.layer("Pooling", name, bottom, name, pooling_param={"pool": Enum("AVE"), "global_pooling": True})

    def batch_norm(self, name, bottom, eps, top=None):
        """Caffe's pair: BatchNorm normalizes, Scale learns factor and bias. In place unless `top` is given."""
        top = top or bottom
        self.layer("BatchNorm", f"{name}_bn", bottom, top,
                   batch_norm_param={"moving_average_fraction": 0.9, "eps": eps})
        params = {} if self.deploy else {"param": NO_DECAY}
        return self.layer("Scale", f"{name}_scale", top, top, **params, scale_param={"bias_term": True})

    def conv_bn(self, name, bottom, outputs, kernel, stride=1, pad=0, group=1, *, eps=1e-5):
        return self.batch_norm(name, self.conv(name, bottom, outputs, kernel, stride, pad, group, bias=False), eps)

    def conv_bn_relu(self, name, bottom, outputs, kernel, stride=1, pad=0, group=1, *, eps=1e-5):
        return self.relu(f"{name}_relu", self.conv_bn(name, bottom, outputs, kernel, stride, pad, group, eps=eps))

    def flatten(self, name, bottom):
        return self.layer("Flatten", name, bottom, name)

    def slice(self, name, bottom, parts):
        tops = [f"{name}_{part}" for part in range(1, parts + 1)]
        self.layer("Slice", name, bottom, tops)
        return tops

    def shuffle_channel(self, name, bottom, group):
        return self.layer("ShuffleChannel", name, bottom, name, shuffle_channel_param={"group": group})

    def concat(self, name, bottoms):
        return self.layer("Concat", name, bottoms, name)

    def add(self, name, bottoms):
        return self.layer("Eltwise", name, bottoms, name, eltwise_param={"operation": Enum("SUM")})

    def phase_data(self, phase, kind, name="data", **options):
        self.layer(kind, name, [], ["data", "label"], include={"phase": Enum(phase)}, **options)

    def input(self, shape):
        self.layer("Input", "data", [], "data", input_param={"shape": {"dim": shape}})

    def loss(self, scores, name="loss", weight=None, **options):
        return self.layer("SoftmaxWithLoss", name, [scores, "label"], name, loss_weight=weight, **options)

    def accuracy(self, scores, name="accuracy", top_k=None):
        options = {"accuracy_param": {"top_k": top_k}} if top_k else {}
        return self.layer("Accuracy", name, [scores, "label"], name, include={"phase": Enum("TEST")}, **options)

    def softmax(self, scores, **options):
        return self.layer("Softmax", "prob", scores, "prob", **options)
