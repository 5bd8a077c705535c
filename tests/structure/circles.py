#!/usr/bin/env python3
"""There is no circle of includes, neither of files nor of rooms. The header, the source and, in impl/, the private header
   of one name are one file.
   circles.py SOURCES     the folder src/cortado"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"cortado/([^"]+)"', re.MULTILINE)


def included(text):
    """The files that a source includes, below src/cortado."""
    return INCLUDE.findall(text)


def unit_of(file):
    return file.rsplit(".", 1)[0].replace("/impl/", "/")


def room_of(file):
    return file.split("/")[0]


def graph_of(files, name_of):
    """name -> the names that it includes, of {file: the files that it includes}; name_of joins files."""
    graph = {}
    for file, others in files.items():
        uses = graph.setdefault(name_of(file), set())
        uses.update(name_of(other) for other in others if name_of(other) != name_of(file))
    return graph


def circle_in(graph):
    """The names of one circle, the first one again at the end; empty where there is none."""
    done = set()

    def walk(name, path):
        if name in path:
            return path[path.index(name):] + [name]
        if name in done:
            return []
        for other in sorted(graph.get(name, ())):
            circle = walk(other, path + [name])
            if circle:
                return circle
        done.add(name)
        return []

    for name in sorted(graph):
        circle = walk(name, [])
        if circle:
            return circle
    return []


def main():
    root = pathlib.Path(sys.argv[1])
    files = {str(path.relative_to(root)): included(path.read_text())
             for path in sorted(root.rglob("*")) if path.suffix in (".h", ".cpp")}
    bad = len(files) < 100  # of the wrong folder
    if bad:
        print(f"{root}: only {len(files)} sources")
    for kind, name_of in (("files", unit_of), ("rooms", room_of)):
        circle = circle_in(graph_of(files, name_of))
        if circle:
            print(f"a circle of {kind}: " + " -> ".join(circle))
            bad = True
    return bad


sys.exit(main())
