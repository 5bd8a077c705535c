#!/usr/bin/env python3
"""The library prints nothing, ends no process and installs no signal handler: those are the command's (room app).

    tests/structure/quiet.py ROOT
"""

import pathlib
import re
import sys

WORDS = {
    "prints": r"\bstd::(cout|cerr|clog|print|println)\b|\bfmt::print(ln)?\s*\(|(?<![\w.>])v?(printf|puts|putchar|perror)\s*\(|"
    r"\b(stdout|stderr|STD(OUT|ERR)_FILENO)\b|/dev/(tty|stdout|stderr)",
    "ends the process": r"(?<![\w.>:])(std::)?(exit|_exit|_Exit|quick_exit|abort|terminate)\s*\(",
    "touches signals": r"(?<![\w.>])(std::|::)?(signal|sigaction|sigprocmask|pthread_sigmask|raise|kill|alarm)\s*\(\s*[^)]*SIG|"
    r"\bsigaction\s*\(|\bstd::(signal|raise|set_terminate|atexit)\s*\(",
}

# Rooms and files that may, each with its reason. One that does not is a fault of this list.
EXCEPTIONS = {
    "app": "the command",
    "terminal": "the command's lines on a terminal; api uses no terminal",
    "job": "the command as the parent of ranks: it passes on what they print and ends them. No public header reaches it (api uses no job).",
}


def code_of(text):
    """Without comments; lines stay where they are."""
    text = re.sub(r"/\*.*?\*/", lambda comment: "\n" * comment[0].count("\n"), text, flags=re.S)
    return [re.sub(r"(?<!:)//.*", "", line) for line in text.split("\n")]


def main():
    rooms = pathlib.Path(sys.argv[1]) / "src/cortado"
    faults, used, files = [], set(), 0
    for file in sorted([*rooms.rglob("*.cpp"), *rooms.rglob("*.h")]):
        name = file.relative_to(rooms)
        files += 1
        for number, line in enumerate(code_of(file.read_text()), 1):
            for what, pattern in WORDS.items():
                if not re.search(pattern, line):
                    continue
                reason = {str(name), name.parts[0]} & set(EXCEPTIONS)
                used |= reason
                if not reason:
                    faults.append(f"src/cortado/{name}:{number}: {what}: {line.strip()}; hand it to the caller")
    faults += [f"tests/structure/quiet.py: {name} needs no exception" for name in sorted(set(EXCEPTIONS) - used)]
    if files < 300:
        sys.exit(f"only {files} files in {rooms}")
    print("\n".join(faults) or f"{files} files")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
