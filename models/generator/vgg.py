"""VGG nets (Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition", 2014):
configurations A and D, D with batch norm after every convolution as torchvision has it, and Lee et al.'s variants of A with equally many feature maps in every convolution
("Parallel deep convolutional neural network training by exploiting the overlapping of computation and
communication", 2017, section IV)."""

from .data import Model, imagenet, sgd, step
from .net import MSRA, XAVIER
from .classic import classifier

# Feature maps of the convolutions, one tuple a stage; every stage ends in 2x2 max pooling.
VGG_A = ((64,), (128,), (256, 256), (512, 512), (512, 512))
VGG_16 = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


def uniform_vgg_a(maps):
    return tuple((maps,) * len(stage) for stage in VGG_A)


def vgg_body(stages, *, batch_norm=False):
    def body(net):
        top = "data"
        for s, stage in enumerate(stages, 1):
            for c, maps in enumerate(stage, 1):
                top = net.conv(f"conv{s}_{c}", top, maps, 3, pad=1)
                if batch_norm:
                    top = net.batch_norm(f"conv{s}_{c}", top, 1e-5)
                top = net.relu(f"relu{s}_{c}", top)
            top = net.pool(f"pool{s}", top, "MAX", 2, 2)
        return classifier(net, top, (MSRA, XAVIER), (0, 0))
    return body


SOLVER = sgd(0.01, step(0.1, 100000), 370000, test_iter=2000, test_interval=5000, weight_decay=0.0005, iter_size=4)

VARIANTS = [("vgg-a", "VGG-A", vgg_body(VGG_A)), ("vgg-16", "VGG-16", vgg_body(VGG_16)),
            ("vgg-16-bn", "VGG-16 with batch norm", vgg_body(VGG_16, batch_norm=True))] + [
    (f"vgg-{maps}", f"VGG-{maps}", vgg_body(uniform_vgg_a(maps))) for maps in (128, 256, 512)]

MODELS = [Model(name, title, [3, 224, 224], body, SOLVER, imagenet(224), 64, 25)
          for name, title, body in VARIANTS]
