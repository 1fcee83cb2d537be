"""Writes testdata/mlxg/minimal.mlxg: one dispatch, y = x + w for four f32.

Written from docs/file-format.md alone, without a look at mlxc's own writer, as
a check of that page. Needs msgpack, see requirements.txt. The output is the
same on every run:

    python testdata/gen/mlxg_minimal.py testdata/mlxg/minimal.mlxg
"""

import hashlib
import struct
import sys

import msgpack


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


assert crc32c(b"123456789") == 0xE3069283

# Numbers of the format.
WEIGHT, INPUT, OUTPUT = 0, 1, 2
SHARED = 0
F32 = 12
INIT_BLOB = 1
BUILTIN = 0
DEVICE = 0
READ, WRITE = 0, 1
BIND_VIEW = 0
THREADS = 1
DISPATCH = 0
WRITE_MUST = 1

strings = [""]


def s(text):
    """Index of text in the string table."""
    if text not in strings:
        strings.append(text)
    return strings.index(text)


weights = struct.pack("<4f", 0.5, -1.0, 2.0, 1024.0)
blobs = [["", 0, len(weights), hashlib.sha256(weights).digest()]]


def memory(name, kind, init):
    return [s(name), kind, SHARED, 16, 0, F32, [4], init, None]


kernel = [
    s("add"),
    [BUILTIN, s(""), None],
    s("vv_Addfloat32"),
    [],
    [
        [0, s("a"), DEVICE, READ, F32, 0],
        [1, s("b"), DEVICE, READ, F32, 0],
        [2, s("c"), DEVICE, WRITE, F32, 0],
    ],
]
X, W, Y = 0, 1, 2  # memories
dispatch = [
    DISPATCH,
    0,  # id
    0,  # kernel
    [
        [0, BIND_VIEW, X, 0, 16],
        [1, BIND_VIEW, W, 0, 16],
        [2, BIND_VIEW, Y, 0, 16],
    ],
    [],  # threadgroup memory
    [THREADS, 4, 1, 1, 1, 1, 1],
    [4, 1, 1],
    [True, [[X, 0, 16], [W, 0, 16]], [[WRITE_MUST, Y, 0, 16]]],
    s("add"),
    s("y = x + w"),
    None,  # from
]
graph = [
    s("main"),
    [],
    [],
    [memory("x", INPUT, None), memory("w", WEIGHT, [INIT_BLOB, 0]), memory("y", OUTPUT, None)],
    [kernel],
    [dispatch],
    0,  # attributes
    [],  # edges
    [],  # advances
    [],  # every
]
sections = [
    (b"META", msgpack.packb([[graph], []])),
    (b"STRS", msgpack.packb(strings)),
    (b"BLOB", msgpack.packb(blobs)),
    (b"WGHT", weights),
]

position = 16 + 28 * len(sections) + 4
table = b""
body = b""
for kind, data in sections:
    if kind == b"WGHT":
        padding = -position % 16384
        body += bytes(padding)
        position += padding
    table += struct.pack("<4sIQQI", kind, 0, position, len(data), crc32c(data))
    body += data
    position += len(data)
header = b"\x89MXG\r\n\x1a\n" + struct.pack("<II", 3, len(sections)) + table
with open(sys.argv[1], "wb") as f:
    f.write(header + struct.pack("<I", crc32c(header)) + body)
