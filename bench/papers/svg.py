"""Pictures of small tables: bars or lines, one colour a series, numbers beside them. No library needed."""

import math
from xml.sax.saxutils import escape

COLOURS = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#9c755f", "#76b7b2", "#edc948"]
WIDTH, LEFT, TOP = 760, 64, 56


def number(text):
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def wide(words, size=12):
    """About how many units of width the words take."""
    return 0.56 * size * len(words)


def heading(title):
    return text(WIDTH / 2, 20, title, size=min(14, 14 * (WIDTH - 16) / wide(title, 15)), more='font-weight="bold"')


def text(x, y, words, anchor="middle", size=12, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:.4g}" text-anchor="{anchor}" {more}>{escape(words)}</text>'


def nice(value):
    """The least of 1, 2, 5 times a power of ten that is not below value."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * step for step in (1, 2, 5, 10) if power * step >= value * 0.9999)


class Axis:
    """Of y: from 0 to above the largest value, or by powers of ten."""

    def __init__(self, values, log, height):
        self.log, self.height = log, height
        self.top = 10.0 ** math.ceil(math.log10(max(values) * 1.3)) if log else max(values) * 1.08
        self.bottom = 10.0 ** math.floor(math.log10(min(v for v in values if v > 0))) if log else 0.0

    def at(self, value):
        part = (math.log10(max(value, self.bottom) / self.bottom) / math.log10(self.top / self.bottom) if self.log
                else value / self.top)
        return TOP + self.height - self.height * part

    def marks(self):
        if self.log:
            return [self.bottom * 10 ** i for i in range(round(math.log10(self.top / self.bottom)) + 1)]
        step = nice(self.top / 5)
        return [step * i for i in range(int(self.top / step) + 1)]


def legend(names):
    parts, x = [], LEFT
    for index, name in enumerate(names):
        parts.append(f'<rect x="{x:.0f}" y="31" width="11" height="11" fill="{COLOURS[index % len(COLOURS)]}"/>')
        parts.append(text(x + 15, 41, name, "start", 11))
        x += 26 + 6.3 * len(name)
    return parts


def frame(title, series, unit, axis):
    """Title, axis of y with its lines, legend."""
    parts = [heading(title)]
    for value in axis.marks():
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 16}" y1="{axis.at(value):.1f}" y2="{axis.at(value):.1f}" stroke="#ddd"/>')
        parts.append(text(LEFT - 6, axis.at(value) + 4, f"{value:g}", "end", 11))
    middle = TOP + axis.height / 2
    parts.append(text(14, middle, unit, size=12, more=f'transform="rotate(-90 14 {middle})"'))
    return parts + legend(series)


def label_angle(names):
    """Of the names below the bars: level, slanting, or upright where the first one would begin outside."""
    longest, group = max(wide(name, 11) for name in names), (WIDTH - LEFT - 16) / len(names)
    return 0 if longest <= group else 28 if longest * math.cos(math.radians(28)) < LEFT + group / 2 else 90


def bar_names(rows, x):
    return [" ".join(row[key] for key in x) for row in rows]


def bars(rows, x, series, axis):
    parts, group = [], (WIDTH - LEFT - 16) / len(rows)
    names = bar_names(rows, x)
    angle = label_angle(names)
    width = min(40, group * 0.84 / len(series))
    for r, row in enumerate(rows):
        middle = LEFT + group * (r + 0.5)
        for s, name in enumerate(series):
            value = number(row[name])
            if value is None:
                continue
            left, y = middle + (s - len(series) / 2) * width, axis.at(value)
            parts.append(f'<rect x="{left:.1f}" y="{y:.1f}" width="{width * 0.94:.1f}" height="{TOP + axis.height - y:.1f}" '
                         f'fill="{COLOURS[s % len(COLOURS)]}"/>')
            if width > 17:
                parts.append(text(left + width / 2, y - 3, f"{value:.0f}" if value >= 1000 else f"{value:.3g}", size=9 if width < 28 else 10))
        at = middle + 4 * (angle == 90), TOP + axis.height + 16 - 6 * (angle == 90)
        turn = f'transform="rotate(-{angle} {at[0]:.1f} {at[1] - 2})"' if angle else ""
        parts.append(text(*at, names[r], "end" if turn else "middle", 11, turn))
    return parts


def lines(rows, x, series, axis):
    """x: one column of numbers, on an axis of equal steps."""
    parts, places = [], sorted({float(row[x[0]]) for row in rows})
    at = {place: LEFT + 24 + (WIDTH - LEFT - 64) * i / max(1, len(places) - 1) for i, place in enumerate(places)}
    parts += [text(at[place], TOP + axis.height + 16, f"{place:g}", size=11) for place in places]
    for s, name in enumerate(series):
        colour = COLOURS[s % len(COLOURS)]
        points = [(at[float(row[x[0]])], axis.at(number(row[name])))
                  for row in rows if number(row[name]) is not None]
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="'
                     + " ".join(f"{a:.1f},{b:.1f}" for a, b in points) + '"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" fill="{colour}"/>' for a, b in points]
    parts.append(text((WIDTH + LEFT) / 2, TOP + axis.height + 34, x[0]))
    return parts


def spans(rows, lane, start, length, colour_of):
    """A timeline: a bar of each row in its lane."""
    lanes = list(dict.fromkeys(row[lane] for row in rows))
    kinds = list(dict.fromkeys(row[colour_of] for row in rows))
    end = max(float(row[start]) + float(row[length]) for row in rows)
    parts, height = [], 26
    for i, name in enumerate(lanes):
        parts.append(text(LEFT + 66, TOP + height * i + 16, name, "end", 11))
    x0, scale = LEFT + 72, (WIDTH - LEFT - 100) / end
    for row in rows:
        y = TOP + height * lanes.index(row[lane])
        parts.append(f'<rect x="{x0 + scale * float(row[start]):.2f}" y="{y + 3}" '
                     f'width="{max(0.2, scale * float(row[length])):.2f}" height="{height - 6}" '
                     f'fill="{COLOURS[kinds.index(row[colour_of]) % len(COLOURS)]}"/>')
    bottom = TOP + height * len(lanes)
    for i in range(6):
        parts.append(text(x0 + scale * end * i / 5, bottom + 16, f"{end * i / 5:.0f}", size=11))
    parts.append(text((WIDTH + LEFT) / 2, bottom + 32, start))
    parts += legend(kinds)
    return parts, bottom + 44


def draw(title, rows, kind="bars", x=(), series=(), unit="", only=None, log=False, **timeline):
    """The picture of the rows (texts, as they lie in the CSV). `only`: column and value of the rows that are drawn."""
    if only:
        rows = [row for row in rows if row[only[0]] == only[1]]
    total = TOP + 260 + 64
    if kind == "spans":
        parts, total = spans(rows, **timeline)
        parts = [heading(title), *parts]
    else:
        axis = Axis([number(row[name]) for row in rows for name in series if number(row[name]) is not None], log, 260)
        if kind == "bars" and label_angle(bar_names(rows, x)) == 90:
            total = TOP + 260 + 24 + max(wide(name, 11) for name in bar_names(rows, x))
        parts = frame(title, series, unit, axis) + (lines if kind == "lines" else bars)(rows, x, series, axis)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{total:.0f}" viewBox="0 0 {WIDTH} {total:.0f}" '
            'font-family="sans-serif">\n<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")
