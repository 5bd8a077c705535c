"""pycaffe's Classifier."""

import numpy as np

from . import io
from .net import Net
from .proto import caffe_pb2


def transformer_of(net, mean, input_scale, raw_scale, channel_swap):
    """The Transformer of a net's only input, for images of height x width x channels."""
    name = net.inputs[0]
    transformer = io.Transformer({name: net.blobs[name].shape})
    transformer.set_transpose(name, (2, 0, 1))
    for setting, value in (("mean", mean), ("input_scale", input_scale), ("raw_scale", raw_scale), ("channel_swap", channel_swap)):
        if value is not None:
            getattr(transformer, "set_" + setting)(name, value)
    return transformer


class Classifier(Net):
    """A net that classifies images.

    image_dims: height and width to which images are resized before they are cropped; None: as the input's.
    mean, input_scale, raw_scale, channel_swap: as in io.Transformer.
    """

    def __init__(self, model_file, pretrained_file, image_dims=None, mean=None, input_scale=None, raw_scale=None, channel_swap=None):
        super().__init__(model_file, caffe_pb2.TEST, weights=pretrained_file)
        self.transformer = transformer_of(self, mean, input_scale, raw_scale, channel_swap)
        self.crop_dims = np.array(self.blobs[self.inputs[0]].shape[2:])
        self.image_dims = self.crop_dims if image_dims is None else np.array(image_dims)

    def predict(self, inputs, oversample=True):
        """Scores of images (height x width x channels): an array of images x classes. With `oversample` the mean over ten
        crops of each, else those of the center."""
        images = [io.resize_image(image, self.image_dims) for image in inputs]
        crops = 10 if oversample else 1
        if oversample:
            images = io.oversample(images, self.crop_dims)
        else:
            top, left = (self.image_dims - self.crop_dims) // 2
            high, wide = self.crop_dims
            images = [image[top : top + high, left : left + wide] for image in images]
        name = self.inputs[0]
        out = self.forward_all(**{name: np.asarray([self.transformer.preprocess(name, image) for image in images])})
        scores = out[self.outputs[0]]
        return scores.reshape((len(scores) // crops, crops) + scores.shape[1:]).mean(1)
