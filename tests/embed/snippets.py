#!/usr/bin/env python3
"""The blocks of C++ in docs/how-to/embed.md compile against the public headers.

    tests/embed/snippets.py CXX ROOT
"""

import pathlib
import re
import subprocess
import sys


def main():
    cxx, root = sys.argv[1], pathlib.Path(sys.argv[2])
    first, *blocks = re.findall(r"^```cpp\n(.*?)^```", (root / "docs/how-to/embed.md").read_text(), re.S | re.M)
    if len(blocks) < 5:
        sys.exit(f"docs/how-to/embed.md: only {len(blocks)} blocks of C++ after the first")
    source = first + "".join(f"void block{i}() {{\n{block}}}\n" for i, block in enumerate(blocks))
    command = [cxx, "-std=c++20", "-fsyntax-only", "-I", root / "src", "-x", "c++", "-"]
    compiled = subprocess.run(command, input=source, capture_output=True, text=True)
    print(compiled.stderr or f"{len(blocks)} blocks")
    sys.exit(compiled.returncode)


if __name__ == "__main__":
    main()
