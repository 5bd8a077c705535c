#!/usr/bin/env python3
"""The files that --tensorboard writes, read back by a reader of its own.

    event_files.py WRITE_EVENTS CORTADO RANKS

The reader follows the descriptions of the format: records of a length, its masked CRC-32C, bytes and their masked CRC-32C
("TFRecord and tf.train.Example", TensorFlow's guide); in them messages in protobuf's encoding, with the fields of
tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto.
"""

import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

SOLVER = """net: "net.prototxt" base_lr: 0.05 lr_policy: "step" stepsize: 5 gamma: 0.5 momentum: 0.9 average_loss: 3
max_iter: 12 display: 4 snapshot: 6 snapshot_prefix: "small" test_iter: 2 test_interval: 4 random_seed: 3
"""
NET = """name: "small"
layer { name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param { shape { dim: 8 dim: 2 dim: 6 dim: 6 } shape { dim: 8 }
    data_filler { type: "gaussian" std: 1 } data_filler { type: "constant" value: 1 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "score" type: "InnerProduct" bottom: "conv" top: "score"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "score" bottom: "label" top: "accuracy" include { phase: TEST } }
"""


def check(good, text):
    if not good:
        sys.exit(f"event_files: {text}")


# The reader.


def crc32c(data):
    """By the definition: division by the polynomial, least bit first."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def crc_table():
    return [crc32c_step(byte) for byte in range(256)]


def crc32c_step(byte):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


TABLE = crc_table()


def fast_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = fast_crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


class Damaged(Exception):
    pass


def records(data):
    at = 0
    while at < len(data):
        if len(data) - at < 12:
            raise Damaged("the file ends within a record")
        length, crc = struct.unpack_from("<QI", data, at)
        if masked(data[at:at + 8]) != crc:
            raise Damaged("the CRC of a length does not fit")
        body = data[at + 12:at + 12 + length]
        if len(data) - at < 16 + length:
            raise Damaged("the file ends within a record")
        if masked(body) != struct.unpack_from("<I", data, at + 12 + length)[0]:
            raise Damaged("the CRC of a record does not fit")
        yield body
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def fields(data):
    """(number, wire type, value) of each field of a message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif kind == 5:
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            check(len(value) == length, "a field ends after its message")
        else:
            raise Damaged(f"there is no wire type {kind}")
        yield key >> 3, kind, value


def only(data, number, kind, default):
    found = [(k, v) for n, k, v in fields(data) if n == number]
    check(len(found) <= 1 and all(k == kind for k, _ in found), f"field {number}: {found}")
    return found[0][1] if found else default


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def doubles(data):
    return list(struct.unpack(f"<{len(data) // 8}d", data))


def value_of(data):
    known = {n for n, _, _ in fields(data)}
    check(known <= {1, 2, 5}, f"fields {known} of Summary.Value")
    value = {"tag": only(data, 1, 2, b"").decode()}
    if 2 in known:
        value["number"] = only(data, 2, 5, None)
    if 5 in known:
        histogram = only(data, 5, 2, None)
        value["histogram"] = [only(histogram, n, 1, 0.0) for n in (1, 2, 4, 5)]
        value["limits"] = doubles(only(histogram, 6, 2, b""))
        value["counts"] = doubles(only(histogram, 7, 2, b""))
        value["count"] = only(histogram, 3, 1, 0.0)
    return value


def event_of(data):
    known = {n for n, _, _ in fields(data)}
    check(known <= {1, 2, 3, 5, 7}, f"fields {known} of Event")
    event = {"wall_time": only(data, 1, 1, 0.0), "step": signed(only(data, 2, 0, 0))}
    if 3 in known:
        return event | {"version": only(data, 3, 2, b"").decode()}
    if 7 in known:
        return event | {"session": only(only(data, 7, 2, b""), 1, 0, 0)}
    return event | {"values": [value_of(v) for n, _, v in fields(only(data, 5, 2, b"")) if n == 1]}


def read(path):
    first, *events = [event_of(record) for record in records(path.read_bytes())]
    check(first.get("version") == "brain.Event:2", f"{path} begins with {first}")
    return events


def only_file(folder):
    files = list(folder.iterdir())
    check(len(files) == 1 and "tfevents" in files[0].name, f"{folder} has {files}")
    return files[0]


# What is read.


def as_float(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def check_random(program, folder, count):
    told = subprocess.run([program, folder / "random", str(count), "7"], check=True, capture_output=True, text=True).stdout
    wanted = [json.loads(line) for line in told.splitlines()]
    path = only_file(folder / "random")
    found = read(path)
    check(len(wanted) == len(found) == count, f"{len(found)} events, {len(wanted)} were written")
    for number, (want, event) in enumerate(zip(wanted, found)):
        if "restart" in want:
            check(event["step"] == want["restart"] and event["session"] == 1, f"event {number}: {event}, wanted {want}")
            continue
        for value in want["values"]:
            if "number" in value:
                value["number"] = as_float(value["number"])
            else:
                value["count"] = sum(value["counts"])
        check(event == want, f"event {number}: {event}, wanted {want}")
    data = path.read_bytes()
    for at in (3, 10, 20, len(data) // 2, len(data) - 2):
        try:
            list(records(data[:at] + bytes([data[at] ^ 4]) + data[at + 1:]))
        except Damaged:
            continue
        check(False, f"a flipped bit of byte {at} is not found")


def weights(path):
    """The parameters of a .safetensors file: name -> numbers."""
    data = path.read_bytes()
    length = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + length])
    found = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            found[name] = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
    return found


def check_histogram(value, numbers, where):
    check(value["count"] == len(numbers) == sum(value["counts"]), f"{where}: {value}")
    wanted = [min(numbers), max(numbers), math.fsum(numbers), math.fsum(n * n for n in numbers)]
    check(all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) for a, b in zip(value["histogram"], wanted)), f"{where}: {value}")
    limits = value["limits"]
    check(limits == sorted(limits) and len(limits) == len(value["counts"]), f"{where}: {limits}")
    for i, limit in enumerate(limits):
        check(sum(value["counts"][:i + 1]) == sum(n <= limit for n in numbers), f"{where}: up to {limit}")


def scalars(events):
    """tag -> {step: number}"""
    found = {}
    for event in events:
        for value in event.get("values", []):
            if "number" in value:
                check(event["step"] not in found.setdefault(value["tag"], {}), f"{value['tag']} twice at {event['step']}")
                found[value["tag"]][event["step"]] = value["number"]
    return found


def train(cortado, folder, ranks, *more):
    done = subprocess.run([cortado, "train", "--solver", "solver.prototxt", "--threads", "1", "--ranks", str(ranks), "--strategy",
                           "data", "--snapshot-format", "cortado", "--tensorboard", "watched/events", *more],
                          cwd=folder, capture_output=True, text=True, timeout=300)
    check(done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}{done.stderr}")


def check_training(cortado, folder, ranks):
    (folder / "net.prototxt").write_text(NET)
    (folder / "solver.prototxt").write_text(SOLVER)
    train(cortado, folder, ranks, "--log", "log.jsonl", "--tensorboard-histograms", "6")
    path = only_file(folder / "watched/events")
    events = read(path)
    check(all(a["wall_time"] <= b["wall_time"] for a, b in zip(events, events[1:])), "times go back")
    found = scalars(events)
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    iterations = [entry for entry in log if "lr" in entry]
    for tag, key in (("train/loss", "loss"), ("train/learning_rate", "lr"), ("speed/images_per_second", "images_per_second"),
                     ("speed/exposed_communication_seconds", "exposed_communication_seconds"),
                     ("speed/data_wait_seconds", "data_wait_seconds")):
        wanted = {entry["iteration"]: as_float(entry[key]) for entry in iterations}
        check(found.get(tag) == wanted and len(wanted) == 12, f"{tag}: {found.get(tag)}, logged {wanted}")
    for step, smoothed in found["train/smoothed_loss"].items():
        last = [entry["loss"] for entry in iterations[max(0, step - 2):step + 1]]
        check(math.isclose(smoothed, sum(last) / len(last), rel_tol=1e-6), f"smoothed loss of {step}: {smoothed}")
    for name in ("loss", "accuracy"):
        wanted = {entry["iteration"]: as_float(output["value"]) for entry in log if "test_net" in entry
                  for output in entry["outputs"] if output["name"] == name}
        check(found.get("test/" + name) == wanted and list(wanted) == [0, 4, 8, 12], f"test/{name}: {found}, logged {wanted}")
    for step in (6, 12):
        numbers = weights(folder / f"small_iter_{step}.safetensors")
        shown = {v["tag"]: v for e in events if e["step"] == step for v in e.get("values", []) if "histogram" in v}
        check(sorted(shown) == ["conv/bias", "conv/weight", "score/bias", "score/weight"], f"histograms of {step}: {sorted(shown)}")
        for tag, value in shown.items():
            check(tag in numbers, f"{tag}: the snapshot has {sorted(numbers)}")
            check_histogram(value, numbers[tag], f"{tag} of {step}")
    check_going_on(cortado, folder, ranks, path)


def check_going_on(cortado, folder, ranks, first):
    """Another file, whose start takes the place of what the first one says from there on."""
    train(cortado, folder, ranks, "--snapshot", "small_iter_6.safetensors", "--set", "max_iter=8")
    files = sorted((folder / "watched/events").iterdir())
    check(len(files) == 2 and first in files, f"{files}")
    events = read(next(file for file in files if file != first))
    check(events[0].get("session") == 1 and events[0]["step"] == 6, f"{events[0]}")
    check(sorted(scalars(events)["train/loss"]) == [6, 7], "the losses of iterations 6 and 7 are expected")


def main():
    program, cortado, ranks = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), int(sys.argv[3])
    check(crc32c(b"123456789") == fast_crc32c(b"123456789") == 0xE3069283, "the reader's CRC is wrong")
    with tempfile.TemporaryDirectory() as name:
        check_random(program, pathlib.Path(name), 10000)
        check_training(cortado, pathlib.Path(name), ranks)


main()
