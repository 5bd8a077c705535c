"""Pages of `cortado plan`, `simulate` and `time --report` for the tests."""

import os
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


def run(name, command, environment=None):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise SystemExit(f'{name}: exit code {done.returncode}: {done.stdout}{done.stderr}')


def make_plan_pages(cortado, folder):
    """Writes plans of several nets; yields what each is called, its page, its figures (JSON) and the command."""
    (folder / 'odd.prototxt').write_text(odd_net())
    cases = [
        ('odd', folder / 'odd.prototxt', ['--devices', '2'], []),
        ('lenet', ROOT / 'models/lenet/train_val.prototxt', ['--devices', '4'], ['--input-shape', '1x28x28']),
        ('vgg-16', ROOT / 'models/vgg-16/train_val.prototxt', ['--devices', '4', '--frontier'],
         ['--batch', '128', '--input-shape', '3x224x224']),
        ('inception-v3', ROOT / 'models/inception-v3/train_val.prototxt', ['--devices', '4'],
         ['--batch', '128', '--input-shape', '3x299x299']),
        ('googlenet', ROOT / 'models/googlenet/train_val.prototxt', ['--devices', '4'],
         ['--batch', '128', '--input-shape', '3x224x224']),
        ('u-net', ROOT / 'models/u-net/train_val.prototxt', ['--devices', '4'],
         ['--batch', '4', '--input-shape', '1x256x256,256x256']),
    ]
    for name, model, options, shape in cases:
        command = [cortado, 'plan', '--model', model, '--machine', ROOT / 'machines/layer-wise-p100.json', *options,
                   *shape, '--report', folder / name, '--json', folder / f'{name}.json']
        run(name, command)
        yield name, folder / name / 'index.html', folder / f'{name}.json', command


def make_sweep_pages(cortado, folder):
    """Writes sweeps of several nets; yields what each is called, its page, its figures (JSON) and the command."""
    (folder / 'odd.prototxt').write_text(odd_net())
    text = (ROOT / 'machines/layer-wise-p100.json').read_text()
    (folder / 'priced.json').write_text(text.replace('"gflops"', '"price_per_hour": 1.46, "gflops"')
                                        .replace('"layer-wise-p100"', '"<rented> & priced"'))
    p100 = ROOT / 'machines/layer-wise-p100.json'
    shape = ['--input-shape', '3x224x224']
    cases = [
        ('sweep-odd', folder / 'odd.prototxt', folder / 'priced.json', ['devices=1..2'], []),
        ('sweep-vgg-16', ROOT / 'models/vgg-16/train_val.prototxt', folder / 'priced.json',
         ['devices=1..4', 'batch=64,32/device'], [*shape, '--memory', '4']),
        ('sweep-alexnet', ROOT / 'models/alexnet/train_val.prototxt', p100,
         ['devices=1..8', 'batch=256', 'link=6,24'], ['--input-shape', '3x227x227']),
        ('sweep-nothing', ROOT / 'models/alexnet/train_val.prototxt', p100, ['devices=1,2'],
         ['--input-shape', '3x227x227', '--memory', '0.001']),
    ]
    for name, model, machine, axes, options in cases:
        command = [cortado, 'plan', '--model', model, '--machine', machine, *options, '--report', folder / name,
                   '--json', folder / f'{name}.json', '--sweep', *axes]
        run(name, command)
        yield name, folder / name / 'index.html', folder / f'{name}.json', command


def make_run_pages(cortado, folder):
    """Writes pages of iterations, simulated and measured; yields what each is called, its page, figures,
    trace and the command."""
    (folder / 'odd.prototxt').write_text(odd_net())
    machines = ROOT / 'machines'
    simulated = [
        ('simulated-odd', folder / 'odd.prototxt', ['--machine', machines / 'layer-wise-p100.json', '--devices', '2']),
        ('simulated-vgg-a', ROOT / 'models/vgg-a/train_val.prototxt',
         ['--machine', machines / 'cori-phase-1.json', '--devices', '64', '--batch', '256', '--strategy', 'data',
          '--input-shape', '3x224x224']),
        ('simulated-inception-v3', ROOT / 'models/inception-v3/train_val.prototxt',
         ['--machine', machines / 'lassen.json', '--devices', '4', '--batch', '32', '--strategy', 'owt',
          '--no-late-updates', '--input-shape', '3x299x299']),
    ]
    for name, model, options in simulated:
        figures, trace = folder / f'{name}.json', folder / f'{name}-trace.json'
        command = [cortado, 'simulate', '--model', model, *options, '--report', folder / name, '--json', figures,
                   '--trace', trace]
        run(name, command)
        yield name, folder / name / 'index.html', figures, trace, command
    # Measurements are kept beside the pages, not where users keep theirs.
    environment = {**os.environ, 'CORTADO_CACHE': str(folder / 'cache')}
    for name, options in [('measured', []), ('measured-ranks', ['--ranks', '2', '--strategy', 'data', '--predict'])]:
        figures, trace = folder / f'{name}.json', folder / f'{name}-trace.json'
        if '--ranks' in options and not has_mpi(cortado):
            continue
        command = [cortado, 'time', '--model', ROOT / 'models/lenet/train_val.prototxt', '--input-shape', '1x28x28',
                   '--batch', '16', '--threads', '1', '--iterations', '3', *options, '--report', folder / name, '--json',
                   figures, '--trace', trace]
        run(name, command, environment)
        yield name, folder / name / 'index.html', figures, trace, command


def has_mpi(cortado):
    done = subprocess.run([cortado, 'time', '--model', 'none', '--ranks', '2'], capture_output=True, text=True)
    return 'without MPI' not in done.stdout + done.stderr


def temporary_folder():
    return tempfile.TemporaryDirectory(prefix='cortado-page-')
