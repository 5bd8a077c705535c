#!/usr/bin/env python3
"""Manual pages and completions say what --help says.

    tests/app/help_pages.py CORTADO

The pages are formatted by `man`, and the completions run in bash and fish and parsed by zsh, each where it is installed.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CORTADO = str(pathlib.Path(sys.argv[1]).resolve())
FAULTS = []


def check(good, text):
    if not good:
        FAULTS.append(text)


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, timeout=60, **more)


def printed(*words):
    done = run(CORTADO, *words)
    if done.returncode != 0:
        sys.exit(f"help_pages: {words}: exit code {done.returncode}: {done.stderr}")
    return done.stdout


def section(text, heading):
    found = re.search(rf"^{heading}:\n((?: .*\n)*)", text, re.M)
    return found[1] if found else ""


def entries(text):
    """What a help's section has, each entry as one text without white space: names, value and description."""
    found = []
    for line in text.splitlines():
        if re.match(r"  \S", line):
            found.append("")
        found[-1] += re.sub(r"\s", "", line)
    return found


def names(text):
    return re.findall(r"^  (\w+)", text, re.M)


def option_names(help_text):
    return set(re.findall(r"^  (?:-\w,)?(--[a-z][a-z-]*)", help_text, re.M)) | set(re.findall(r"^  (-\w),--", help_text, re.M))


def check_page(page, wanted, where):
    """`page` is in order and, once formatted, has each text of `wanted`."""
    done = run("man", "--warnings", "--no-hyphenation", "--no-justification", "-l", "-", input=page,
               env={**os.environ, "LC_ALL": "C", "MANWIDTH": "100", "MANPAGER": "cat", "MANROFFOPT": "-c"})
    check(done.returncode == 0 and not done.stderr, f"{where}: man says {done.stderr}")
    shown = re.sub(r"\s", "", re.sub(r".\x08", "", done.stdout))
    check("NAME" in shown and "EXITSTATUS" in shown, f"{where}: {done.stdout[:300]}")
    for text in wanted:
        check(text in shown, f"{where}: the page lacks {text}")


def check_pages(helps, verbs):
    program = printed("--help")
    listed = [re.sub(r"\s", "", f"cortado-{name}(1)") for name in names(section(program, "Subcommands"))]
    pages = {"": (printed("help", "--man"), entries(section(program, "Options")) + listed)}
    for name, text in helps.items():
        wanted = entries(section(text, "Options")) + [re.sub(r"\s", "", line) for line in section(text, "Examples").splitlines()]
        wanted += [entry for key, verb in verbs.items() if key[0] == name for entry in entries(section(verb, "Options"))]
        check(len(wanted) >= 3 or name == "device_query", f"{name}: only {wanted}")
        pages[name] = (printed("help", "--man", name), wanted)
    for name, (page, wanted) in pages.items():
        check(page.startswith('.TH "CORTADO'), f"{name}: the page begins with {page[:40]}")
        if shutil.which("man"):
            check_page(page, wanted, f"manual of '{name}'")


COMPLETE = """source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_cortado && ((${#COMPREPLY[@]})) && printf '%s\\n' "${COMPREPLY[@]}"; true
"""


def check_bash(script, helps, verbs):
    def completed(*words):
        done = run("bash", "--norc", "-c", COMPLETE, "bash", script, "cortado", *words)
        check(done.returncode == 0 and not done.stderr, f"bash: {words}: {done.stderr}")
        return set(done.stdout.split())

    for words, wanted in [
            ([""], set(helps)), (["tr"], {"train"}), (["train", "--sol"], {"--solver"}), (["train", "--precision", ""], {"f32", "bf16"}),
            (["train", "--precision", "="], {"f32", "bf16"}), (["train", "--precision", "=", "b"], {"bf16"}),
            (["train", "--solver", ""], set()), (["train", "--solver", "x", ""], set()), (["test", "--phase", "test", "--pre"], {"--precision"}),
            (["data", ""], {verb for _, verb in verbs}), (["data", "images", "--enc"], {"--encoded", "--encode-type"}),
            (["--ver"], {"--version"}), (["help", "--completion", "z"], {"zsh"})]:
        found = completed(*words)
        if words[:2] != ["test", "--phase"]:
            check(found == wanted, f"bash: {words} is completed by {sorted(found)}, wanted {sorted(wanted)}")
        else:
            check("--precision" in found, f"bash: {words} is completed by {sorted(found)}")
    for place, text in [*(((name,), text) for name, text in helps.items()), *verbs.items()]:
        check(completed(*place, "-") == option_names(text), f"bash: options of {place}: {sorted(completed(*place, '-') ^ option_names(text))}")


def check_fish(script, helps, verbs):
    def completed(line):
        done = run("fish", "--no-config", "-c", f"source {script}; complete -C '{line}'")
        check(done.returncode == 0 and not done.stderr, f"fish: {line}: {done.stderr}")
        return {entry.split("\t")[0] for entry in done.stdout.splitlines()}

    check(completed("cortado ") == set(helps), f"fish: commands are {sorted(completed('cortado '))}")
    check(completed("cortado train --precision ") == {"f32", "bf16"}, f"fish: {completed('cortado train --precision ')}")
    check(completed("cortado data ") >= {verb for _, verb in verbs}, f"fish: {completed('cortado data ')}")
    for place, text in [*(((name,), text) for name, text in helps.items() if name != "data"), *verbs.items()]:
        wanted = {name for name in option_names(text) if name.startswith("--")}
        found = completed(f"cortado {' '.join(place)} --")
        check(found == wanted, f"fish: options of {place}: {sorted(found ^ wanted)}")


def main():
    helps = {name: printed(name, "--help") for name in names(section(printed("--help"), "Subcommands"))}
    check(len(helps) >= 13, f"only {list(helps)}")
    verbs = {("data", verb): printed("data", verb, "--help") for verb in names(section(helps["data"], "Subcommands"))}
    for name, text in helps.items():
        check(printed("help", name) == text, f"'help {name}' differs from '{name} --help'")
    check(printed("help") == printed("--help"), "'help' differs from '--help'")
    wrong = run(CORTADO, "help", "trian")
    check(wrong.returncode == 2 and "did you mean" in wrong.stderr and "train" in wrong.stderr, f"help trian: {wrong.stderr}")
    check_pages(helps, verbs)
    with tempfile.TemporaryDirectory() as folder:
        scripts = {}
        for shell in ("bash", "zsh", "fish"):
            scripts[shell] = os.path.join(folder, shell)
            pathlib.Path(scripts[shell]).write_text(printed("help", "--completion", shell))
        check_bash(scripts["bash"], helps, verbs)
        if shutil.which("zsh"):
            parsed = run("zsh", "--no-rcs", "-n", scripts["zsh"])
            check(parsed.returncode == 0 and not parsed.stderr, f"zsh: {parsed.stderr}")
        if shutil.which("fish"):
            check_fish(scripts["fish"], helps, verbs)
    print("\n".join(FAULTS) or f"{len(helps)} commands, {len(verbs)} verbs")
    sys.exit(bool(FAULTS))


main()
