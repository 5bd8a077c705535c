"""CIFAR-10 as an archive of train/CLASS/*.jpg and test/CLASS/*.jpg."""

import subprocess

PARTS = ("train", "test")


def unpack(archive, work):
    """The archive's folders below `work`/images."""
    if not (work / "images").exists():
        (work / "images.part").mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "-xf", archive, "-C", work / "images.part"], check=True)
        (work / "images.part").rename(work / "images")


def padded(archive, work, pad):
    """Pads all images by reflection; returns the folder of train/CLASS/*.png and test/CLASS/*.png. Needs NumPy and Pillow."""
    import numpy
    from PIL import Image
    folder = work / f"padded{pad}"
    if not (folder / "done").exists():
        unpack(archive, work)
        for part in PARTS:
            for file in next((work / "images").rglob(part)).glob("*/*.jpg"):
                values = numpy.asarray(Image.open(file).convert("RGB"))
                target = folder / part / file.parent.name / (file.stem + ".png")
                target.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(numpy.pad(values, ((pad, pad), (pad, pad), (0, 0)), mode="reflect")).save(target)
        (folder / "done").touch()
    return folder


def padded_databases(cortado, archive, work, pad):
    """Databases of them: `work`/padded{pad}_train_lmdb and _test_lmdb."""
    folder = padded(archive, work, pad)
    for part in PARTS:
        database = work / f"padded{pad}_{part}_lmdb"
        if not database.exists():
            subprocess.run([cortado, "data", "folders", folder / part, database, "--shuffle"], check=True)
