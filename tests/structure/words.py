#!/usr/bin/env python3
"""Texts of the library name no options of the command: a program that links it has none.

    tests/structure/words.py ROOT
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from quiet import code_of

OPTION = re.compile(r'"(?:[^"\\]|\\.)*?(?<![\w.:#\-])--[a-z](?:[^"\\]|\\.)*"')

# Rooms and files that may, each with its reason. One that does not is a fault of this list.
EXCEPTIONS = {
    "app": "the command",
    "cli": "options themselves",
    "job": "the command as the parent of ranks; api uses no job",
    "apply": "classify and extract; api does not use it",
    "report": "pages and advice say how the command goes on",
    "data/image_set.cpp": "images of apply",
    "data/import.cpp": "cortado data",
    "data/database_folder.cpp": "cortado data",
    "train/compare_cut.cpp": "cortado verify",
    "train/training_log.cpp": "--log of cortado train",
    "auto/job_cut.cpp": "what must be equal on the ranks of a command",
}


def main():
    rooms = pathlib.Path(sys.argv[1]) / "src/cortado"
    faults, used, files = [], set(), 0
    for file in sorted([*rooms.rglob("*.cpp"), *rooms.rglob("*.h")]):
        name = file.relative_to(rooms)
        files += 1
        for number, line in enumerate(code_of(file.read_text()), 1):
            if line.lstrip().startswith("#include") or not OPTION.search(line):
                continue
            reason = {str(name), name.parts[0]} & set(EXCEPTIONS)
            used |= reason
            if not reason:
                faults.append(f"src/cortado/{name}:{number}: names an option of the command: {line.strip()}")
    faults += [f"tests/structure/words.py: {name} needs no exception" for name in sorted(set(EXCEPTIONS) - used)]
    if files < 300:
        sys.exit(f"only {files} files in {rooms}")
    print("\n".join(faults) or f"{files} files")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
