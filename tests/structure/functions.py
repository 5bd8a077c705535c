#!/usr/bin/env python3
"""No function has more than 60 lines, from the line of its name to its closing brace.
   functions.py SOURCES [longest]     prints the longest ones, too, as many as are asked for"""
import pathlib
import re
import sys

MOST_LINES = 60
RAW_STRING = re.compile(r'R"(\w*)\((.*?)\)\1"', re.DOTALL)
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])\'', re.DOTALL)
TYPE = re.compile(r'\b(?:namespace|class|struct|union|enum|extern)\b[^(]*$')


def blanked(text):
    """The text without what stands in comments and literals, line by line as before."""
    keep_lines = lambda match: re.sub(r'[^\n]', ' ', match.group())
    text = TOKEN.sub(keep_lines, RAW_STRING.sub(keep_lines, text))
    return re.sub(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', keep_lines, text, flags=re.MULTILINE)


def functions_of(text):
    """(first line, lines, head) of each brace block that is no namespace or type and lies in none that is one of
    these blocks: functions, and tables of constants."""
    text = blanked(text)
    outer = []  # True: a namespace or a type
    start, line, found = 0, 1, []  # where the head of the next block begins
    begun = None
    for at, letter in enumerate(text):
        if letter == "\n":
            line += 1
        elif letter == "{":
            head = text[start:at]
            outer.append(all(outer) and bool(TYPE.search(re.sub(r'template\s*<[^{};]*>', '', head))))
            if not outer[-1] and outer.count(False) == 1:
                lead = len(head) - len(head.lstrip())
                begun = (line - head[lead:].count("\n"), " ".join(head.split()))
            start = at + 1
        elif letter == "}":
            if outer and not outer.pop() and all(outer):
                found.append((begun[0], line - begun[0] + 1, begun[1]))
            if all(outer):
                start = at + 1
        elif letter == ";" and all(outer):
            start = at + 1
    if outer:
        raise ValueError("braces do not match")
    return found


def main():
    root = pathlib.Path(sys.argv[1])
    functions = []
    for path in sorted(root.rglob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        for line, lines, head in functions_of(path.read_text()):
            if "(" in head:
                functions.append((lines, path, line, head))
    functions.sort(key=lambda function: -function[0])
    shown = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    bad = len(functions) < 1000  # of the wrong folder, or misread
    if bad:
        print(f"{root}: only {len(functions)} functions")
    for i, (lines, path, line, head) in enumerate(functions):
        if i < shown or lines > MOST_LINES:
            print(f"{path}:{line}: {lines} lines, at most {MOST_LINES}: {head[-100:]}")
    return bad or functions[0][0] > MOST_LINES


if __name__ == "__main__":
    sys.exit(main())
