#!/usr/bin/env python3
"""Writes leveldb/: databases made by LevelDB's own library (Debian: libleveldb1d), for leveldb_test.cpp.

Each has records 0 to 39 with the key "%08d_image" and a Datum of 3 x 8 x 8 bytes with that number as label, but number
7, which is deleted, and number 3, which is written again with the label 103. `tables` has them in a table compressed by
Snappy, the two changes in a log; `log` has all in a log; `plain` is not compressed and has several tables.
"""

import ctypes
import pathlib
import shutil

library = ctypes.CDLL("libleveldb.so.1d")
for name in ("leveldb_options_create", "leveldb_writeoptions_create", "leveldb_open"):
    getattr(library, name).restype = ctypes.c_void_p


def varint(number):
    text = b""
    while number >= 128:
        text += bytes([number % 128 + 128])
        number //= 128
    return text + bytes([number])


def datum(number, label):
    pixels = [(37 * i + 101 * number) % 256 if number % 2 else number for i in range(8 * 8 * 3)]
    planar = bytes(pixels[p * 3 + c] for c in range(3) for p in range(64))
    return b"\x08\x03\x10\x08\x18\x08\x22" + varint(len(planar)) + planar + b"\x28" + varint(label)


class Database:
    def __init__(self, path, compression):
        self.error = ctypes.c_char_p()
        options = ctypes.c_void_p(library.leveldb_options_create())
        library.leveldb_options_set_create_if_missing(options, ctypes.c_ubyte(1))
        library.leveldb_options_set_compression(options, compression)
        self.database = ctypes.c_void_p(library.leveldb_open(options, str(path).encode(), ctypes.byref(self.error)))
        assert not self.error, self.error.value
        self.writing = ctypes.c_void_p(library.leveldb_writeoptions_create())

    def put(self, key, value):
        library.leveldb_put(self.database, self.writing, key, ctypes.c_size_t(len(key)), value,
                            ctypes.c_size_t(len(value)), ctypes.byref(self.error))

    def delete(self, key):
        library.leveldb_delete(self.database, self.writing, key, ctypes.c_size_t(len(key)), ctypes.byref(self.error))

    def compact(self):
        library.leveldb_compact_range(self.database, None, ctypes.c_size_t(0), None, ctypes.c_size_t(0))

    def close(self):
        assert not self.error, self.error.value
        library.leveldb_close(self.database)


def key(number):
    return b"%08d_image" % number


def write(folder, name, compression, compactions):
    path = folder / name
    shutil.rmtree(path, ignore_errors=True)
    database = Database(path, compression)
    for number in reversed(range(40)):
        database.put(key(number), datum(number, number))
        if compactions > 1 and number % (40 // compactions) == 0:
            database.compact()
    if compactions == 1:
        database.compact()
    database.put(key(3), datum(3, 103))
    database.delete(key(7))
    database.close()
    for file in path.iterdir():
        if file.name in ("LOG", "LOG.old", "LOCK"):
            file.unlink()
    print(name, {file.name: file.stat().st_size for file in sorted(path.iterdir())})


folder = pathlib.Path(__file__).resolve().parent / "leveldb"
write(folder, "tables", 1, 1)
write(folder, "log", 1, 0)
write(folder, "plain", 0, 4)
