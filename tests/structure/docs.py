#!/usr/bin/env python3
"""The pages of docs/ are in order: each lies in one of the four folders and can be reached from README.md, every link and
anchor exists, every file that a page names exists, every table of results says where it is from, and the rooms of design.md
are those of arrows.sh.

    tests/structure/docs.py ROOT
"""

import pathlib
import re
import sys

KINDS = ("how-to", "reference", "explanation", "results")
ORIGIN = ("Command:", "Commit:", "Machine:", "Date:")


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)


def anchors(text):
    """The anchors of a page's headings, as GitHub and GitLab make them."""
    for heading in re.findall(r"^#+ +(.*)$", without_code(text), re.M):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        yield re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", words))


def links(text):
    """(page, anchor) of relative links; pictures are pages without an anchor."""
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(text)):
        if "://" not in target:
            yield target.partition("#")[::2]


def check_pages(root, pages):
    for page in sorted((root / "docs").rglob("*.md")):
        folder = page.relative_to(root / "docs").parts
        if len(folder) != 2 or folder[0] not in KINDS:
            yield f"{page.relative_to(root)}: lies in none of the folders {', '.join(KINDS)} of docs/"
    seen, next_pages = set(), [root / "README.md"]
    while next_pages:
        page = next_pages.pop()
        if page in seen:
            continue
        seen.add(page)
        for target, anchor in links(pages[page]):
            there = (page.parent / target).resolve() if target else page
            where = f"{page.relative_to(root)}: link to {target}{'#' if anchor else ''}{anchor}"
            if not there.exists():
                yield f"{where}: there is no such file"
            elif there in pages:
                if anchor and anchor not in anchors(pages[there]):
                    yield f"{where}: there is no such heading"
                next_pages.append(there)
    for page in sorted(set(pages) - seen):
        yield f"{page.relative_to(root)}: no page that README.md leads to has a link to it"


def check_files(root, pages):
    """`folder/file.ext` in a page is below the root or below src/cortado."""
    folders = [p.name for p in root.iterdir() if p.is_dir()] + [p.name for p in (root / "src/cortado").iterdir()]
    name = re.compile(r"`((?:%s)/[\w./-]+\.(?:h|cpp|def|py|sh|json|prototxt|proto|md))`" % "|".join(map(re.escape, folders)))
    for page, text in pages.items():
        for file in name.findall(text):
            at = [root / file, root / "src/cortado" / file]
            at += [page.parent / file]
            if not any(p.exists() for p in at) and not file.startswith("build/") and "NAME" not in file:
                yield f"{page.relative_to(root)}: names {file}, which is not there"


def check_results(root, pages):
    """Before each table of docs/results/, after the table before it, a paragraph with command, commit, machine and date."""
    for page, text in pages.items():
        if page.parent != root / "docs/results":
            continue
        since = ""
        for paragraph in re.split(r"\n\s*\n", without_code(text)):
            if not paragraph.startswith("|"):
                since += "\n\n" + paragraph
                continue
            origin = next((p for p in since.split("\n\n") if p.startswith(ORIGIN[0])), "")
            missing = [word for word in ORIGIN if word not in origin]
            row = paragraph.split("\n")[0]
            if missing:
                yield f"{page.relative_to(root)}: the table '{row}' has no line with {' '.join(missing)}"
            elif not re.search(r"Commit: [0-9a-f]{7,}", " ".join(origin.split())) or not re.search(r"Date:\s+\d{4}-\d\d-\d\d", origin):
                yield f"{page.relative_to(root)}: the table '{row}' names no commit (abbreviated hash) or date (YYYY-MM-DD)"
            since = ""


def check_rooms(root, pages):
    """The table of rooms in design.md is that of arrows.sh."""
    script = (root / "tests/structure/arrows.sh").read_text()
    allowed = {room: set(uses.split()) for room, uses in re.findall(r'^  \[(\w+)\]="([^"]*)"$', script, re.M)}
    text = pages[root / "docs/explanation/design.md"]
    told = dict(re.findall(r"^\| `(\w+)` \|.*\|([^|]*)\|$", text, re.M))
    for room in sorted(set(allowed) | set(told)):
        if room not in told or room not in allowed:
            yield f"docs/explanation/design.md: room '{room}' is in only one of its table and tests/structure/arrows.sh"
        elif told[room].strip() != "all" and set(told[room].split()) != allowed[room]:
            differ = sorted(set(told[room].split()) ^ allowed[room])
            yield f"docs/explanation/design.md: room '{room}' uses {' '.join(differ)} in only one of its table and arrows.sh"
    for folder in sorted(p.name for p in (root / "src/cortado").iterdir() if p.is_dir()):
        if folder not in told:
            yield f"docs/explanation/design.md: src/cortado/{folder} is not in the table of rooms"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    files = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    pages = {file: file.read_text() for file in files}
    faults = [fault for check in (check_pages, check_files, check_results, check_rooms) for fault in check(root, pages)]
    print("\n".join(faults) or f"{len(pages)} pages")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
