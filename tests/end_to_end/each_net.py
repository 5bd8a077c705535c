"""The loop of scripts that look at one net after the other: a line for each, and how long it took."""

import time


def judge_each(names, judge):
    """`judge(name)` returns (whether it is good, a line). Returns the exit code: 1 where one is not good."""
    failures, start = 0, time.monotonic()
    for name in names:
        begin = time.monotonic()
        try:
            good, line = judge(name)
        except Exception as problem:  # noqa: BLE001: one net must not hide the others
            good, line = False, (str(problem).splitlines() or [repr(problem)])[-1][:400]
        print(f"{'' if good else 'FAILED: '}{name}: {line} ({time.monotonic() - begin:.1f} s)", flush=True)
        failures += not good
    print(f"{len(names)} nets, {failures} faults, {time.monotonic() - start:.0f} s")
    return 1 if failures else 0
