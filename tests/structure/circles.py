#!/usr/bin/env python3
"""There is no circle of includes, neither of units nor of rooms. A unit is a header with all that implements it, whatever
   the names of the files: the source of its name, the sources of its room that define functions which it declares, and
   the headers that define the nested types which it declares. Lists of rows (.def) count as what the macros that read
   them make of them.
   circles.py SOURCES     the folder src/cortado"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from functions import blanked, functions_of

INCLUDE = re.compile(r'^\s*#\s*include\s+"cortado/([^"]+)"', re.MULTILINE)
LIST = re.compile(r'^#define (\w+)\(name, \.\.\.\)((?:.*\\\n)*.*)\n#include "cortado/([^"]+\.def)"$', re.MULTILINE)
NAME = re.compile(r"((?:\w+(?:<[^<>()]*>)?::)*~?\w+)\s*\((.*)", re.DOTALL)
DECLARED = re.compile(r"^[A-Za-z_\[][^\n;{}()=]*?\b(\w+)\(([^;]*?)\)(?: noexcept)?;", re.MULTILINE)
TYPE = re.compile(r"\b(?:class|struct)\s+((?:\w+::)*\w+)\s*(?:final\s*)?(?::[^;{()]*)?\{")


def room_of(file):
    return file.split("/")[0]


def stem_of(file):
    return file.rsplit(".", 1)[0]


def without_anonymous(text):
    """The text without its anonymous namespaces."""
    kept, end = "", 0
    for match in re.finditer(r"\bnamespace\s*\{", text):
        if match.start() < end:
            continue
        kept, end, depth = kept + text[end:match.start()], match.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
    return kept + text[end:]


def with_rows(text, root):
    """The text with the rows of the lists that it includes, as the macro before each list writes them."""
    def written(match):
        macro, body, file = match.groups()
        names = re.findall(rf"^{macro}\((\w+)", (root / file).read_text(), re.MULTILINE)
        return "\n".join(re.sub(r"#*\bname\b#*", name, body.replace("\\\n", "")).strip() for name in names)

    return LIST.sub(written, text)


def types_of(parameters):
    """The types of a function's parameters: "const Net& net, int n = 1" -> ("const Net&", "int")."""
    types, depth, text = [], 0, ""
    for letter in parameters + ",":
        depth += {"<": 1, "(": 1, "{": 1, ">": -1, ")": -1, "}": -1}.get(letter, 0)
        if letter != "," or depth:
            text += letter
            continue
        text = " ".join(text.split("=")[0].split())
        types.append(re.sub(r"(?<=[&*> \w])\s*\b(?<=[&*> ])\w+$", "", text).replace("cortado::", "") if " " in text else text)
        text = ""
    return tuple(types)


def parameters_at(text):
    """The text up to the parenthesis that closes."""
    depth = 1
    for at, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return text[:at]
    return text


def defined_in(text):
    """(name, types of the parameters) of each function that a source defines for others: "f", "Class::f"."""
    for _, _, head in functions_of(without_anonymous(text)):
        found = NAME.search(re.sub(r"\[\[.*?\]\]|decltype\([^()]*\)|\boperator\S*", "", head))
        if found and not re.match(r"(static|inline)\b", head):
            yield re.sub(r"<[^<>]*>", "", found[1]), types_of(parameters_at(found[2]))


class Units:
    """Joins files to units."""

    def __init__(self, texts):
        self.texts = {file: blanked(text) for file, text in texts.items()}
        self.parent = {file: file for file in texts}
        self.functions, self.types = {}, {}  # (room, name) -> [(header, types of parameters)], headers
        for file, text in self.texts.items():
            if file.endswith(".h"):
                for name, parameters in DECLARED.findall(text):
                    self.functions.setdefault((room_of(file), name), []).append((file, types_of(parameters)))
                for name in TYPE.findall(text):
                    self.types.setdefault((room_of(file), name), set()).add(file)
        for file in texts:
            for owner in self.owners_of(file):
                self.parent[self.root_of(file)] = self.root_of(owner)

    def root_of(self, file):
        while self.parent[file] != file:
            file = self.parent[file]
        return file

    def owners_of(self, file):
        """The headers that a file implements."""
        owners = {stem_of(file) + ".h"} & set(self.texts)
        if file.endswith(".h"):
            nested = (name.rsplit("::", 1)[0] for name in TYPE.findall(self.texts[file]) if "::" in name)
            return owners.union(*(self.of_type(file, name) for name in nested))
        for name, types in defined_in(self.texts[file]):
            if "::" in name:
                headers = self.of_type(file, name.rsplit("::", 1)[0])
            else:
                declared = self.functions.get((room_of(file), name), [])
                headers = {header for header, others in declared if others == types} or {header for header, _ in declared}
            owners |= headers
        return owners

    def of_type(self, file, name):
        """The headers, of those in reach of a file, that define a type or the one that it is nested in."""
        headers = {header for part in (name, name.split("::")[0]) for header in self.types.get((room_of(file), part), ())}
        return headers & self.reach_of(file)

    def reach_of(self, file):
        reach, ahead = set(), [file]
        while ahead:
            for other in INCLUDE.findall(raw[ahead.pop()]):
                if other in self.texts and other not in reach:
                    reach.add(other)
                    ahead.append(other)
        return reach

    def names(self):
        """Of each file: its unit's name, that of the first header."""
        members = {}
        for file in self.texts:
            members.setdefault(self.root_of(file), []).append(file)
        return {file: stem_of(min(files, key=lambda name: (not name.endswith(".h"), name)))
                for files in members.values() for file in files}


def graph_of(name_of):
    """name -> the names that it includes; name_of joins files."""
    graph = {}
    for file, text in raw.items():
        others = {name_of(other) for other in INCLUDE.findall(text) if other in raw}
        graph.setdefault(name_of(file), set()).update(others - {name_of(file)})
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
    unit_of = Units(raw).names()
    bad = len(raw) < 300 or len(set(unit_of.values())) < 200  # of the wrong folder, or misread
    if bad:
        print(f"only {len(raw)} sources of {len(set(unit_of.values()))} units")
    for kind, name_of in (("units", unit_of.get), ("rooms", room_of)):
        circle = circle_in(graph_of(name_of))
        if circle:
            print(f"a circle of {kind}: " + " -> ".join(circle))
            bad = True
    headers = {unit_of[file] for file in raw if file.endswith(".h")}
    for file in sorted(raw):
        if unit_of[file] not in headers and file != "app/main.cpp":
            print(f"{file} implements no header that this test can find: give it one")
            bad = True
    if "--units" in sys.argv:
        for name in sorted(set(unit_of.values())):
            print(name + ": " + " ".join(file for file in unit_of if unit_of[file] == name))
    return bad


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1])
    raw = {str(path.relative_to(root)): with_rows(path.read_text(), root)
           for path in sorted(root.rglob("*")) if path.suffix in (".h", ".cpp")}
    sys.exit(main())
