#!/usr/bin/env python3
"""oneDNN makes primitives under the lock of kernels/onednn/weighted_passes.h alone: made by several threads at once, about
one of 1,600 brgemm convolutions computes other sums. So primitives and their descriptors come into being within a call of
plan_passes(), whose first act is to take the lock. Reorders are no such convolutions.

    tests/structure/creation.py ROOT
"""

import pathlib
import re
import sys

from lines_of_code import code_of

MAKES = re.compile(r"\b(\w+)::primitive_desc\s*[({]|\b(primitive)\s*\(|\b((?:de)?convolution|inner_product)_(forward|backward\w+)\s*[({]")
DEFINITION = re.compile(r"\bplan_passes\(const WeightedProblem& problem,[^{]*\{\s*const std::lock_guard \w+\(creation\(\)\);")
HOME = "kernels/onednn/weighted_passes.h"


def end_of(text, begin):
    """Where the bracket at `begin` closes."""
    depth = 0
    for at in range(begin, len(text)):
        depth += (text[at] in "({") - (text[at] in ")}")
        if depth == 0:
            return at
    return len(text)


def locked_parts(name, text):
    """The calls of plan_passes(), and its body in its home if it begins with the lock."""
    for call in re.finditer(r"\bplan_passes\(", text):
        yield call.start(), end_of(text, call.end() - 1)
    if name == HOME and (definition := DEFINITION.search(text)):
        yield definition.start(), end_of(text, text.index("{", definition.start()))


def main():
    rooms = pathlib.Path(sys.argv[1]) / "src/cortado"
    faults, made = [], 0
    for file in sorted([*rooms.rglob("*.cpp"), *rooms.rglob("*.h")]):
        text = "\n".join(code_of(file.read_text()))
        if "dnnl.h" not in text and "kernels/onednn/" not in text and "dnnl::" not in text:
            continue
        name = str(file.relative_to(rooms))
        parts = list(locked_parts(name, text))
        for found in MAKES.finditer(text):
            if found[1] == "reorder":
                continue
            made += 1
            if not any(begin <= found.start() < end for begin, end in parts):
                line = text.count("\n", 0, found.start()) + 1
                faults.append(f"src/cortado/{name}:{line}: makes a primitive of oneDNN without the lock; call plan_passes()")
    if made < 10:  # forward and two backward passes of three layers, and the primitive itself
        faults.append(f"only {made} places make primitives of oneDNN; at least 10 are expected")
    print("\n".join(faults) or f"{made} places")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
