"""docs/results/papers.md, made from the CSVs that lie there: no number of ours is typed in."""

import json

import common
import headlines

HEAD = """# Results: the papers' figures

Every figure and table of the five [papers](../explanation/papers.md) that can be asked of a computer without a GPU has
a command. This page is made by `bench/papers/run` from the CSVs beside it (`docs/results/papers/`), which
a test checks. The values of the papers are typed in once, with their pages: `bench/papers/published.json`. Bars whose
values no text gives are not guessed.

```
bench/papers/run --list
bench/papers/run --all --cortado build/release/cortado
bench/papers/lee.py --figure-6 --cortado build/release/cortado
```

## How the machines were calibrated

The [machine files](../reference/machines.md#ready-machines) have data sheets' figures. For this page they are
calibrated on points of single devices and of data parallelism alone; all else is predicted.

- `deepa-k80` and `layer-wise-p100`: for each net all efficiencies are scaled alike until one device trains it as fast as
  in TensorFlow's published benchmarks, which the papers say they match (DeePa, section 7.3): 29.3, 35.4 and 656
  images a second of Inception-v3, VGG-16 and AlexNet on half a K80; 128, 144 and 2987 on a P100.
- The hosts' memory of `deepa-k80`: by one data-parallel point of the same benchmarks, VGG-16 on 8 K80s with parameter
  servers in CPU memory (234 images a second). That of `layer-wise-p100`: by one of DeePa's, VGG-16 on four P100s.
- `cori-phase-1`: the bandwidth between nodes, by Lee et al.'s plain data parallelism on 128 nodes (19.92 times one).
- `lassen`: efficiencies, by the minutes that Dryden et al.'s Table 1 gives for sample parallelism.
- `deepa-tables` and `layer-wise-sizes` are the first two as their papers cost transfers: over one bus of 4.49 GB/s (by
  Table 2, 18.9 MB take 8.4 ms there and back), and of the link's 18 GB/s. `deepa-tables` takes its rates from Tables 2
  and 3: they are 1.3 and 3.8 times the peak of half a K80, so its seconds are good for bytes and orders alone. A bus
  of 4.49 GB/s makes AlexNet under `data` slower on 16 of its devices than on one, which the paper measured nowhere.

**The opponent.** The papers compare with parameter servers in host memory. `server` below is that, a
[strategy](../reference/strategy.md#parameter-servers) of the command: each device computes its share, sends all its
gradients to the hosts and reads all parameters back, and nothing is hidden. `data` is the stronger opponent of today:
rings between devices, hidden under computing.
"""

LONGEST = 34  # rows of a table; longer ones are in the CSV


def table(rows):
    keys = list(rows[0])
    numbers = [all(is_number(row[key]) for row in rows if row[key]) for key in keys]
    lines = ["| " + " | ".join(keys) + " |", "|" + "".join("--:|" if number else "---|" for number in numbers)]
    return "\n".join(lines + ["| " + " | ".join(row[key] for key in keys) + " |" for row in rows])


def is_number(text):
    try:
        float(text)
        return True
    except ValueError:
        return False


def wrapped(words, width=118):
    lines = [""]
    for word in words.split():
        if len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return "\n".join(lines)


def section(one, folder):
    rows = common.read_csv(folder / f"{one.name}.csv")
    origin = json.loads((folder / f"{one.name}.json").read_text())
    label = one.option.replace("-", " ").capitalize()
    parts = [f"### {label}: {one.title}"]
    note = one.note(rows)
    if note:
        parts.append(wrapped(note))
    if one.picture:
        parts.append(f"![{one.title}](papers/{one.name}.svg)")
    parts.append(wrapped(f"Command: `{origin['command']}`. Commit: {origin['commit']}. Machine: {origin.get('machine', 'any')}, {origin['kind']}. "
                         f"Date: {origin['date']}. In the paper: {one.where}."
                         + ("" if len(rows) <= LONGEST else f" The {len(rows)} rows are in [the CSV](papers/{one.name}.csv).")))
    if len(rows) <= LONGEST:
        parts.append(table(rows))
    return "\n\n".join(parts)


def headline_origin(folder):
    """That of the figures which the headlines are taken from."""
    origins = [json.loads(path.read_text()) for name in {row[1] for row in headlines.HEADLINES} for path in [folder / f"{name}.json"] if path.exists()]
    machines = ["any, simulated", *sorted({f"{one['machine']}, measured" for one in origins if "machine" in one})]
    return (f"Command: `bench/papers/run --page`. Commit: {', '.join(sorted({one['commit'] for one in origins}))}. Machine: {'; '.join(machines)}. "
            f"Date: {max(one['date'] for one in origins)}.")


def text(folder):
    parts = [HEAD.strip(), "## The headlines\n\nWhat is more than "
             f"{headlines.CLOSE} % off has its cause, and the figure of this page that shows it.\n\n" + wrapped(headline_origin(folder)) + "\n\n" + table(list(headlines.rows(folder)))]
    for paper, title in common.PUBLISHED["papers"].items():
        own = [f for f in common.FIGURES if f.paper == paper]
        made = [f for f in own if (folder / f"{f.name}.csv").exists()]
        if made:
            parts.append(f"## {title}")
            parts += [section(one, folder) for one in made]
        absent = [f for f in own if f not in made]
        if absent:
            if not made:
                parts.append(f"## {title}")
            parts.append(f"Without figures here, of {title}:\n\n" + "\n".join(
                f"- {one.option.replace('-', ' ').capitalize()}: {one.title}. "
                + ("It needs a GPU." if one.kind == common.GPU else "Measured, not yet on a quiet machine.") for one in absent))
    return "\n\n".join(parts) + "\n"
