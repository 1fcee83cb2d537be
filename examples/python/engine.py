"""A minimal inference engine, recorded into a .mlxg file without mlxc's help.

One step of a toy network with a memory: at position pos, for an input x,

    h            = w * x / sqrt(mean(x^2) + eps)
    f            = silu(Wgate h) * (Wup h)
    history[pos] = f, turned by pos as in rotary embeddings
    y            = history[pos]
    best         = the place of the greatest element of the history

pos and eps are params: one recording serves every step. The file follows
docs/file-format.md, the kernels docs/kernels.md and their declarations in msl/.

    engine.py write DIR    engine.mlxg and the steps' inputs, x0.npy ...
    engine.py check DIR    compare y0.npy, best0.npy ... with plain sums

In between, mlxreplay runs the steps: see README.md beside this file.
"""

import ast
import hashlib
import math
import random
import struct
import sys
from pathlib import Path

import msgpack

IN, OUT, STEPS = 64, 44, 8  # elements of x, elements of a row of the history, its rows
ROW = 4 * OUT  # bytes of a row
EPS = 1e-5  # what check expects that mlxreplay was given
BASE = math.log2(10000)  # of the angles
RUN = 4  # steps that write prepares and check compares

# --- The container: sections 1 to 3 of the page ------------------------------

PAGE = 16384  # WGHT begins at a multiple of this, so that it can be mapped


def crc32c_table():
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        yield byte


CRC32C = list(crc32c_table())


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC32C[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


assert crc32c(b"123456789") == 0xE3069283  # the page's check value


def up_to(n, multiple):
    return -(-n // multiple) * multiple


class Container:
    """Collects strings and embedded blobs; write puts the sections together."""

    def __init__(self):
        self.strings = {"": 0}
        self.blobs = []
        self.weights = bytearray()

    def string(self, text):
        return self.strings.setdefault(text, len(self.strings))

    def blob(self, data, align):
        # WGHT itself begins at a page: an offset in it that is a multiple of
        # at most that is one in the file, too.
        assert PAGE % align == 0
        offset = up_to(len(self.weights), max(align, 256))
        self.weights += bytes(offset - len(self.weights)) + data
        self.blobs.append(["", offset, len(data), hashlib.sha256(data).digest()])
        return len(self.blobs) - 1

    def write(self, path, module):
        sections = [
            (b"META", msgpack.packb(module)),
            (b"STRS", msgpack.packb(list(self.strings))),
            (b"BLOB", msgpack.packb(self.blobs)),
            (b"WGHT", bytes(self.weights)),
        ]
        header = b"\x89MXG\r\n\x1a\n" + struct.pack("<II", 3, len(sections))
        at = len(header) + 28 * len(sections) + 4
        body = b""
        for kind, data in sections:
            if kind == b"WGHT":
                body += bytes(up_to(at, PAGE) - at)
                at = up_to(at, PAGE)
            header += struct.pack("<4sIQQI", kind, 0, at, len(data), crc32c(data))
            body += data
            at += len(data)
        path.write_bytes(header + struct.pack("<I", crc32c(header)) + body)


# --- The graph: sections 4 and 5 ---------------------------------------------

BOOL, U32, I32, U64, I64, F16, F32 = 1, 6, 7, 8, 9, 10, 12
WEIGHT, INPUT, OUTPUT, STATE, SCRATCH = range(5)
BLOB, PATTERN = 1, 2  # initial contents
BUILTIN = 0
DEVICE, CONSTANT = 0, 1
READ, WRITE = 0, 1
VIEW, BYTES, SCALAR = 0, 1, 2
GROUPS, THREADS = 0, 1
DISPATCH, COPY, BARRIER, GROUP_BEGIN, GROUP_END = 0, 1, 3, 5, 6
MUST = 1  # every byte is written, whatever the params and the inputs are


def affine(constant, *terms):
    """constant + the sum of coefficient * param over pairs (param, coefficient)."""
    return [constant, *(n for pair in terms for n in pair)] if terms else constant


class Graph:
    """The lists of one graph. Everything is named by its place in a list."""

    def __init__(self, file, name):
        self.file = file
        self.name = file.string(name)
        self.params, self.constraints, self.memories, self.kernels, self.nodes = [], [], [], [], []
        self.commands = 0

    def msgpack(self):
        attributes, edges, advances, every = 0, [], [], []  # barriers order it, and replays are launched one by one
        return [self.name, self.params, self.constraints, self.memories, self.kernels, self.nodes, attributes, edges, advances, every]

    def param(self, name, type, least, most):
        self.params.append([self.file.string(name), type, float(least), float(most)])
        return len(self.params) - 1

    def memory(self, name, kind, type, shape, init=None, align=0):
        size = math.prod(shape) * (2 if type == F16 else 4)
        shared = 0
        self.memories.append([self.file.string(name), kind, shared, size, align, type, shape, init, None])
        return len(self.memories) - 1

    def weight(self, name, type, shape, data, align=0):
        return self.memory(name, WEIGHT, type, shape, [BLOB, self.file.blob(data, align or 1)], align)

    def kernel(self, function, *args, constants=()):
        """A kernel of the library.

        args: (name, DEVICE, READ or WRITE, type) or (name, CONSTANT, type), in slots 0, 1, ... or with a slot at the end.
        constants: (index, name, type, bits).
        """
        self.kernels.append([
            self.file.string(function), [BUILTIN, self.file.string(""), None], self.file.string(function),
            [[index, self.file.string(name), type, bits] for index, name, type, bits in constants],
            [self.arg(i, *arg) for i, arg in enumerate(args)],
        ])
        return len(self.kernels) - 1

    def arg(self, slot, name, kind, *rest):
        access, type, *rest = rest if kind == DEVICE else (READ, *rest)
        return [rest[0] if rest else slot, self.file.string(name), kind, access, type, 1 if kind == CONSTANT else 0]

    def dispatch(self, label, kernel, bindings, grid, threads, effects=None):
        """bindings: one for each argument of the kernel. grid: GROUPS or THREADS and three sizes, or pairs to divide."""
        unit, *sizes = grid
        slots = [arg[0] for arg in self.kernels[kernel][4]]
        self.nodes.append([
            DISPATCH, self.commands, kernel,
            [[slot, *binding] for slot, binding in zip(slots, bindings, strict=True)], [],
            [unit, *(n for size in sizes for n in (size if isinstance(size, tuple) else (size, 1)))], threads,
            effects, self.file.string(""), self.file.string(label), None,
        ])
        self.commands += 1

    def copy(self, label, to, source):
        self.nodes.append([COPY, self.commands, to, source, self.file.string(label), None])
        self.commands += 1

    def barrier(self):
        self.nodes.append([BARRIER])

    def group(self, label):
        self.nodes.append([GROUP_BEGIN, self.file.string(label)])

    def end(self):
        self.nodes.append([GROUP_END])


def view(memory, offset, length):
    return [VIEW, memory, offset, length]


def inline(format, *values):
    return [BYTES, struct.pack("<" + format, *values)]


def scalar(type, value):
    return [SCALAR, type, value]


def record(file, weights):
    g = Graph(file, "step")
    pos = g.param("pos", U32, 0, STEPS - 1)
    eps = g.param("eps", F32, 0, 1)
    g.constraints.append([affine(0, (pos, 1)), STEPS - 1])

    norm = g.weight("norm", F32, [IN], struct.pack(f"<{IN}f", *weights["norm"]))
    gate = g.weight("gate", F16, [OUT, IN], struct.pack(f"<{OUT * IN}e", *weights["gate"]), align=PAGE)
    up = g.weight("up", F16, [OUT, IN], struct.pack(f"<{OUT * IN}e", *weights["up"]))
    x = g.memory("x", INPUT, F32, [IN])
    y = g.memory("y", OUTPUT, F32, [OUT])
    best = g.memory("best", OUTPUT, U32, [1])
    history = g.memory("history", STATE, F32, [STEPS, OUT], init=[PATTERN, 0])
    h = g.memory("h", SCRATCH, F32, [IN])
    a = g.memory("a", SCRATCH, F32, [OUT])
    b = g.memory("b", SCRATCH, F32, [OUT])
    c = g.memory("c", SCRATCH, F32, [OUT])
    f = g.memory("f", SCRATCH, F32, [OUT])

    rms = g.kernel(
        "rmsfloat32", ("x", DEVICE, READ, F32), ("w", DEVICE, READ, F32), ("out", DEVICE, WRITE, F32),
        ("eps", CONSTANT, F32), ("axis_size", CONSTANT, U32), ("w_stride", CONSTANT, U32))
    gemv = g.kernel(
        "gemv_float16_float32", ("mat", DEVICE, READ, F16), ("x", DEVICE, READ, F32), ("y", DEVICE, WRITE, F32),
        ("K", CONSTANT, I32), ("N", CONSTANT, I32))
    # Arguments that a declaration calls unused, as size here, are left out.
    silu = g.kernel("v_Silufloat32float32", ("in", DEVICE, READ, F32), ("out", DEVICE, WRITE, F32))
    multiply = g.kernel("vv_Multiplyfloat32", ("a", DEVICE, READ, F32), ("b", DEVICE, READ, F32), ("c", DEVICE, WRITE, F32))
    turn = g.kernel(
        "rope_single_float32", ("in", DEVICE, READ, F32), ("out", DEVICE, WRITE, F32),
        ("offset", CONSTANT, I32), ("scale", CONSTANT, F32), ("stride", CONSTANT, I64), ("base", CONSTANT, F32, 10),
        constants=[(1, "forward", BOOL, 1), (2, "traditional", BOOL, 0)])
    argmax = g.kernel(
        "argmax_float32", ("in", DEVICE, READ, F32), ("out", DEVICE, WRITE, U32),
        ("shape", CONSTANT, I32), ("in_strides", CONSTANT, I64), ("out_strides", CONSTANT, I64),
        ("ndim", CONSTANT, U64), ("axis_stride", CONSTANT, I64), ("axis_size", CONSTANT, U64))

    all_of = lambda memory, elements, size=4: view(memory, 0, elements * size)
    now = [history, affine(0, (pos, ROW)), ROW]  # the row of this step

    g.group("feed forward")
    g.dispatch(
        "normalize x", rms,
        [all_of(x, IN), all_of(norm, IN), all_of(h, IN), scalar(F32, affine(0, (eps, 1))), inline("I", IN), inline("I", 1)],
        (GROUPS, 1, 1, 1), [32, 1, 1])
    g.barrier()
    for label, matrix, product in ("gate", gate, a), ("up", up, b):
        g.dispatch(
            label, gemv,
            [all_of(matrix, OUT * IN, 2), all_of(h, IN), all_of(product, OUT), inline("i", IN), inline("i", OUT)],
            (GROUPS, (OUT, 8), 1, 1), [32, 2, 1])
    g.barrier()
    g.dispatch("silu", silu, [all_of(a, OUT), all_of(c, OUT)], (THREADS, OUT, 1, 1), [OUT, 1, 1])
    g.barrier()
    g.dispatch("product", multiply, [all_of(c, OUT), all_of(b, OUT), all_of(f, OUT)], (THREADS, OUT, 1, 1), [OUT, 1, 1])
    g.end()
    g.barrier()
    # What this dispatch touches is said here: all of f, and one row of the
    # history. Of the others mlxc knows it from their kernels' declarations.
    g.dispatch(
        "remember", turn,
        [all_of(f, OUT), view(*now), scalar(I32, affine(0, (pos, 1))), inline("f", 1), inline("q", OUT), inline("f", BASE)],
        (THREADS, OUT // 2, 1, 1), [OUT // 2, 1, 1],
        effects=[True, [[f, 0, ROW]], [[MUST, *now]]])
    g.barrier()
    g.copy("y", [y, 0, ROW], now)
    g.dispatch(
        "best so far", argmax,
        [all_of(history, STEPS * OUT), all_of(best, 1), inline("i", 1), inline("q", 1), inline("q", 1), inline("Q", 0),
         inline("q", 1), inline("Q", STEPS * OUT)],
        (THREADS, 32, 1, 1), [32, 1, 1])
    return g


# --- The numbers -------------------------------------------------------------



def rounded(format, values):
    """The values as that type of struct has them."""
    return list(struct.unpack(f"<{len(values)}{format}", struct.pack(f"<{len(values)}{format}", *values)))


def data():
    draw = random.Random(1)
    normal = lambda n, scale: [draw.gauss(0, scale) for _ in range(n)]
    weights = {
        "norm": rounded("f", [1 + v for v in normal(IN, 0.1)]),
        "gate": rounded("e", normal(OUT * IN, 0.2)),
        "up": rounded("e", normal(OUT * IN, 0.2)),
    }
    return weights, [rounded("f", normal(IN, 1)) for _ in range(RUN)]


def step(weights, x, pos):
    """A row of the history, by the formula, in double precision."""
    inverse = 1 / math.sqrt(math.fsum(v * v for v in x) / IN + EPS)
    h = [w * v * inverse for w, v in zip(weights["norm"], x)]
    product = lambda matrix: [math.fsum(m * v for m, v in zip(matrix[IN * n:IN * (n + 1)], h)) for n in range(OUT)]
    f = [g / (1 + math.exp(-g)) * u for g, u in zip(product(weights["gate"]), product(weights["up"]))]
    half = OUT // 2
    angles = [pos * 2 ** (-i / half * BASE) for i in range(half)]
    return [f[i] * math.cos(t) - f[i + half] * math.sin(t) for i, t in enumerate(angles)] + [
        f[i] * math.sin(t) + f[i + half] * math.cos(t) for i, t in enumerate(angles)]


def write_npy(path, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},), }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}f", *values))


def read_npy(path, descr, shape):
    data = path.read_bytes()
    if data[:8] != b"\x93NUMPY\x01\x00":
        sys.exit(f"{path}: not a .npy file of version 1.0")
    end = 10 + struct.unpack_from("<H", data, 8)[0]
    header = ast.literal_eval(data[10:end].decode())
    want = {"descr": descr, "fortran_order": False, "shape": shape}
    if header != want:
        sys.exit(f"{path}: has {header}, want {want}")
    return struct.unpack(f"<{math.prod(shape)}{'f' if descr == '<f4' else 'I'}", data[end:])


def write(folder):
    weights, inputs = data()
    file = Container()
    file.write(folder / "engine.mlxg", [[record(file, weights).msgpack()], []])
    for i, x in enumerate(inputs):
        write_npy(folder / f"x{i}.npy", x)


def check(folder):
    weights, inputs = data()
    history = [0.0] * (STEPS * OUT)
    for i, x in enumerate(inputs):
        row = step(weights, x, i)
        history[OUT * i:OUT * (i + 1)] = row
        for n, (got, want) in enumerate(zip(read_npy(folder / f"y{i}.npy", "<f4", (OUT,)), row)):
            # docs/terms.md lets a sum of 64 products be off by 4e-6 of the sum
            # of their sizes, which is about 10 here.
            if not abs(got - want) <= 1e-5 * (1 + abs(want)):
                sys.exit(f"step {i}: y[{n}] is {got}, want {want}")
        best = history.index(max(history))
        got = read_npy(folder / f"best{i}.npy", "<u4", (1,))[0]
        if got != best:
            sys.exit(f"step {i}: best is {got}, want {best}: {history[best]}")
        print(f"step {i}: y[0] = {row[0]:.4f}, best = {best}: {history[best]:.4f}")


if __name__ == "__main__":
    commands = {"write": write, "check": check}
    if len(sys.argv) != 3 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](Path(sys.argv[2]))
