"""Lines of the library that a rule forbids outside of rooms and files which have a reason."""

import pathlib
import re
import sys


def code_of(text):
    """Without comments; lines stay where they are."""
    text = re.sub(r"/\*.*?\*/", lambda comment: "\n" * comment[0].count("\n"), text, flags=re.S)
    return [re.sub(r"(?<!:)//.*", "", line) for line in text.split("\n")]


def check(root, fault_of, exceptions):
    """Ends the program with the faults that fault_of(line of code) names; None: none. `exceptions`: the reason of each
    room and file that may. One that needs none is a fault, too."""
    rooms = pathlib.Path(root) / "src/cortado"
    faults, used, files = [], set(), 0
    for file in sorted([*rooms.rglob("*.cpp"), *rooms.rglob("*.h")]):
        name = file.relative_to(rooms)
        files += 1
        for number, line in enumerate(code_of(file.read_text()), 1):
            fault = fault_of(line)
            if not fault:
                continue
            reason = {str(name), name.parts[0]} & set(exceptions)
            used |= reason
            if not reason:
                faults.append(f"src/cortado/{name}:{number}: {fault}: {line.strip()}")
    faults += [f"{pathlib.Path(sys.argv[0]).name}: {name} needs no exception" for name in sorted(set(exceptions) - used)]
    if files < 300:
        sys.exit(f"only {files} files in {rooms}")
    print("\n".join(faults) or f"{files} files")
    sys.exit(bool(faults))
