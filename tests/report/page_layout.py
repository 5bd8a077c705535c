"""How a browser lays the pages out: nothing overflows at any width, texts stay in their boxes, it prints.

page_layout.py CORTADO [FOLDER]    with FOLDER: also pictures, NAME-WIDTH-light.png and -dark.png, and NAME.pdf
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

import pages

WIDTHS = (360, 390, 768, 1280)

# Run in the page: what sticks out of the window, and which text sticks out of its box.
PROBE = '''<script>
addEventListener('load', () => {
  const wrong = [], width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) wrong.push('the page is ' + document.documentElement.scrollWidth);
  for (const element of document.body.querySelectorAll('*')) {
    const box = element.getBoundingClientRect();
    if (box.width > 0 && (box.right > width + 1 || box.left < -1) && getComputedStyle(element).opacity != 0)
      wrong.push(element.tagName + ' ' + element.className + ' from ' + box.left + ' to ' + box.right);
  }
  for (const link of document.querySelectorAll('.pieces a')) {
    const box = link.querySelector('rect').getBoundingClientRect();
    for (const text of link.querySelectorAll('text')) {
      const inner = text.getBoundingClientRect();
      if (inner.left < box.left - 1 || inner.right > box.right + 1) wrong.push('text ' + text.textContent);
    }
  }
  // A label lies within its slice of the timeline, or is not shown; labels are legible sizes.
  for (const text of document.querySelectorAll('.lanes svg svg text')) {
    const inner = text.getBoundingClientRect(), box = text.parentElement.querySelector('rect').getBoundingClientRect();
    if (inner.width > 0 && (inner.left < box.left - 1 || inner.right > box.right + 1 || inner.bottom > box.bottom + 2))
      wrong.push('label ' + text.textContent + ' ' + inner.width + ' in ' + box.width);
  }
  const ticks = [...document.querySelectorAll('.axis text')].map((text) => text.getBoundingClientRect());
  for (let i = 1; i < ticks.length; ++i) if (ticks[i].left < ticks[i - 1].right + 2) wrong.push('ticks overlap');
  for (const cell of document.querySelectorAll('.bars .value, .bars .error, .bars .chip, td, th')) {
    if (cell.scrollWidth > cell.clientWidth + 1 && cell.clientWidth > 0 && getComputedStyle(cell).display != 'inline')
      wrong.push(cell.tagName + ' too narrow for ' + cell.textContent);
  }
  document.documentElement.dataset.probe = JSON.stringify({width: innerWidth, wrong: wrong.slice(0, 8)});
});
</script>'''


def run(chromium, *words):
    command = [chromium, '--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def probe(chromium, page, width):
    # A frame, since a window may not be made as narrow as a phone.
    probed = page.with_name('probed.html')
    probed.write_text(page.read_text(encoding='utf-8').replace('</body>', PROBE + '</body>'), encoding='utf-8')
    frame = page.with_name('frame.html')
    frame.write_text(f'<body style="margin:0"><iframe id="f" src="probed.html" style="border:0;width:{width}px;'
                     'height:800px"></iframe><script>addEventListener("load", () => document.body.dataset.probe = '
                     'document.getElementById("f").contentDocument.documentElement.dataset.probe)</script></body>')
    done = run(chromium, '--allow-file-access-from-files', '--virtual-time-budget=5000', '--window-size=1400,900',
               '--dump-dom', frame.as_uri())
    found = re.search(r'data-probe="([^"]*)"', done.stdout)
    if not found:
        raise SystemExit(f'{page}: Chromium told nothing: {done.stderr[-2000:]}')
    return json.loads(found.group(1).replace('&quot;', '"').replace('&amp;', '&'))


def picture(chromium, page, width, dark, target):
    frame = page.with_name('frame.html')
    frame.write_text(f'<body style="margin:0"><iframe src="index.html" style="border:0;width:{width}px;height:9000px">'
                     '</iframe></body>')
    mode = ['--blink-settings=preferredColorScheme=0'] if dark else []
    run(chromium, *mode, f'--window-size={max(width, 500)},9000', f'--screenshot={target}', frame.as_uri())


def all_pages(cortado, folder):
    for name, page, _, _ in pages.make_plan_pages(cortado, folder):
        yield name, page
    for name, page, _, _ in pages.make_sweep_pages(cortado, folder):
        yield name, page
    for name, page, _, _, _ in pages.make_run_pages(cortado, folder):
        yield name, page


def main():
    chromium = shutil.which('chromium') or shutil.which('chromium-browser') or shutil.which('google-chrome')
    if not chromium:
        print('skipped: there is no Chromium; apt-get install chromium')
        return 77
    wrong = 0
    with pages.temporary_folder() as folder:
        for name, page in all_pages(sys.argv[1], pathlib.Path(folder)):
            for width in WIDTHS:
                found = probe(chromium, page, width)
                if found['width'] != width or found['wrong']:
                    wrong += 1
                    print(f'{name} at {width}: {found}')
            pdf = page.with_name('page.pdf')
            run(chromium, '--no-pdf-header-footer', f'--print-to-pdf={pdf}', page.as_uri())
            if not pdf.exists() or not pdf.read_bytes().startswith(b'%PDF'):
                wrong += 1
                print(f'{name}: does not print')
            if len(sys.argv) > 2:
                target = pathlib.Path(sys.argv[2]).resolve()
                shutil.copy(pdf, target / f'{name}.pdf')
                for width in (360, 1280):
                    for dark in (False, True):
                        picture(chromium, page, width, dark, target / f'{name}-{width}-{"dark" if dark else "light"}.png')
    print(f'{wrong} of the pages are wrong' if wrong else 'all pages are laid out well')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
