"""What is in the pages: well-formed, self-contained, every layer, names escaped; lanes as long as the trace says.

page_content.py CORTADO
"""

import html.parser
import json
import pathlib
import re
import shlex
import subprocess
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


def read_page(name, path):
    """The page as XML, and as HTML."""
    text = path.read_text(encoding='utf-8')
    root = ElementTree.fromstring(text)  # well-formed
    as_html = AsHtml()
    as_html.feed(text)
    as_html.close()
    check_self_contained(name, text, as_html.elements)
    # An HTML reader and an XML reader see the same elements: nothing in a name became markup.
    seen = [element.tag.split('}')[1] for element in root.iter()]
    check(sorted(seen) == sorted(tag for tag, _ in as_html.elements), f'{name}: HTML and XML readers differ')
    return root, as_html


def check_frame(name, root, command, version):
    """What to do stands under the title; at the end when, by what and by which command the page was made."""
    header = list(root.find(f'.//{HTML}header'))
    check([header[0].tag, header[1].get('class')] == [f'{HTML}h1', 'advice'] and header[1].text.endswith('.'),
          f'{name}: no advice under the title')
    origin = root.find(f'.//{HTML}footer')[-1]
    check(re.fullmatch(r'Made \d{4}-\d\d-\d\d \d\d:\d\d UTC by Cortado ' + re.escape(version) + ': ', origin.text),
          f'{name}: made {origin.text}')
    words = shlex.split(origin.find(f'{HTML}code').text)
    check(words == ['cortado'] + [str(word) for word in command[1:]], f'{name}: made by {words}')


def check_explained(name, path, legend, picture):
    text = path.read_text(encoding='utf-8')
    check(0 < text.find(legend) < text.find(picture), f'{name}: {legend} does not stand before {picture}')


def check_plan_page(name, path, plan, command, version):
    root, as_html = read_page(name, path)
    check_frame(name, root, command, version)
    check_explained(name, path, '<b>n</b> the samples of a batch', 'class="chip')
    check_explained(name, path, 'legend configs', 'class="pieces"')
    check_explained(name, path, '<b>single</b>: all on one device', 'bars totals')
    check('eliminated' not in as_html.text.split('How the plan was found')[0], f'{name}: statistics are not folded')
    shown = [text.text for text in root.iter(f'{SVG}text') if text.get('class') == 'of']
    check(name == 'odd' or not any('\u2026' in text for text in shown), f'{name}: names of boxes are cut short')
    check(len(root.findall(f'.//{SVG}svg')) > 3, f'{name}: pictures are missing')

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


def check_sweep_page(name, path, sweep, command, version):
    root, as_html = read_page(name, path)
    check_frame(name, root, command, version)
    text = ' '.join(as_html.text.split())
    points = sweep['points']
    rows = [row for section in root.iter(f'{HTML}section') if section.get('id') == 'points'
            for row in section.iter(f'{HTML}tr') if row.find(f'{HTML}th').get('scope') == 'row']
    check(len(rows) == len(points), f'{name}: {len(rows)} rows, {len(points)} points')
    for row, point in zip(rows, points):
        shown = ' '.join(''.join(row.itertext()).split())
        check(shown.startswith(f'{point["devices"]} device'), f'{name}: a row is {shown}')
        check(('does not fit' in shown) == (not point['fits']), f'{name}: does it fit: {shown}')
        check(not point['fits'] or point['bound'] in shown, f'{name}: what bounds is missing: {shown}')
    fitting = [point for point in points if point['fits']]
    bars = [item for item in root.iter(f'{HTML}li') if item.find(f'{SVG}svg') is not None]
    check(len(bars) == len(points), f'{name}: {len(bars)} bars')
    for bar, point in zip(bars, points):
        drawn = sum(float(part.get('width')) for part in bar.iter(f'{SVG}rect'))
        check(abs(drawn - 1000 * point['fits']) < 1, f'{name}: a bar of {drawn}')
    dots = sum(dot.get('class').startswith('dot') for dot in root.iter(f'{SVG}circle'))
    check(dots == len(fitting), f'{name}: {dots} dots')
    priced = any(point['price_per_hour'] for point in points)
    check(('a million images' in text) == priced or not fitting, f'{name}: prices')
    check(('says no prices' in text) != priced, f'{name}: whether there are prices')
    check('The smallest machine that fits' in text, f'{name}: the smallest machine')


COMPUTE = ('forward', 'backward', 'weights', 'update', 'other')


def width_of(element, parent):
    """Of a slice, in percent of its lane; a slice with a label is a picture within it."""
    width = (parent if element.get('width') == '100%' else element).get('width')
    return float(width.rstrip('%'))


def check_lanes(name, lane, slices, iteration):
    """A rank's lanes against its trace: as much computing, as much waiting."""
    drawn, waited, labelled = 0, 0, 0
    parents = {child: parent for parent in lane.iter() for child in parent}
    for element in lane.iter(f'{SVG}rect'):
        kind = element.get('class').split()
        if kind[0] in COMPUTE:
            drawn += width_of(element, parents[element]) / 100 * iteration
            labelled += element.get('width') == '100%'
        elif kind[0] == 'wait':
            waited += width_of(element, parents[element]) / 100 * iteration
    computing = sum(slice['dur'] for slice in slices if slice['tid'] == 0) / 1e6
    exposed = sum(slice['args'].get('exposed_us', 0) for slice in slices) / 1e6
    check(abs(drawn - computing) < 0.03 * computing + 1e-6, f'{name}: {drawn} s are drawn, {computing} s computed')
    check(abs(waited - exposed) < 0.03 * exposed + 0.002 * iteration, f'{name}: {waited} s drawn, {exposed} s waited')
    return labelled


def check_run_page(name, path, figures, trace, command, version):
    root, as_html = read_page(name, path)
    check_frame(name, root, command, version)
    check_explained(name, path, 'swatch forward', 'bars lanes')
    text = ' '.join(as_html.text.split())
    ranks = figures['ranks']
    ratio = figures['overlap_ratio_percent']
    check(ratio is None or f'{ratio:.1f} %' in text, f'{name}: the overlap ratio {ratio} is missing')
    check(('Eq. 11' in text) == (ranks > 1), f'{name}: what R is')
    slices = [event for event in trace['traceEvents'] if event['ph'] == 'X']
    lanes = [item for item in root.iter(f'{HTML}li') if item.get('class') == 'shown']
    simulated = [item for item in root.iter(f'{HTML}li') if item.get('class') == 'simulated']
    check(len(lanes) == min(ranks, 8), f'{name}: {len(lanes)} of {ranks} ranks are drawn')
    check(len(simulated) == (len(lanes) if 'prediction' in figures else 0), f'{name}: simulated lanes')
    # Of an odd number of iterations one took the median: the one that is drawn.
    drawn = re.search(r'Iteration (\d+) of (\d+), which took (\S+) ms: (\S+) times the median', text)
    check((drawn is None) == name.startswith('simulated'), f'{name}: which iteration is drawn')
    if drawn:
        median = root.find(f'.//{HTML}ul/{HTML}li/{HTML}b').text  # the first tile
        check(drawn[2] == '3' and drawn[3] == median and drawn[4] == '1.00', f'{name}: {drawn[0]}, {median}')
    longest = max(slice['ts'] + slice['dur'] for slice in slices if slice['tid'] == 0) / 1e6
    if name.startswith('simulated'):
        labelled = sum(check_lanes(name, lane, [slice for slice in slices if slice['pid'] == rank],
                                   figures['step_seconds'])
                       for rank, lane in enumerate(lanes))
        check(labelled > 0 or len(slices) / ranks > 300, f'{name}: no slice has a label')
        check(longest <= figures['step_seconds'] * 1.0001, f'{name}: computing after the end')
    layers = {slice['args']['layer'] for slice in slices
              if slice['tid'] > 0 and slice['cat'] != 'load' and 'layer' in slice['args']}
    rows = {''.join(item.find(f'{HTML}span').itertext()) for item in root.iter(f'{HTML}li')
            if item.find(f'{HTML}span') is not None and item.find(f'{HTML}span').get('title')}
    check(ranks == 1 or layers <= rows, f'{name}: layers {layers - rows} have messages and no row')
    if 'prediction' in figures:
        named = {layer['name'] for layer in figures['prediction']['layers'] if layer['forward_measured_seconds'] > 0}
        check(named <= rows, f'{name}: {named - rows} are not beside what was predicted')
    print(f'{name}: {len(slices)} steps of {ranks} ranks, {path.stat().st_size // 1024} KiB')


def main():
    done = subprocess.run([sys.argv[1], '--version'], capture_output=True, text=True, check=True)
    version = done.stdout.strip()
    with pages.temporary_folder() as folder:
        for name, page, figures, command in pages.make_plan_pages(sys.argv[1], pathlib.Path(folder)):
            plan = json.loads(figures.read_text())
            check_plan_page(name, page, plan, command, version)
            if name == 'odd':
                names = [layer['name'] for layer in plan['layers']]
                check(names[:len(pages.ODD_NAMES)] == pages.ODD_NAMES, f'the odd names came as {names}')
            print(f'{name}: {len(plan["layers"])} groups of layers, {page.stat().st_size // 1024} KiB')
        for name, page, figures, command in pages.make_sweep_pages(sys.argv[1], pathlib.Path(folder)):
            check_sweep_page(name, page, json.loads(figures.read_text()), command, version)
        for name, page, figures, trace, command in pages.make_run_pages(sys.argv[1], pathlib.Path(folder)):
            check_run_page(name, page, json.loads(figures.read_text()), json.loads(trace.read_text()), command, version)


if __name__ == '__main__':
    main()
