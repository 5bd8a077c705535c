"""Writes protobuf text from plain Python values.

A message is a dict (or a list of pairs where a field repeats); a list value repeats its field; `Enum` marks
a name that is written without quotes.
"""

LINE = 100  # columns: a message of scalars that fits is written on one line


class Enum(str):
    """An enumeration's name, such as MAX or TRAIN."""


def scalar(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"'
    return repr(value)


def fields(message):
    """(name, value) of every field in order, repeated fields spread out, absent ones (None) left out."""
    for name, value in message.items() if isinstance(message, dict) else message:
        for element in value if isinstance(value, (list, tuple)) else [value]:
            if element is not None:
                yield name, element


def one_line(name, message, indent):
    pairs = list(fields(message))
    if any(isinstance(value, dict) for _, value in pairs):
        return None
    line = f"{indent}{name} {{ " + " ".join(f"{key}: {scalar(value)}" for key, value in pairs) + " }"
    return line if len(line) <= LINE else None


def lines(message, indent=""):
    for name, value in fields(message):
        if not isinstance(value, dict):
            yield f"{indent}{name}: {scalar(value)}"
            continue
        line = one_line(name, value, indent) if name != "layer" else None
        if line:
            yield line
        else:
            yield f"{indent}{name} {{"
            yield from lines(value, indent + "  ")
            yield f"{indent}}}"


def text(message):
    return "\n".join(lines(message)) + "\n"
