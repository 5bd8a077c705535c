"""Nets written in Python: layers are functions, tops are what they return.

    n = NetSpec()
    n.data, n.label = layers.Data(batch_size=64, source="train_lmdb", ntop=2)
    n.ip = layers.InnerProduct(n.data, num_output=10, weight_filler=dict(type="xavier"))
    n.loss = layers.SoftmaxWithLoss(n.ip, n.label)
    print(n.to_proto())
"""

from collections import Counter, OrderedDict

from .proto import caffe_pb2


def parameter_fields():
    """The field of LayerParameter that has a layer type's own options, by type: 'Convolution': 'convolution_param'."""
    fields = (field for field in caffe_pb2.LayerParameter.DESCRIPTOR.fields if field.name.endswith("_param"))
    return {field.message_type.name[: -len("Parameter")]: field.name for field in fields if field.message_type}


def assign(message, name, value):
    """Sets a field: messages from dicts, repeated fields from lists or from one item."""
    if value is None:
        return
    field = getattr(message, name)
    repeated = hasattr(field, "extend")
    items = value if isinstance(value, (list, tuple)) else [value]
    if repeated and items and isinstance(items[0], dict):
        for item in items:
            fill(field.add(), item)
    elif repeated:
        field.extend(items)
    elif isinstance(value, dict):
        fill(field, value)
    else:
        setattr(message, name, value)


def fill(message, fields):
    for name, value in fields.items():
        assign(message, name, value)


class Top:
    """What a layer makes: the input of others."""

    def __init__(self, function, number):
        self.fn, self.n = function, number

    def to_proto(self):
        """A net of all that this top needs."""
        return to_proto(self)


class Function:
    """A layer with its bottoms and options."""

    def __init__(self, type_name, inputs, options):
        for top in inputs:
            if not isinstance(top, Top):
                raise TypeError(f"{type_name}: {top!r} is no top; give what layers return")
        self.type_name, self.inputs = type_name, inputs
        self.options = dict(options)
        self.ntop = self.options.pop("ntop", 1)
        self.in_place = self.options.pop("in_place", False)
        self.tops = tuple(Top(self, number) for number in range(self.ntop))

    def _names(self, names, counts):
        """Gives the layer's tops, and so the layer, names where they have none."""
        if self.in_place:
            for top, bottom in zip(self.tops, self.inputs):
                names[top] = names[bottom]
        for top in self.tops:
            if top not in names:
                counts[self.type_name] += 1
                names[top] = f"{self.type_name}{counts[self.type_name]}"

    def add_to(self, layers, names, counts, spec_names):
        """Adds the layers of the bottoms, then this one."""
        if self in layers:
            return
        for top in self.inputs:
            top.fn.add_to(layers, names, counts, spec_names)
        self._names(names, counts)
        layer = caffe_pb2.LayerParameter()
        layer.type = self.type_name
        layer.name = self._layer_name(names, counts, spec_names)
        layer.bottom.extend(names[top] for top in self.inputs)
        layer.top.extend(names[top] for top in self.tops)
        own = parameter_fields().get(self.type_name)
        for name, value in self.options.items():
            if name == "name":
                continue
            inner = own is not None and not name.endswith("param") and hasattr(getattr(layer, own), name)
            assign(getattr(layer, own) if inner else layer, name, value)
        layers[self] = layer

    def _layer_name(self, names, counts, spec_names):
        """The option `name`; else the name that the first top has in the NetSpec, in place, too; else that of the top."""
        if "name" in self.options:
            return self.options["name"]
        if self.tops and self.tops[0] in spec_names:
            return spec_names[self.tops[0]]
        if self.tops and not self.in_place:
            return names[self.tops[0]]
        counts[self.type_name] += 1
        return f"{self.type_name}{counts[self.type_name]}"


def net_of(functions, spec_names):
    """The NetParameter of these layers and all that they need. `spec_names`: of tops; others have type and number."""
    layers, counts = OrderedDict(), Counter()
    names = {top: name for top, name in spec_names.items() if not top.fn.in_place}
    for function in functions:
        function.add_to(layers, names, counts, spec_names)
    net = caffe_pb2.NetParameter()
    net.layer.extend(layers.values())
    return net


def to_proto(*tops):
    """The NetParameter of a net with these tops and all that they need."""
    return net_of([top if isinstance(top, Function) else top.fn for top in tops], {})


class NetSpec:
    """A net whose tops are attributes: spec.conv1 = layers.Convolution(spec.data, ...). Items name tops, too."""

    def __init__(self):
        super().__setattr__("tops", OrderedDict())

    def __setattr__(self, name, top):
        if not isinstance(top, (Top, Function)):
            raise TypeError(f"{name}: {top!r} is no top; give what layers return")
        self.tops[name] = top

    def __getattr__(self, name):
        try:
            return self.tops[name]
        except KeyError:
            raise AttributeError(f"the net has no top '{name}'") from None

    def __setitem__(self, name, top):
        setattr(self, name, top)

    def __getitem__(self, name):
        return getattr(self, name)

    def __delitem__(self, name):
        del self.tops[name]

    def __delattr__(self, name):
        del self[name]

    def update(self, tops):
        """Adds tops from a dict."""
        for name, top in tops.items():
            setattr(self, name, top)

    def to_proto(self):
        """The NetParameter; its text is a model file."""
        for name, top in self.tops.items():
            if isinstance(top, Function):
                top.options.setdefault("name", name)
        functions = [top if isinstance(top, Function) else top.fn for top in self.tops.values()]
        return net_of(functions, {top: name for name, top in self.tops.items() if isinstance(top, Top)})


class Layers:
    """layers.TYPE(top..., option=value...) makes a layer. It returns its top; with ntop=N a tuple of them; with ntop=0 the
    layer itself."""

    def __getattr__(self, type_name):
        if type_name.startswith("__"):
            raise AttributeError(type_name)

        def make(*inputs, **options):
            function = Function(type_name, inputs, options)
            if function.ntop == 0:
                return function
            return function.tops[0] if function.ntop == 1 else function.tops

        return make


class Values:
    """params.POOLING.MAX: the values of enumerations, by the type of the layer."""

    def __getattr__(self, type_name):
        class Of:
            def __getattr__(self, value):
                return getattr(getattr(caffe_pb2, type_name + "Parameter"), value)

        return Of()


layers, params = Layers(), Values()
