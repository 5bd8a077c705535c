"""Every option of every command that takes a number refuses, by its name and with its range, what is no such number;
no command takes numbers in another way. Help shows examples, exit codes and defaults."""
import concurrent.futures
import decimal
import re
import subprocess
import sys

CORTADO = sys.argv[1]
OPTION = re.compile(r"^  (?:-\w,)?(--[\w-]+)(?: (.*))?$")
NUMBER = re.compile(r"NUMBER \((\S+) to (\S+)\)")


def check(good, text):
    if not good:
        sys.exit(f"number_options: {text}")


def run(*words):
    done = subprocess.run([CORTADO, *words], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


def help_of(*command):
    code, out, _ = run(*command, "--help")
    check(code == 0, f"{command}: --help ends with {code}")
    return out


def section(text, title):
    match = re.search(rf"^{title}:\n((?:  .*\n|\n(?=  ))*)", text, re.M)
    return match[1].splitlines() if match else []


def names(lines):
    """The first word of each entry; lines that go on begin further in."""
    return [line.split()[0].rstrip(",") for line in lines if re.match(r"  \S", line)]


def refused_values(least, most):
    whole = "e" not in least + most and "." not in least + most
    below, above = decimal.Decimal(least), decimal.Decimal(most)
    return ["nan", "-inf", "1e999", "9" * 30, "5x", f"{above + 1 if whole else 2 * above:f}", *([f"{below - 1:f}", "1.5"] if whole else [])]


def check_option(command, option, least, most):
    for value in refused_values(least, most):
        code, _, error = run(*command, f"{option}={value}")
        wanted = rf"cortado: error: {option}: .* is not a (whole )?number from {re.escape(least)} to {re.escape(most)}\n"
        check(code == 2 and re.fullmatch(wanted, error),
              f"{' '.join(command)} {option}={value!r}: exit code {code}, {error!r}")


def check_command(command, pool):
    text = help_of(*command)
    check("Exit codes: 0 " in text, f"{command}: no exit codes in its help")
    jobs, lines = [], section(text, "Options")
    for line in lines:
        found = OPTION.match(line.split("   ")[0])
        if not found or not found[2]:
            continue
        check(not re.match(r"(INT|UINT|FLOAT)\b", found[2]), f"{command}: {found[0]!r} takes a number unchecked")
        if number := NUMBER.search(found[2]):
            entry = text[text.index(line):]
            entry = entry[:re.search(r"\n  -|\n\n", entry + "\n\n").start()]
            check("default: " in entry or "REQUIRED" in entry, f"{command}: no default in {entry!r}")
            jobs.append(pool.submit(check_option, command, found[1], *number.groups()))
    for verb in names(section(text, "Subcommands")):
        jobs += check_command([*command, verb], pool)
    return jobs


top = help_of()
commands = names(section(top, "Subcommands"))
check(len(commands) >= 9, f"commands: {commands}")
told = run()[2]
check(all(command in told for command in commands), f"'give a command' leaves some of {commands} out: {told}")
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    jobs = []
    for command in commands:
        check(f"Examples:\n  cortado {command}" in help_of(command), f"{command}: no example in its help")
        jobs += check_command([command], pool)
    for job in jobs:
        job.result()
check(len(jobs) > 30, f"only {len(jobs)} numbers were found")
