"""Pages of `cortado plan --report` for the tests."""

import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Names that mean something in markup, in attributes and in styles.
ODD_NAMES = ['<script>alert(1)</script>', 'a"b\'c & d', '</style><b>', '--> ]]>', 'straße/é', 'x' * 200]

ODD_NET = '''name: "odd <net> & \\"more\\""
layer {{ name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param {{ shape {{ dim: 8 dim: 2 dim: 6 dim: 6 }} shape {{ dim: 8 }} }} }}
{layers}
layer {{ name: "score" type: "InnerProduct" bottom: "{last}" top: "score" inner_product_param {{ num_output: 3 }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" }}
'''


def odd_net():
    layers, last = '', 'data'
    for i, name in enumerate(ODD_NAMES):
        written = name.replace('\\', '\\\\').replace('"', '\\"').replace("'", "\\'")
        layers += (f'layer {{ name: "{written}" type: "Convolution" bottom: "{last}" top: "b{i}" '
                   f'convolution_param {{ num_output: 4 kernel_size: 1 }} }}\n')
        last = f'b{i}'
    return ODD_NET.format(layers=layers, last=last)


def make_pages(cortado, folder):
    """Writes pages of several nets; yields what each is called, its path and the names of the net's layers."""
    (folder / 'odd.prototxt').write_text(odd_net())
    cases = [
        ('odd', folder / 'odd.prototxt', ['--devices', '2'], []),
        ('lenet', ROOT / 'models/lenet/train_val.prototxt', ['--devices', '4'], ['--input-shape', '1x28x28']),
        ('vgg-16', ROOT / 'models/vgg-16/train_val.prototxt', ['--devices', '4', '--frontier'],
         ['--batch', '128', '--input-shape', '3x224x224']),
        ('inception-v3', ROOT / 'models/inception-v3/train_val.prototxt', ['--devices', '4'],
         ['--batch', '128', '--input-shape', '3x299x299']),
        ('u-net', ROOT / 'models/u-net/train_val.prototxt', ['--devices', '4'],
         ['--batch', '4', '--input-shape', '1x256x256,256x256']),
    ]
    for name, model, options, shape in cases:
        command = [cortado, 'plan', '--model', model, '--machine', ROOT / 'machines/layer-wise-p100.json', *options,
                   *shape, '--report', folder / name, '--json', folder / f'{name}.json']
        run = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if run.returncode != 0:
            raise SystemExit(f'{name}: exit code {run.returncode}: {run.stdout}{run.stderr}')
        yield name, folder / name / 'index.html', folder / f'{name}.json'


def temporary_folder():
    return tempfile.TemporaryDirectory(prefix='cortado-page-')
