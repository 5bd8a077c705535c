#!/usr/bin/env python3
"""Trains nets of models/ on CIFAR-10 by their own solver files, with several seeds, and prints what accuracy they reach.

    bench/accuracy.py --cortado build/release/cortado --data cifar10-jpeg.tar.gz --work runs
    bench/accuracy.py --cortado build/release/cortado --data cifar10-jpeg.tar.gz --work runs --nets cifar10_quick
        --variants "" "--precision bf16" "--ranks 2 --threads 1 --strategy data" --seeds 1 2 3 --out accuracy

The data are an archive of `train/CLASS/*.jpg` and `test/CLASS/*.jpg`. A variant is options of `cortado train`. Each
training is a folder below --work, with its log and snapshots. One that was stopped goes on from its newest snapshot,
one that is done is not done again: start this script again after whatever ended it. `--set max_iter=1000` shortens
all of them; use another --work then. cifar10_quick takes about 3 minutes of 2 cores a seed.
"""

import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[1]


def prepare(cortado, archive, work):
    """Databases and mean image where the nets' files look for them, below `work`."""
    home = work / "examples/cifar10"
    if (home / "mean.binaryproto").exists():
        return
    work.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as tar:
        tar.extractall(work / "images", filter="data")
    home.mkdir(parents=True, exist_ok=True)
    for part in ("train", "test"):
        database = home / f"cifar10_{part}_lmdb"
        if not database.exists():
            folder = next((work / "images").rglob(part))
            subprocess.run([cortado, "data", "folders", folder, database, "--shuffle"], check=True)
    subprocess.run([cortado, "data", "mean", home / "cifar10_train_lmdb", home / "mean.binaryproto"], check=True)
    (work / "models").symlink_to(ROOT / "models")


def tests_of(log):
    """(iteration, accuracy) of the tests in a log; of an iteration that was tested twice, the later."""
    tests = {}
    for line in log.read_text().splitlines() if log.exists() else ():
        event = json.loads(line)
        for output in event.get("outputs", ()) if "test_net" in event else ():
            if output["name"] == "accuracy":
                tests[event["iteration"]] = output["value"]
    return sorted(tests.items())


def newest_snapshot(folder):
    states = folder.glob("net_iter_*.solverstate")
    return max(states, key=lambda state: int(state.stem.rsplit("_", 1)[1]), default=None)


def train(cortado, work, net, variant, seed, settings):
    """Accuracy after the last iteration."""
    folder = work / "_".join([net, *variant.replace("--", "").split(), f"seed{seed}"])
    folder.mkdir(exist_ok=True)
    done = folder / "accuracy.json"
    if not done.exists():
        log = folder / f"log{len(list(folder.glob('log*')))}.jsonl"
        state = newest_snapshot(folder)
        command = [cortado, "train", "--solver", f"models/{net}/solver.prototxt", "--log", log.relative_to(work)]
        for setting in (f"random_seed={seed}", f"snapshot_prefix={folder.relative_to(work)}/net", *settings):
            command += ["--set", setting]
        command += shlex.split(variant)
        if state:
            command += ["--snapshot", state.relative_to(work)]
        with open(folder / "output.txt", "a") as output:
            if subprocess.run(command, cwd=work, stdout=output, stderr=output).returncode:
                sys.exit(f"{sys.argv[0]}: training failed; see the end of {output.name}")
        done.write_text(json.dumps(tests_of(log)[-1]))
    return json.loads(done.read_text())[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cortado", required=True, type=pathlib.Path)
    parser.add_argument("--data", required=True, type=pathlib.Path, help="the archive of images")
    parser.add_argument("--work", required=True, type=pathlib.Path, help="folder of databases and trainings")
    parser.add_argument("--nets", nargs="+", default=["cifar10_quick"])
    parser.add_argument("--variants", nargs="+", default=["", "--precision bf16"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--set", action="append", default=[], dest="settings", help="as that of cortado train")
    parser.add_argument("--out", type=pathlib.Path, help="write the table to OUT.md, the figures to OUT.json")
    arguments = parser.parse_args()
    cortado, work = arguments.cortado.resolve(), arguments.work.resolve()
    prepare(cortado, arguments.data, work)

    rows = []
    for net in arguments.nets:
        for variant in arguments.variants:
            accuracies = [train(cortado, work, net, variant, seed, arguments.settings) for seed in arguments.seeds]
            rows.append({"net": net, "variant": variant, "seeds": arguments.seeds, "accuracies": accuracies})
            print(net, variant or "(none)", accuracies, file=sys.stderr, flush=True)
    table = ["| net | options | " + " | ".join(f"seed {seed}, %" for seed in arguments.seeds) + " | mean, % |",
             "|---|---|" + "--:|" * (len(arguments.seeds) + 1)]
    for row in rows:
        cells = [f"{100 * accuracy:.2f}" for accuracy in row["accuracies"]]
        table.append(f"| {row['net']} | {row['variant'] or 'none'} | {' | '.join(cells)} | "
                     f"{100 * statistics.mean(row['accuracies']):.2f} |")
    print("\n".join(table))
    if arguments.out:
        arguments.out.with_suffix(".md").write_text("\n".join(table) + "\n")
        arguments.out.with_suffix(".json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
