#!/usr/bin/env python3
"""docs/results/papers.md and the pictures are what bench/papers makes of the CSVs beside them, and every figure that needs no
GPU and no quiet machine has its CSV.

    tests/structure/papers.py ROOT
"""

import pathlib
import re
import sys

sys.dont_write_bytecode = True

# What the papers have that a computer without their clusters can be asked, by the numbers in the papers.
WANTED = {
    "deepa": "figure-1 figure-2 figure-7 figure-8 figure-9 figure-10 figure-11 figure-12 figure-13 figure-14 figure-15 figure-16 table-2 table-3",
    "layerwise": "figure-1 figure-3 figure-7 figure-8 table-1 table-2 table-3 table-4 table-5",
    "lee": "figure-5 figure-6 figure-7 figure-8 figure-9 figure-10 figure-11 figure-12",
    "troll": "figure-2 figure-3 figure-4a figure-4b figure-5 figure-6 figure-7 figure-8 figure-9 price",
    "channels": "figure-3 figure-4 figure-5 figure-6 figure-7 figure-8 table-1",
}


def faults(root):
    sys.path.insert(0, str(root / "bench/papers"))
    import channels, deepa, layerwise, lee, troll  # noqa: E401, F401  their figures register themselves
    import common
    import page
    import svg

    folder = root / "docs/results/papers"
    figures = {one.name: one for one in common.FIGURES}
    if len(figures) < len(common.FIGURES):
        yield "bench/papers: two figures have one name"
    for paper, options in WANTED.items():
        for name in (f"{paper}-{option}" for option in options.split()):
            if name not in figures:
                yield f"bench/papers/{paper}.py: has no option --{name.removeprefix(paper + '-')}"
    for one in common.FIGURES:
        missing = [end for end in ("csv", "json") if not (folder / f"{one.name}.{end}").exists()]
        if missing and one.kind == common.SIMULATED:
            yield f"docs/results/papers/{one.name}: there is no {' and no '.join(missing)}; bench/papers/{one.paper}.py --{one.option} makes it"
        if not missing and one.picture:
            path = folder / f"{one.name}.svg"
            if not path.exists() or path.read_text() != svg.draw(one.title, common.read_csv(folder / f"{one.name}.csv"), **one.picture):
                yield f"docs/results/papers/{one.name}.svg: is not the picture of its CSV"
    known = {f"{name}.{end}" for name in figures for end in ("csv", "json", "svg")}
    for path in sorted(folder.iterdir()):
        if path.name not in known:
            yield f"docs/results/papers/{path.name}: is of no figure"
    written = (root / "docs/results/papers.md").read_text()
    made = page.text(folder)
    if made != written:
        line = next((i for i, (a, b) in enumerate(zip(made.splitlines(), written.splitlines())) if a != b), 0)
        yield f"docs/results/papers.md, line {line + 1}: is not what the CSVs say; bench/papers/run --page writes it"
    origins = re.findall(r"Command: `bench/papers/(\w+)\.py --([\w-]+)`", written)
    for paper, option in origins:
        if f"{paper}-{option}" not in figures:
            yield f"docs/results/papers.md: names bench/papers/{paper}.py --{option}, which is not there"


def main():
    found = list(faults(pathlib.Path(sys.argv[1]).resolve()))
    print("\n".join(found) or "the page of the papers is that of its CSVs")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
