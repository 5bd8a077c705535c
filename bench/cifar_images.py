"""CIFAR-10 as an archive of train/CLASS/*.jpg and test/CLASS/*.jpg."""

import subprocess


def unpack(archive, work):
    """The archive's folders below `work`/images."""
    if not (work / "images").exists():
        (work / "images.part").mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "-xf", archive, "-C", work / "images.part"], check=True)
        (work / "images.part").rename(work / "images")
