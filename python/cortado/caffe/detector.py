"""pycaffe's Detector: a classifier of windows of images (R-CNN)."""

import numpy as np

from . import io
from .classifier import transformer_of
from .net import Net
from .proto import caffe_pb2


class Detector(Net):
    """A net that classifies windows of images.

    mean, input_scale, raw_scale, channel_swap: as in io.Transformer. context_pad: pixels of the input around a window that
    show what is around it in the image; None: none.
    """

    def __init__(self, model_file, pretrained_file, mean=None, input_scale=None, raw_scale=None, channel_swap=None, context_pad=None):
        super().__init__(model_file, caffe_pb2.TEST, weights=pretrained_file)
        self.transformer = transformer_of(self, mean, input_scale, raw_scale, channel_swap)
        self.context_pad = context_pad
        if context_pad:
            self.crop_mean = self._mean_as_image()

    def _mean_as_image(self):
        """What an input of zeros was before its mean was subtracted: pads windows beyond the image."""
        name = self.inputs[0]
        return self.transformer.deprocess(name, np.zeros(self.blobs[name].shape[1:], np.float32))

    def detect_windows(self, images_windows):
        """images_windows: (file, windows) pairs; a window is ymin, xmin, ymax, xmax. Returns a dict a window: window,
        prediction, filename."""
        name = self.inputs[0]
        crops, of = [], []
        for filename, windows in images_windows:
            image = io.load_image(filename).astype(np.float32)
            for window in windows:
                crops.append(self.transformer.preprocess(name, self.crop(image, window)))
                of.append((filename, window))
        scores = self.forward_all(**{name: np.asarray(crops)})[self.outputs[0]]
        return [
            {"window": window, "prediction": np.squeeze(score), "filename": filename} for (filename, window), score in zip(of, scores)
        ]

    def crop(self, image, window):
        """The window of an image; with context_pad, of the input's size, with what is around it."""
        top, left, bottom, right = (int(edge) for edge in window)
        if not self.context_pad:
            return image[top:bottom, left:right]
        high, wide = self.blobs[self.inputs[0]].shape[2:]
        # The window fills all of the input but the pad, so the crop is larger by the same factor.
        grow_high, grow_wide = high / (high - 2 * self.context_pad), wide / (wide - 2 * self.context_pad)
        middle = ((top + bottom) / 2, (left + right) / 2)
        half = ((bottom - top) * grow_high / 2, (right - left) * grow_wide / 2)
        box = [int(round(middle[0] - half[0])), int(round(middle[1] - half[1])), int(round(middle[0] + half[0])), int(round(middle[1] + half[1]))]
        inside = [max(box[0], 0), max(box[1], 0), min(box[2], image.shape[0]), min(box[3], image.shape[1])]
        scale = (high / (box[2] - box[0]), wide / (box[3] - box[1]))
        begin = [int(round((inside[i] - box[i]) * scale[i])) for i in (0, 1)]
        size = [min(int(round((inside[i + 2] - inside[i]) * scale[i])), extent - begin[i]) for i, extent in enumerate((high, wide))]
        result = self.crop_mean.copy()
        part = io.resize_image(image[inside[0] : inside[2], inside[1] : inside[3]], size)
        result[begin[0] : begin[0] + size[0], begin[1] : begin[1] + size[1]] = part
        return result
