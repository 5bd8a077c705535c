#!/usr/bin/env python3
"""docs/reference/commands.md has every option of every command, and no other: compared with --help.

    tests/structure/commands.py CORTADO ROOT
"""

import pathlib
import re
import subprocess
import sys

OPTION = re.compile(r"--[a-z][a-z-]*")


def sections(text):
    """Of each heading, as an anchor: the options that its tables name, and the anchors of the options that come with them."""
    for part in re.split(r"^## +", text, flags=re.M)[1:]:
        heading, _, body = part.partition("\n")
        cells = [cell for row in re.findall(r"^\|(.*)\|$", body, re.M) for cell in re.split(r"(?<!\\)\|", row)[:-1]]
        options = {option for cell in cells for code in re.findall(r"`(--[^`]*)`", cell) for option in OPTION.findall(code)[:1]}
        before_table = body.partition("\n|")[0]
        yield heading.strip().lower().replace(" ", "-"), (options, re.findall(r"\(#(options-of-[\w-]+)\)", before_table))


def help_of(cortado, *words):
    return subprocess.run([cortado, *words, "--help"], check=True, capture_output=True, text=True).stdout.partition("Examples:")[0]


def options_of(help_text):
    return set(re.findall(r"^\s{2,4}(?:-\w,)?(--[a-z][a-z-]*)", help_text, re.M)) - {"--help"}


def subcommands(help_text):
    return re.findall(r"^  (\w+)", help_text.partition("ubcommands:")[2], re.M)


def main():
    cortado, root = sys.argv[1], pathlib.Path(sys.argv[2])
    page = dict(sections((root / "docs/reference/commands.md").read_text()))
    commands, faults = subcommands(help_of(cortado)), []
    if len(commands) < 13:
        sys.exit(f"cortado --help shows {len(commands)} commands; at least 13 are expected")
    for command in commands:
        if f"cortado-{command}" not in page:
            faults.append(f"commands.md: there is no section 'cortado {command}'")
            continue
        own, groups = page[f"cortado-{command}"]
        told = own.union(*(page[group][0] for group in groups))
        text = help_of(cortado, command)
        known = options_of(text).union(*(options_of(help_of(cortado, command, verb)) for verb in subcommands(text)))
        faults += [f"commands.md: 'cortado {command}' lacks {option}" for option in sorted(known - told)]
        faults += [f"commands.md: 'cortado {command}' has {option}, which the command has not" for option in sorted(told - known)]
    for heading in page:
        if heading.startswith("cortado-") and heading.removeprefix("cortado-") not in commands:
            faults.append(f"commands.md: section '{heading}' is of no command")
    print("\n".join(faults) or f"{len(commands)} commands")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
