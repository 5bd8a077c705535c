"""pycaffe's io: images and Caffe's messages as arrays."""

import numpy as np

from .._cortado import UserError
from .proto import caffe_pb2

# Messages.


def blobproto_to_array(blob, return_diff=False):
    """The data (or diff) of a BlobProto, in its shape."""
    values = np.array(blob.diff if return_diff else blob.data, np.float32)
    legacy = any(blob.HasField(axis) for axis in ("num", "channels", "height", "width"))
    return values.reshape((blob.num, blob.channels, blob.height, blob.width) if legacy else tuple(blob.shape.dim))


def array_to_blobproto(array, diff=None):
    """A BlobProto of an array and, where it is given, its gradient."""
    blob = caffe_pb2.BlobProto()
    blob.shape.dim.extend(array.shape)
    blob.data.extend(np.asarray(array, float).flat)
    if diff is not None:
        blob.diff.extend(np.asarray(diff, float).flat)
    return blob


def arraylist_to_blobprotovector_str(arrays):
    """The bytes of a BlobProtoVector."""
    vector = caffe_pb2.BlobProtoVector()
    vector.blobs.extend(array_to_blobproto(array) for array in arrays)
    return vector.SerializeToString()


def blobprotovector_str_to_arraylist(text):
    """Arrays of the bytes of a BlobProtoVector."""
    vector = caffe_pb2.BlobProtoVector()
    vector.ParseFromString(text)
    return [blobproto_to_array(blob) for blob in vector.blobs]


def array_to_datum(array, label=None):
    """A Datum of an array of channels x height x width: bytes of uint8, else floats."""
    if array.ndim != 3:
        raise ValueError(f"array_to_datum: an array of {array.ndim} axes; give channels x height x width")
    datum = caffe_pb2.Datum()
    datum.channels, datum.height, datum.width = array.shape
    if array.dtype == np.uint8:
        datum.data = array.tobytes()
    else:
        datum.float_data.extend(array.astype(float).flat)
    if label is not None:
        datum.label = label
    return datum


def datum_to_array(datum):
    """The array of a Datum, which holds pixels and no encoded image."""
    shape = (datum.channels, datum.height, datum.width)
    if len(datum.data):
        return np.frombuffer(datum.data, np.uint8).reshape(shape)
    return np.array(datum.float_data).astype(float).reshape(shape)


# Images: height x width x channels, floats.


def load_image(filename, color=True):
    """An image as float32 in [0, 1]: height x width x 3 (RGB), or x 1 where not `color`."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("load_image reads images by Pillow; install it (Debian: python3-pil)") from None
    with Image.open(filename) as image:
        pixels = np.asarray(image.convert("RGB" if color else "L"), np.float32) / 255
    return pixels if color else pixels[:, :, np.newaxis]


def _positions(old, new):
    """Where the centers of `new` samples lie among `old` ones: the sample before, the one after, and its weight."""
    at = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
    before = np.floor(at).astype(int)
    return before, np.minimum(before + 1, old - 1), (at - before).astype(np.float32)


def resize_image(image, new_dims, interp_order=1):
    """An image of new_dims (height, width): the nearest pixel (interp_order 0), or bilinear (1). Nothing is smoothed when
    it becomes smaller."""
    if interp_order not in (0, 1):
        raise UserError(f"resize_image: interp_order {interp_order}; give 0 (nearest) or 1 (bilinear)")
    rows, next_rows, down = _positions(image.shape[0], int(new_dims[0]))
    columns, next_columns, right = _positions(image.shape[1], int(new_dims[1]))
    if interp_order == 0:
        return np.asarray(image, np.float32)[np.where(down < 0.5, rows, next_rows)][:, np.where(right < 0.5, columns, next_columns)]
    image = np.asarray(image, np.float32)
    down = down.reshape((-1,) + (1,) * (image.ndim - 1))
    right = right.reshape((1, -1) + (1,) * (image.ndim - 2))
    tall = image[rows] * (1 - down) + image[next_rows] * down
    return tall[:, columns] * (1 - right) + tall[:, next_columns] * right


def oversample(images, crop_dims):
    """Ten crops of each image: the corners, the center, and their mirror images."""
    height, width = images[0].shape[:2]
    high, wide = int(crop_dims[0]), int(crop_dims[1])
    middle = ((height - high) // 2, (width - wide) // 2)
    corners = [(top, left) for top in (0, height - high) for left in (0, width - wide)]
    crops = []
    for image in images:
        five = [image[top : top + high, left : left + wide] for top, left in corners + [middle]]
        crops += five + [crop[:, ::-1] for crop in five]
    return np.asarray(crops, np.float32)


class Transformer:
    """Makes of images what a net's inputs want: Transformer({'data': net.blobs['data'].data.shape}).

    The order: resize to the input's height and width, transpose, swap channels, times raw_scale, minus the mean, times
    input_scale.
    """

    def __init__(self, inputs):
        self.inputs = {name: tuple(shape) for name, shape in inputs.items()}
        self.transpose, self.channel_swap, self.raw_scale, self.mean, self.input_scale = {}, {}, {}, {}, {}

    def _check(self, name):
        if name not in self.inputs:
            raise UserError(f"'{name}' is none of the inputs ({', '.join(self.inputs)})")

    def preprocess(self, name, data):
        """An image as the net's input `name` wants one."""
        self._check(name)
        values = np.asarray(data, np.float32)
        if values.shape[:2] != self.inputs[name][2:]:
            values = resize_image(values, self.inputs[name][2:])
        if name in self.transpose:
            values = values.transpose(self.transpose[name])
        if name in self.channel_swap:
            values = values[self.channel_swap[name], :, :]
        if name in self.raw_scale:
            values = values * np.float32(self.raw_scale[name])
        if name in self.mean:
            values = values - self.mean[name]
        if name in self.input_scale:
            values = values * np.float32(self.input_scale[name])
        return np.asarray(values, np.float32)

    def deprocess(self, name, data):
        """The inverse, apart from the resizing."""
        self._check(name)
        values = np.array(data, np.float32)
        if values.ndim == len(self.inputs[name]) and len(values) == 1:
            values = values[0]  # of a batch of one
        if name in self.input_scale:
            values = values / np.float32(self.input_scale[name])
        if name in self.mean:
            values = values + self.mean[name]
        if name in self.raw_scale:
            values = values / np.float32(self.raw_scale[name])
        if name in self.channel_swap:
            values = values[np.argsort(self.channel_swap[name]), :, :]
        if name in self.transpose:
            values = values.transpose(np.argsort(self.transpose[name]))
        return values

    def set_transpose(self, name, order):
        """The order of axes: (2, 0, 1) makes channels x height x width of an image."""
        self._check(name)
        if len(order) != len(self.inputs[name]) - 1:
            raise UserError(f"set_transpose: {len(order)} axes; give {len(self.inputs[name]) - 1}")
        self.transpose[name] = tuple(order)

    def set_channel_swap(self, name, order):
        """The order of channels: (2, 1, 0) makes BGR of RGB."""
        self._check(name)
        if len(order) != self.inputs[name][1]:
            raise UserError(f"set_channel_swap: {len(order)} channels; give {self.inputs[name][1]}")
        self.channel_swap[name] = list(order)

    def set_raw_scale(self, name, scale):
        """A factor before the mean is subtracted: 255 for images in [0, 1]."""
        self._check(name)
        self.raw_scale[name] = scale

    def set_mean(self, name, mean):
        """What is subtracted: a number a channel, or an array of the input's shape."""
        self._check(name)
        mean = np.asarray(mean, np.float32)
        channels, *extents = self.inputs[name][1:]
        if mean.ndim == 1:
            if mean.shape[0] != channels:
                raise UserError(f"set_mean: {mean.shape[0]} numbers for {channels} channels")
            mean = mean[:, np.newaxis, np.newaxis]
        else:
            mean = mean[np.newaxis] if mean.ndim == 2 else mean
            if mean.ndim != 3 or mean.shape[0] not in (1, channels) or list(mean.shape[1:]) != extents:
                raise UserError(f"set_mean: a mean of {mean.shape}; give {(channels, *extents)}, or a number a channel")
        self.mean[name] = mean

    def set_input_scale(self, name, scale):
        """A factor after the mean is subtracted."""
        self._check(name)
        self.input_scale[name] = scale
