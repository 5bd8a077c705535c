#!/usr/bin/env python3
"""Writes the model zoo: models/NAME/{train_val,deploy,solver}.prototxt.

    models/generate.py            write all files
    models/generate.py --check    write nothing; exit 1 and name the files that differ

Needs nothing but Python 3.9 or newer.
"""

import argparse
import pathlib
import sys

from generator import (classic, densenet, googlenet, googlenet_bn, inception, mobile, regnet, resnet, shufflenet,
                       squeezenet, unet, vgg)

FAMILIES = (classic, vgg, googlenet, googlenet_bn, inception, resnet, regnet, densenet, squeezenet, mobile, shufflenet,
            unet)


def main():
    parser = argparse.ArgumentParser(description="Write the model zoo, or check that it is as generated.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file differs")
    check = parser.parse_args().check

    root = pathlib.Path(__file__).resolve().parent
    stale = []
    for model in (model for family in FAMILIES for model in family.MODELS):
        for name, text in model.files().items():
            path = root / model.name / name
            if path.is_file() and path.read_text() == text:
                continue
            stale.append(path)
            if not check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
    for path in stale:
        print(f"{'differs from the generator' if check else 'wrote'}: {path.relative_to(root.parent)}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
