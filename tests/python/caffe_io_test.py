#!/usr/bin/env python3
"""cortado.caffe.io, Classifier and Detector against numpy, PyTorch and the command."""

import sys
import unittest

from support import DEPLOY, Case, np, softmax, torch_or_skip

import cortado
import cortado.caffe as caffe
from cortado.caffe import io
from cortado.caffe.proto import caffe_pb2


def scores_by_numpy(net, images):
    """prob of DEPLOY, written anew."""
    conv, ip = net.params["conv1"], net.params["ip"]
    windows = np.lib.stride_tricks.sliding_window_view(images, (3, 3), axis=(2, 3))
    made = np.einsum("nchwij,fcij->nfhw", windows, conv[0].data) + conv[1].data[:, None, None]
    return softmax(np.maximum(made, 0).reshape(len(images), -1) @ ip[0].data.T + ip[1].data)


class Messages(Case):
    def test_blobs(self):
        array = np.arange(24, dtype=float).reshape(2, 3, 4)
        blob = io.array_to_blobproto(array, diff=-array)
        self.assertEqual(list(blob.shape.dim), [2, 3, 4])
        self.same(io.blobproto_to_array(blob), array)
        self.same(io.blobproto_to_array(blob, return_diff=True), -array)
        legacy = caffe_pb2.BlobProto(num=1, channels=2, height=3, width=1, data=range(6))
        self.assertEqual(io.blobproto_to_array(legacy).shape, (1, 2, 3, 1))
        one, other = io.blobprotovector_str_to_arraylist(io.arraylist_to_blobprotovector_str([array, array[0]]))
        self.same(one, array)
        self.same(other, array[0])

    def test_datums(self):
        pixels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
        datum = io.array_to_datum(pixels, 7)
        self.assertEqual((datum.channels, datum.height, datum.width, datum.label, datum.data), (2, 3, 4, 7, bytes(range(24))))
        self.same(io.datum_to_array(datum), pixels)
        floats = pixels / 7
        self.near(io.datum_to_array(io.array_to_datum(floats)), floats)
        with self.assertRaises(ValueError):
            io.array_to_datum(pixels[0])


class Images(Case):
    def image(self, high=9, wide=7, seed=0):
        return np.random.default_rng(seed).random((high, wide, 3), np.float32)

    def file(self, name="image.png", **shape):
        try:
            from PIL import Image
        except ImportError:
            self.skipTest("this Python has no Pillow")
        pixels = (self.image(**shape) * 255).astype(np.uint8)
        Image.fromarray(pixels).save(self.folder / name)
        return str(self.folder / name), pixels

    def test_load_image(self):
        file, pixels = self.file()
        self.near(io.load_image(file), pixels / 255)
        gray = io.load_image(file, color=False)
        self.assertEqual(gray.shape, (9, 7, 1))
        self.near(gray[:, :, 0], pixels @ [0.299, 0.587, 0.114] / 255, 0.005)

    def test_resize_is_pytorchs(self):
        torch = torch_or_skip()
        image = self.image()
        planes = torch.tensor(image.transpose(2, 0, 1)[None])
        for size in ((5, 4), (9, 7), (20, 13)):
            expected = torch.nn.functional.interpolate(planes, size=size, mode="bilinear", align_corners=False)
            self.near(io.resize_image(image, size), expected[0].numpy().transpose(1, 2, 0))
            exact = torch.nn.functional.interpolate(planes, size=size, mode="nearest-exact")[0].numpy().transpose(1, 2, 0)
            nearest = io.resize_image(image, size, interp_order=0)
            self.assertGreater((nearest == exact).mean(), 0.6)  # but for ties
        with self.assertRaises(cortado.UserError):
            io.resize_image(image, (3, 3), interp_order=3)

    def test_oversample(self):
        image = self.image()
        crops = io.oversample([image, 2 * image], (5, 4))
        self.assertEqual(crops.shape, (20, 5, 4, 3))
        self.same(crops[0], image[:5, :4])
        self.same(crops[3], image[4:, 3:])
        self.same(crops[4], image[2:7, 1:5])
        self.same(crops[5:10], crops[:5, :, ::-1])
        self.same(crops[10:], 2 * crops[:10])

    def test_transformer(self):
        transformer = io.Transformer({"data": (1, 3, 9, 7)})
        transformer.set_transpose("data", (2, 0, 1))
        transformer.set_channel_swap("data", (2, 0, 1))
        transformer.set_raw_scale("data", 255)
        transformer.set_mean("data", np.array([1, 2, 3]))
        transformer.set_input_scale("data", 0.5)
        image = self.image()
        made = transformer.preprocess("data", image)
        for channel, of in enumerate((2, 0, 1)):
            self.near(made[channel], (image[:, :, of] * 255 - [1, 2, 3][channel]) * 0.5, 1e-4)
        self.near(transformer.deprocess("data", made), image, 1e-4)
        grey = io.Transformer({"data": (1, 1, 4, 5)})
        grey.set_transpose("data", (2, 0, 1))
        one = np.arange(20, dtype=np.float32).reshape(4, 5, 1)
        self.near(grey.deprocess("data", grey.preprocess("data", one)[np.newaxis]), one, 1e-4)
        self.assertEqual(transformer.preprocess("data", self.image(20, 30)).shape, (3, 9, 7))
        transformer.set_mean("data", np.ones((3, 9, 7)))
        self.near(transformer.preprocess("data", image)[0], (image[:, :, 2] * 255 - 1) * 0.5, 1e-4)
        for wrong in (
            lambda: transformer.set_mean("data", np.ones(4)),
            lambda: transformer.set_mean("data", np.ones((3, 5, 5))),
            lambda: transformer.set_transpose("data", (1, 0)),
            lambda: transformer.set_channel_swap("data", (1, 0)),
            lambda: transformer.set_raw_scale("label", 1),
        ):
            with self.assertRaises(cortado.UserError):
                wrong()

    def nets(self):
        model = self.write("deploy.prototxt", DEPLOY)
        weights = str(self.folder / "deploy.caffemodel")
        caffe.Net(model, caffe.TEST).save(weights)
        return model, weights

    def test_classifier(self):
        classifier = caffe.Classifier(*self.nets(), image_dims=(10, 11), mean=np.array([10, 20, 30]), raw_scale=255, channel_swap=(2, 1, 0))
        images = [self.image(14, 12, seed) for seed in range(3)]
        planes = []
        for image in images:
            crops = io.oversample([io.resize_image(image, (10, 11))], (8, 8))
            planes.append((crops[..., ::-1] * 255 - [10, 20, 30]).transpose(0, 3, 1, 2))
        scores = [scores_by_numpy(classifier, crops) for crops in planes]
        self.near(classifier.predict(images), [each.mean(0) for each in scores], 1e-3)
        self.near(classifier.predict(images, oversample=False), [each[4] for each in scores], 1e-3)

    def test_classifier_is_the_command(self):
        file, _ = self.file(high=8, wide=8)
        model, weights = self.nets()
        classifier = caffe.Classifier(model, weights, mean=np.array([1, 2, 3]), raw_scale=255, channel_swap=(2, 1, 0))
        (scores,) = classifier.predict([io.load_image(file)], oversample=False)
        json_file = self.folder / "scores.json"
        self.command("classify", "--model", model, "--weights", weights, "--mean-value", "1,2,3", "--top", 6, "--json", json_file, file)
        import json

        predictions = json.loads(json_file.read_text())
        told = {row["class"]: row["score"] for row in predictions["images"][0]["predictions"]}
        self.near([told[kind] for kind in range(6)], scores, 1e-4)

    def test_detector(self):
        file, pixels = self.file(high=20, wide=24)
        model, weights = self.nets()
        detector = caffe.Detector(model, weights, mean=np.array([10, 20, 30]), raw_scale=255)
        windows = [(2, 3, 10, 11), (0, 0, 20, 24), (5, 5, 9, 20)]
        found = detector.detect_windows([(file, windows)])
        self.assertEqual([row["window"] for row in found], windows)
        self.assertEqual({row["filename"] for row in found}, {file})
        exact = (pixels[2:10, 3:11].astype(float) - [10, 20, 30]).transpose(2, 0, 1)[None]
        self.near(found[0]["prediction"], scores_by_numpy(detector, exact)[0], 1e-3)

    def test_detector_with_context(self):
        file, pixels = self.file(high=20, wide=24)
        model, weights = self.nets()
        detector = caffe.Detector(model, weights, raw_scale=255, context_pad=2)
        image = io.load_image(file)
        self.near(detector.crop(image, (6, 6, 10, 10)), image[4:12, 4:12])  # 8 pixels, 2 of them context at each side
        corner = detector.crop(image, (0, 0, 4, 4))
        self.near(corner[2:, 2:], image[:6, :6])
        self.same(corner[:2], np.zeros((2, 8, 3)))


if __name__ == "__main__":
    sys.exit(unittest.main())
