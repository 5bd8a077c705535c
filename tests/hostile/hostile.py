#!/usr/bin/env python3
"""Gives the command inputs that were made to do harm. Each must end with exit code 2 and one line, within a minute and 600 MiB.

    hostile.py CORTADO [--only PART]      those whose name has PART in it

inputs.py makes them.
"""

import argparse
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import inputs  # noqa: E402

MOST_BYTES, MOST_SECONDS = 600 << 20, 60
# Resident memory alone counts: mathematical libraries reserve address space that they never touch. So this is only the net below.
ADDRESS_SPACE = 24 << 30


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(cortado, words, folder):
    """(exit code or None after the limit, standard error, peak resident bytes)"""
    errors = folder / "errors.txt"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    with open(errors, "wb") as file:
        process = subprocess.Popen([cortado, *words], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=file, preexec_fn=limited)
    end = time.monotonic() + MOST_SECONDS
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status), errors.read_text(errors="replace"), used.ru_maxrss << 10
        if time.monotonic() > end:
            process.kill()
            process.wait()
            return None, errors.read_text(errors="replace"), 0
        time.sleep(0.002)


def complaint(code, errors, peak):
    told = [line for line in errors.splitlines() if line.startswith("cortado: error:")]
    if code is None:
        return f"takes over {MOST_SECONDS} s"
    if code != 2 or len(told) != 1:
        return f"exit code {code}, {len(told)} lines of errors"
    if not told[0].isprintable() or len(told[0]) > 2000:
        return "its line is not fit to be read"
    if peak > MOST_BYTES:
        return f"takes {peak >> 20} MiB"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cortado")
    parser.add_argument("--only", default="")
    parser.add_argument("--show", action="store_true", help="print what each one gets")
    arguments = parser.parse_args()
    cortado, count, failed, most = str(pathlib.Path(arguments.cortado).resolve()), 0, [], 0
    for case in inputs.cases():
        if arguments.only not in case.name:
            continue
        with tempfile.TemporaryDirectory(prefix="cortado-hostile-") as name:
            folder = pathlib.Path(name)
            inputs.write_good(folder)
            case.write(folder)
            code, errors, peak = run(cortado, case.words, folder)
        count, most, wrong = count + 1, max(most, peak), complaint(code, errors, peak)
        if wrong:
            failed.append(case.name)
            print(f"{case.name}: {wrong}: {' '.join(case.words)}\n  {errors[-600:]}")
        elif arguments.show:
            print(f"{case.name}: {errors.strip()} ({peak >> 20} MiB)")
    print(f"{count} inputs, {len(failed)} wrong{': ' + ', '.join(failed) if failed else ''}; at most {most >> 20} MiB")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
