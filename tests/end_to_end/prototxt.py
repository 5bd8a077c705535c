"""Reads protobuf text: just enough of it for Caffe's model files."""

import re

TOKEN = re.compile(r"""\#[^\n]*|\s+|(?P<string>"[^"]*"|'[^']*')|(?P<word>[\w.+-]+)|(?P<sign>[{}:;,\[\]])""")


class Message:
    """An ordered list of (field, value); a value is a Message, bool, int, float or str."""

    def __init__(self, fields=()):
        self.fields = list(fields)

    def all(self, name):
        return [value for field, value in self.fields if field == name]

    def get(self, name, default=None):
        """The last value of that field; an empty Message where a message is absent and no default is given."""
        values = self.all(name)
        return values[-1] if values else Message() if default is None and name.endswith("_param") else default


def value_of(word):
    if word in ("true", "false"):
        return word == "true"
    for number in (int, float):
        try:
            return number(word)
        except ValueError:
            pass
    return word


def parse(text):
    tokens, position = [], 0
    while position < len(text):
        match = TOKEN.match(text, position)
        if not match:
            raise ValueError(f"cannot read {text[position:position + 20]!r}")
        if match.lastgroup:
            tokens.append((match.lastgroup, match.group()))
        position = match.end()
    return parse_fields(iter(tokens), nested=False)


def parse_fields(tokens, nested):
    message = Message()
    for kind, token in tokens:
        if token == "}" and nested:
            return message
        if kind != "word":
            raise ValueError(f"a field's name is expected, not {token!r}")
        kind, following = next(tokens)
        if following == ":":
            kind, following = next(tokens)
        if following == "{":
            message.fields.append((token, parse_fields(tokens, nested=True)))
        else:
            message.fields.append((token, following[1:-1] if kind == "string" else value_of(following)))
    return message
