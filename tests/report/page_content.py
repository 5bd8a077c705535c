"""What is in the planner's page: well-formed, self-contained, every layer, names escaped.

page_content.py CORTADO
"""

import html.parser
import json
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

import pages

SVG = '{http://www.w3.org/2000/svg}'
HTML = '{http://www.w3.org/1999/xhtml}'
NAMESPACES = ('http://www.w3.org/1999/xhtml', 'http://www.w3.org/2000/svg')


class AsHtml(html.parser.HTMLParser):
    """The text and the elements that an HTML reader sees."""

    def __init__(self):
        super().__init__()
        self.elements, self.text = [], ''

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


def check(condition, message):
    if not condition:
        raise SystemExit(message)


def check_self_contained(name, text, elements):
    rest = text
    for namespace in NAMESPACES:
        rest = rest.replace(f'xmlns="{namespace}"', '')
    check(not re.search(r'https?:|//[a-z]|@import|url\(', rest), f'{name}: refers to something outside')
    check(not any(tag in ('script', 'link', 'img', 'iframe', 'object', 'base') for tag, _ in elements),
          f'{name}: an element that loads or runs something')
    for tag, attributes in elements:
        for key, value in attributes.items():
            check(key not in ('src', 'srcset', 'data') and not key.startswith('on'), f'{name}: <{tag} {key}>')
            check(key != 'href' or value.startswith('#'), f'{name}: a link to {value}')


def check_page(name, path, plan):
    text = path.read_text(encoding='utf-8')
    root = ElementTree.fromstring(text)  # well-formed
    as_html = AsHtml()
    as_html.feed(text)
    as_html.close()
    check_self_contained(name, text, as_html.elements)
    check(len(root.findall(f'.//{SVG}svg')) > 3, f'{name}: pictures are missing')

    # An HTML reader and an XML reader see the same elements: nothing in a name became markup.
    seen = [element.tag.split('}')[1] for element in root.iter()]
    check(sorted(seen) == sorted(tag for tag, _ in as_html.elements), f'{name}: HTML and XML readers differ')

    rows = {row.get('id'): ''.join(row.find(f'{HTML}th').itertext()) for row in root.iter(f'{HTML}tr')
            if row.get('id')}
    boxes = [box.find(f'{SVG}title').text for box in root.iter(f'{SVG}a')]
    check(len(plan['layers']) == len(rows), f'{name}: {len(rows)} rows, {len(plan["layers"])} groups of layers')
    for g, layer in enumerate(plan['layers']):
        full = ' + '.join([layer['name']] + layer['with'])
        check(rows[f'layer-{g}'] == full, f'{name}: row of {full}: {rows[f"layer-{g}"]}')
        check(sum(full in box for box in boxes) >= 1, f'{name}: no box has {full}')

    ids = [element.get('id') for element in root.iter() if element.get('id')]
    check(len(ids) == len(set(ids)), f'{name}: an id is given twice')
    for _, attributes in as_html.elements:
        target = attributes.get('href', '#')[1:]
        check(not target or target in ids, f'{name}: a link to {target}, which is not there')
    for baseline in plan['baselines']:
        check(baseline in as_html.text, f'{name}: baseline {baseline} is missing')
    check(('frontier' in plan) == ('frontier' in ids), f'{name}: frontier')


def main():
    with pages.temporary_folder() as folder:
        for name, page, figures in pages.make_pages(sys.argv[1], pathlib.Path(folder)):
            plan = json.loads(figures.read_text())
            check_page(name, page, plan)
            if name == 'odd':
                names = [layer['name'] for layer in plan['layers']]
                check(names[:len(pages.ODD_NAMES)] == pages.ODD_NAMES, f'the odd names came as {names}')
            print(f'{name}: {len(plan["layers"])} groups of layers, {page.stat().st_size // 1024} KiB')


if __name__ == '__main__':
    main()
