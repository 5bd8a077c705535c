"""Pictures of nets in Graphviz's language; its program `dot` makes images of them."""

import pathlib
import subprocess

from .proto import caffe_pb2

COLORS = {"Convolution": "#FF5050", "Deconvolution": "#FF5050", "Pooling": "#FF9900", "InnerProduct": "#CC33FF"}
OTHER = "#6495ED"


def kept(layer, phase):
    """Whether the layer is in the net of a phase, by its include and exclude rules; None: of any."""
    if phase is None:
        return True
    rules = [rule for rule in layer.include if rule.HasField("phase")]
    if rules:
        return any(rule.phase == phase for rule in rules)
    return not any(rule.HasField("phase") and rule.phase == phase for rule in layer.exclude)


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def edge_label(layer):
    """What a layer makes: of data its batch, of filters their number."""
    if layer.type == "Data":
        return f"Batch {layer.data_param.batch_size}"
    if layer.type in ("Convolution", "Deconvolution"):
        return str(layer.convolution_param.num_output)
    return str(layer.inner_product_param.num_output) if layer.type == "InnerProduct" else ""


def first(values, default):
    """A field of a window, which may be repeated for its axes."""
    if not hasattr(values, "extend"):
        return values
    return values[0] if len(values) else default


def layer_label(layer):
    lines = [layer.name, f"({layer.type})"]
    window = layer.convolution_param if layer.type in ("Convolution", "Deconvolution") else None
    if layer.type == "Pooling":
        window = layer.pooling_param
        lines[1] = f"({caffe_pb2.PoolingParameter.PoolMethod.Name(window.pool)} {layer.type})"
    if window is not None:
        lines.append(f"kernel size: {first(window.kernel_size, 1)}")
        lines.append(f"stride: {first(window.stride, 1)}")
        lines.append(f"pad: {first(window.pad, 0)}")
    return "\n".join(lines)


def net_graph(caffe_net, rankdir="LR", label_edges=True, phase=None):
    """The text of a graph: layers and blobs of a NetParameter. rankdir: LR, TB, BT, RL. phase: TRAIN, TEST; None: all."""
    nodes, edges = {}, []
    for layer in caffe_net.layer:
        if not kept(layer, phase):
            continue
        name = f"{layer.name}_{layer.type}"
        in_place = len(layer.bottom) == 1 and list(layer.bottom) == list(layer.top)
        color = "#90EE90" if in_place else COLORS.get(layer.type, OTHER)
        nodes[name] = f'label={quoted(layer_label(layer))}, shape=box, style=filled, fillcolor="{color}"'
        for blob in [*layer.bottom, *layer.top]:
            nodes.setdefault(blob + "_blob", f'label={quoted(blob)}, shape=octagon, style=filled, fillcolor="#E0E0E0"')
        label = edge_label(layer) if label_edges else ""
        edges += [(bottom + "_blob", name, "") for bottom in layer.bottom]
        edges += [(name, top + "_blob", label) for top in layer.top]
    lines = [f"digraph {quoted(caffe_net.name or 'Net')} {{", f"  rankdir={rankdir};"]
    lines += [f"  {quoted(name)} [{options}];" for name, options in nodes.items()]
    lines += [f"  {quoted(begin)} -> {quoted(end)} [label={quoted(label)}];" for begin, end, label in edges]
    return "\n".join(lines + ["}", ""])


def draw_net(caffe_net, rankdir="LR", ext="png", phase=None):
    """The bytes of a picture: gv or dot is the graph's text; others are made by the program `dot`."""
    text = net_graph(caffe_net, rankdir, phase=phase).encode()
    if ext in ("gv", "dot"):
        return text
    try:
        return subprocess.run(["dot", f"-T{ext}"], input=text, capture_output=True, check=True).stdout
    except FileNotFoundError:
        raise FileNotFoundError("there is no program dot; install graphviz, or draw to a file .gv") from None


def draw_net_to_file(caffe_net, filename, rankdir="LR", phase=None):
    """Writes a picture; the file's ending says of which kind."""
    ending = pathlib.Path(filename).suffix[1:] or "png"
    pathlib.Path(filename).write_bytes(draw_net(caffe_net, rankdir, ending, phase))
