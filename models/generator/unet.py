"""U-Nets for segmentation: 2-D (Ronneberger et al., "U-Net: convolutional networks for biomedical image segmentation",
2015) and 3-D (Cicek et al., "3D U-Net: learning dense volumetric segmentation from sparse annotation", 2016), padded
so that the scores have the image's extents, with batch norm. Images and label maps come from HDF5 files."""

from dataclasses import dataclass

from .data import HEADER, sgd
from .net import Net
from .prototxt import text

SOFTMAX = {"softmax_param": {"axis": 1}}


@dataclass
class Segmentation:
    """One folder of the zoo whose label is an image: N x 1 x (D x) H x W class numbers."""
    name: str
    title: str
    input_shape: list  # one sample's
    maps: int          # feature maps of the first level; doubled at each level below
    levels: int        # times the extents are halved
    classes: int
    batch: int

    def body(self, net):
        skips, top = [], "data"
        for level in range(self.levels + 1):
            top = self.level(net, f"down{level}" if level < self.levels else "bottom", top, self.maps << level)
            if level < self.levels:
                skips.append(top)
                top = net.pool(f"pool{level}", top, "MAX", 2, 2)
        for level in reversed(range(self.levels)):
            maps = self.maps << level
            top = net.conv(f"up{level}", top, maps, 2, 2, kind="Deconvolution")
            top = net.concat(f"join{level}", [skips[level], top])
            top = self.level(net, f"merge{level}", top, maps)
        return net.conv("score", top, self.classes, 1)

    @staticmethod
    def level(net, name, bottom, maps):
        top = net.conv_bn_relu(f"{name}_conv1", bottom, maps, 3, 1, 1)
        return net.conv_bn_relu(f"{name}_conv2", top, maps, 3, 1, 1)

    def files(self):
        net = Net(self.title, deploy=False)
        for phase, split in (("TRAIN", "train"), ("TEST", "test")):
            source = {"source": f"examples/{self.name}/{split}.txt", "batch_size": self.batch}
            net.phase_data(phase, "HDF5Data", hdf5_data_param=source | ({"shuffle": True} if split == "train" else {}))
        scores = self.body(net)
        net.accuracy(scores)
        net.loss(scores, **SOFTMAX)

        deploy = Net(self.title, deploy=True)
        deploy.input([1] + self.input_shape)
        deploy.softmax(self.body(deploy), **SOFTMAX)

        folder = f"models/{self.name}"
        solver = {"net": f"{folder}/train_val.prototxt"} | SOLVER | {"snapshot_prefix": f"{folder}/{self.name}"}
        return {"train_val.prototxt": HEADER + net.text(), "deploy.prototxt": HEADER + deploy.text(),
                "solver.prototxt": HEADER + text(solver)}


SOLVER = sgd(0.01, {"lr_policy": "poly", "power": 0.9}, 40000, test_iter=50, test_interval=1000, weight_decay=0.0001)

MODELS = [
    Segmentation("u-net", "U-Net", [3, 256, 256], maps=64, levels=4, classes=2, batch=4),
    Segmentation("u-net-3d", "3D U-Net", [1, 64, 64, 64], maps=32, levels=3, classes=3, batch=2),
]
