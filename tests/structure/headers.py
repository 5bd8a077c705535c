#!/usr/bin/env python3
"""The public headers include each other and the standard library alone, and each compiles by itself.

    tests/structure/headers.py CXX ROOT
"""

import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

PUBLIC = "cortado/api/"
BESIDES = {"cortado/base/error.h", "cortado/layers/user_layer.h"}  # installed with them


def includes(text):
    """Of each include: the name, and whether it is in <>."""
    return [(name, bracket == "<") for bracket, name in re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', text, re.M)]


def check_includes(src, headers):
    """Standard headers are those whose names have neither a dot nor a folder."""
    for header in headers:
        for name, in_brackets in includes((src / header).read_text()):
            allowed = re.fullmatch(r"\w+", name) if in_brackets else name in headers
            if not allowed:
                yield f"src/{header}: includes {name}: public headers include only the standard library's and each other"


def check_compile(cxx, src, headers):
    """Each by itself, where no other header of Cortado is."""
    with tempfile.TemporaryDirectory() as folder:
        for header in headers:
            there = pathlib.Path(folder, header)
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_bytes((src / header).read_bytes())

        def compile_alone(header):
            command = [cxx, "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I", folder, "-x", "c++", "-"]
            return header, subprocess.run(command, input=f'#include "{header}"\n', capture_output=True, text=True)

        with ThreadPoolExecutor(2) as pool:
            for header, result in pool.map(compile_alone, headers):
                if result.returncode:
                    yield f"src/{header}: does not compile by itself:\n{result.stderr}"


def main():
    cxx, src = sys.argv[1], pathlib.Path(sys.argv[2]) / "src"
    headers = sorted({PUBLIC + path.name for path in (src / PUBLIC).glob("*.h")} | BESIDES)
    if len(headers) < 10:
        sys.exit(f"src/{PUBLIC}: only {len(headers)} headers")
    faults = [*check_includes(src, headers), *check_compile(cxx, src, headers)]
    print("\n".join(faults) or f"{len(headers)} headers")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
