"""What notebooks show of a plan, a network, a machine, a simulation."""

from html import escape


def table(rows):
    """HTML of dicts with the same keys."""
    if not rows:
        return "<table></table>"
    head = "".join(f"<th>{escape(str(key))}</th>" for key in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{escape(cell(value))}</td>" for value in row.values()) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def cell(value):
    if isinstance(value, float):
        return f"{value:.6g}"
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def framed(page):
    """A whole page, in a frame of its own, so that its styles stay its own."""
    return f'<iframe srcdoc="{escape(page)}" style="width: 100%; height: 40em; border: 0"></iframe>'


def install(network, machine, plan, simulation, sweep):
    network._repr_html_ = lambda self: table(self.layers())
    machine._repr_html_ = lambda self: table(self.table())
    plan._repr_html_ = lambda self: framed(self.page())
    sweep._repr_html_ = lambda self: framed(self.page())
    simulation._repr_html_ = lambda self: f"<pre>{escape(self.text())}</pre>"
