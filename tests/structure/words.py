#!/usr/bin/env python3
"""Texts of the library name no options of the command: a program that links it has none.

    tests/structure/words.py ROOT
"""

import re
import sys

from lines_of_code import check

OPTION = re.compile(r'"(?:[^"\\]|\\.)*?(?<![\w.:#\-])--[a-z](?:[^"\\]|\\.)*"')

# Rooms and files that may.
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
    "train/training_folder.cpp": "--output of cortado train",
    "train/training_events.cpp": "--tensorboard of cortado train",
    "train/training_log.cpp": "--log of cortado train",
    "auto/job_cut.cpp": "what must be equal on the ranks of a command",
}


def fault_of(line):
    if line.lstrip().startswith("#include") or not OPTION.search(line):
        return None
    return "names an option of the command"


if __name__ == "__main__":
    check(sys.argv[1], fault_of, EXCEPTIONS)
