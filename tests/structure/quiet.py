#!/usr/bin/env python3
"""The library prints nothing, ends no process and installs no signal handler: those are the command's (room app).

    tests/structure/quiet.py ROOT
"""

import re
import sys

from lines_of_code import check

WORDS = {
    "prints": r"\bstd::(cout|cerr|clog|print|println)\b|\bfmt::print(ln)?\s*\(|(?<![\w.>])v?(printf|puts|putchar|perror)\s*\(|"
    r"\b(stdout|stderr|STD(OUT|ERR)_FILENO)\b|/dev/(tty|stdout|stderr)",
    "ends the process": r"(?<![\w.>:])(std::)?(exit|_exit|_Exit|quick_exit|abort|terminate)\s*\(",
    "touches signals": r"(?<![\w.>])(std::|::)?(signal|sigaction|sigprocmask|pthread_sigmask|raise|kill|alarm)\s*\(\s*[^)]*SIG|"
    r"\bsigaction\s*\(|\bstd::(signal|raise|set_terminate|atexit)\s*\(",
}

# Rooms and files that may.
EXCEPTIONS = {
    "app": "the command",
    "terminal": "the command's lines on a terminal; api uses no terminal",
    "job": "the command as the parent of ranks: it passes on what they print and ends them. No public header reaches it (api uses no job).",
}


def fault_of(line):
    found = [what for what, pattern in WORDS.items() if re.search(pattern, line)]
    return f"{', '.join(found)}; hand it to the caller" if found else None


if __name__ == "__main__":
    check(sys.argv[1], fault_of, EXCEPTIONS)
