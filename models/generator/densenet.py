"""DenseNet-BC (Huang et al., "Densely connected convolutional networks", 2017): every layer of a block reads what
all layers before it made."""

from .data import Model, imagenet, multistep, sgd
from .net import XAVIER

GROWTH = 32
BOTTLENECK = 4 * GROWTH
BLOCKS_121 = (6, 12, 24, 16)


def normalized(net, name, bottom):
    """Batch norm and ReLU of a blob that others read too, hence not in place."""
    return net.relu(f"{name}_relu", net.batch_norm(name, bottom, 1e-5, top=f"{name}_bn"))


def dense_layer(net, name, bottom):
    top = net.conv(f"{name}_conv1", normalized(net, f"{name}_norm1", bottom), BOTTLENECK, 1, bias=False)
    top = net.relu(f"{name}_relu2", net.batch_norm(f"{name}_norm2", top, 1e-5))
    top = net.conv(f"{name}_conv2", top, GROWTH, 3, pad=1, bias=False)
    return net.concat(name, [bottom, top])


def densenet_body(blocks):
    def body(net):
        maps = 64
        top = net.conv_bn_relu("conv1", "data", maps, 7, 2, 3)
        top = net.pool("pool1", top, "MAX", 3, 2, 1, floor=True)
        for b, count in enumerate(blocks, 1):
            for layer in range(1, count + 1):
                top = dense_layer(net, f"dense{b}_{layer}", top)
            maps += count * GROWTH
            if b < len(blocks):
                maps //= 2
                top = net.conv(f"transition{b}_conv", normalized(net, f"transition{b}", top), maps, 1, bias=False)
                top = net.pool(f"transition{b}_pool", top, "AVE", 2, 2)
        top = net.global_average("pool5", normalized(net, "norm5", top))
        return net.fc("fc", top, 1000, filler=XAVIER)
    return body


SOLVER = sgd(0.1, multistep(150000, 300000), 450000, test_iter=2000, test_interval=5000, weight_decay=0.0001,
             iter_size=8)

MODELS = [Model("densenet-121", "DenseNet-121", [3, 224, 224], densenet_body(BLOCKS_121), SOLVER, imagenet(224), 32,
                25)]
