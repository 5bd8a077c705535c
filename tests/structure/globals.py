#!/usr/bin/env python3
"""The library has no variables that two users in a process share, but those listed here, each with its reason.

Looks at the variables in the objects' writable memory; those that the sources declare const are set once, by whoever comes first.

    tests/structure/globals.py NM OBJECTS ROOT      OBJECTS: the folder of the build with the rooms' objects
"""

import pathlib
import re
import subprocess
import sys

SHARED = {
    "base/activity.cpp mutex": "guards scopes",
    "base/activity.cpp scopes": "what this process does, for the command that watches a rank; nothing depends on it",
    "base/activity.h progress_count": "counts for the command that watches a rank; atomic; nothing depends on it",
    "base/crash_guard.cpp line_at": "of a thread: the file that it reads, for handlers of a process that crashes",
    "base/crash_guard.cpp line_bytes": "the same",
    "base/crash_guard.cpp innermost": "the same",
    "base/crash_guard.cpp install_next": "of the process, whose handlers they are; only the command sets it; atomic",
    "base/thread_team.cpp current_team": "of a thread: what its loops run on, as long as a scope lasts",
    "net/text_format.cpp once": "silences protobuf, once a process",
    "device/host/host_runtime.cpp device": "this computer's memory; keeps nothing",
    "kernels/onednn/weighted_passes.cpp mutex": "guards oneDNN's own state, which a process has once",
    "kernels/onednn/engine.cpp stream": "of a thread; keeps nothing between two calls",
    "apply/image_batches.cpp image": "scratch memory of a thread",
    "data/database.cpp datum": "scratch memory of a thread",
    "data/database.cpp pixels": "scratch memory of a thread",
    "job/membership.cpp watched": "the same",
    "job/signals.cpp stop_flag": "the same",
    "job/signals.cpp snapshot_flag": "the same",
    "terminal/log_lines.cpp log_format": "how the command prints lines; api uses no terminal",
    "terminal/terminal.cpp is_rank": "the same",
    "terminal/terminal.cpp terminal": "the same",
    "job/crash_handlers.cpp handled": "of the process: the handlers that it had before; only the command installs others",
    "job/rank.cpp parent_of_aborting": "of the command (tests/structure/quiet.py says why job may)",
    "job/rank.cpp offers_state": "of the command: read by its handler of signals; atomic",
    "job/rank.cpp parent_left": "the same",
}


def sources_of(item):
    """The names of the sources that an object was compiled from: one, or those of a unity build."""
    unity = item.with_suffix("")
    if not unity.name.startswith("unity_"):
        return (unity.name,)
    return tuple(re.findall(r'#include ".*/(.*\.cpp)"', unity.read_text()))


def variables(nm, item):
    """(sources' names, variable, whether a header may declare it) of each in writable memory that is ours."""
    listed = subprocess.run([nm, "-C", "-f", "sysv", item], check=True, capture_output=True, text=True).stdout
    for line in listed.split("\n"):
        fields = [field.strip() for field in line.rsplit("|", 6)]
        if len(fields) != 7 or not re.match(r"\.t?(bss|data)(?!\.rel\.ro)", fields[6].removeprefix("*")):
            continue
        name = fields[0]
        if name.startswith(("cortado::", "(anonymous")) and fields[3] in ("OBJECT", "TLS"):
            yield sources_of(item), re.sub(r"\[abi:\w+\]", "", name).rsplit("::", 1)[-1], fields[2] in "uVW"


def main():
    nm, objects, rooms = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]) / "src/cortado"
    texts = {file: file.read_text() for ending in ("*.cpp", "*.h") for file in rooms.rglob(ending)}
    faults, used = [], set()
    ours = [item for item in objects.glob("cortado_*.dir/**/*.o") if not item.name.endswith(".pb.cc.o")]  # Protobuf looks after its own
    found = {variable for item in ours for variable in variables(nm, item)}
    if len(found) < 20:
        sys.exit(f"{objects}: only {len(found)} variables")
    for sources, name, in_header in sorted(found):
        places = [f for f in texts if f.name in sources or (in_header and f.suffix == ".h")]
        constant = re.compile(rf"^(\s*(inline|static) )?(const|constexpr) ([\w:, ]|<[^;=]*>|\* ?const)+ {name}\b(\[\w*\])?( = |;|\(|{{)", re.M)
        if any(constant.search(texts[f]) for f in places):
            continue
        listed = {f"{f.relative_to(rooms)} {name}" for f in places} & set(SHARED)
        used |= listed
        if not listed:
            faults.append(f"{', '.join(sources)}: variable {name} is shared by all users of a process; make it a member, or say here why not")
    faults += [f"tests/structure/globals.py: there is no {name}" for name in sorted(set(SHARED) - used)]
    print("\n".join(faults) or f"{len(found)} variables, {len(used)} of them shared")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
