"""Makes the images of tests/data/images and what Pillow decodes from them (expected.txt: name, mode, height, width,
channels, then blue-green-red values). Needs python3-pil and numpy; run in this folder."""

import numpy
from PIL import Image, ImageOps

HEIGHT, WIDTH = 6, 10


def picture():
    y, x = numpy.mgrid[0:HEIGHT, 0:WIDTH]
    return numpy.stack([25 * x, 40 * y, 255 - 12 * x - 20 * y], axis=2).clip(0, 255).astype(numpy.uint8)


def expect(lines, name, mode, image):
    values = numpy.asarray(image)
    values = values.reshape(values.shape[0], values.shape[1], -1)
    order = {1: [0], 3: [2, 1, 0], 4: [2, 1, 0, 3]}[values.shape[2]]
    numbers = " ".join(str(v) for v in values[:, :, order].ravel())
    lines.append(f"{name} {mode} {values.shape[0]} {values.shape[1]} {values.shape[2]} {numbers}")


def main():
    lines = []
    rgb = Image.fromarray(picture())

    def jpeg(name, image, **options):
        image.save(f"images/{name}", "JPEG", quality=95, **options)
        return Image.open(f"images/{name}")

    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        name = f"orientation{orientation}.jpg"
        expect(lines, name, "color", ImageOps.exif_transpose(jpeg(name, rgb, exif=exif, subsampling=0)))
    expect(lines, "subsampled.jpg", "color", jpeg("subsampled.jpg", rgb, subsampling=2))
    expect(lines, "progressive.jpg", "color", jpeg("progressive.jpg", rgb, progressive=True, subsampling=0))
    gray = jpeg("gray.jpg", rgb.convert("L"))
    expect(lines, "gray.jpg", "native", gray)
    expect(lines, "gray.jpg", "color", gray.convert("RGB"))
    expect(lines, "cmyk.jpg", "color", jpeg("cmyk.jpg", rgb.convert("CMYK"), subsampling=0).convert("RGB"))

    def png(name, image):
        image.save(f"images/{name}")
        return Image.open(f"images/{name}")

    alpha = rgb.copy()
    alpha.putalpha(Image.fromarray(picture()[:, :, 0]))
    expect(lines, "rgb.png", "native", png("rgb.png", rgb))
    expect(lines, "rgba.png", "native", png("rgba.png", alpha))
    expect(lines, "rgba.png", "color", Image.open("images/rgba.png").convert("RGBA").convert("RGB"))
    expect(lines, "gray.png", "native", png("gray.png", rgb.convert("L")))
    expect(lines, "gray_alpha.png", "native", png("gray_alpha.png", alpha.convert("LA")).convert("RGBA"))
    palette = png("palette.png", rgb.quantize(16))
    expect(lines, "palette.png", "native", palette.convert("RGB"))
    deep = (picture()[:, :, 0].astype(numpy.uint16) << 8) + 77
    Image.fromarray(deep.astype(numpy.int32), "I").convert("I;16").save("images/gray16.png")
    expect(lines, "gray16.png", "native", (deep >> 8).astype(numpy.uint8))

    with open("images/expected.txt", "w") as file:
        file.write("\n".join(lines) + "\n")


main()
