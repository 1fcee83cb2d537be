"""The engine of engine.c in Python, and what it computes.

    engine.py write engine.metal engine.mlxtrace   logs four steps
    engine.py inputs DIRECTORY                     writes x0.npy to x3.npy there
    engine.py check DIRECTORY                      compares y0.npy to y3.npy there with the same in double precision
    engine.py cut LOG SHORTER                      writes a log that ends within an event
"""

import math
import operator
import pathlib
import struct
import sys

E, F, LAYERS, CONTEXT, STEPS = 256, 512, 2, 64, 4


def halves(pattern, n):
    return struct.pack(f"<{n}H", *(pattern + i * 7 % 61 for i in range(n)))


def weights():
    return {"gate": halves(0x2400, E * F), "up": halves(0xA400, E * F), "down": halves(0x2800, E * F)}


def inputs(pos):
    return [(i * 5 + pos * 3) % 17 / 8 - 1 for i in range(E)]


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def write(source, path):
    from mlxc import Recorder

    with Recorder(path, "engine") as r:
        lib = r.source("engine.metal", pathlib.Path(source).read_text())
        rms, mv, mean, silu_mul, add = (r.kernel(lib, name) for name in ("my_rms", "my_mv", "my_mean", "my_silu_mul", "my_add"))
        x, y = r.buffer(4 * E, "x", "input"), r.buffer(4 * E, "y", "output")
        h, t, d, g, u, s = (r.buffer(4 * n, name) for n, name in ((E, "h"), (E, "t"), (E, "d"), (F, "g"), (F, "u"), (F, "s")))
        layers = []
        for n in range(LAYERS):
            norm = r.buffer(4 * E, f"norm{n}", contents=floats([1.0] * E))
            cache = r.buffer(4 * E * CONTEXT, f"cache{n}")
            layers.append((norm, cache, *(r.buffer(2 * E * F, f"{name}{n}", contents=w) for name, w in weights().items())))
        for pos in range(STEPS):
            with r.step("step", pos=pos):
                r.write(x, floats(inputs(pos)))
                r.copy(x, h, 4 * E)
                for norm, cache, gate, up, down in layers:
                    r.use(rms).bind(0, h).bind(1, norm).bind(2, cache, 4 * E * pos).bytes(3, struct.pack("<I", E)).bytes(4, struct.pack("<f", 1e-5))
                    r.threadgroups((1, 1, 1), (256, 1, 1))
                    r.use(mean).bind(0, cache).bind(1, t).bytes(2, struct.pack("<II", E, pos + 1)).threads((E, 1, 1), (256, 1, 1))
                    r.use(mv).bind(0, gate).bind(1, t).bind(2, g).bytes(3, struct.pack("<II", F, E)).threadgroups((F, 1, 1), (32, 1, 1))
                    r.bind(0, up).bind(2, u).threadgroups((F, 1, 1), (32, 1, 1))
                    r.use(silu_mul).bind(0, g).bind(1, u).bind(2, s).threads((F, 1, 1), (256, 1, 1))
                    r.use(mv).bind(0, down).bind(1, s).bind(2, d).bytes(3, struct.pack("<II", E, F)).threadgroups((E, 1, 1), (32, 1, 1))
                    r.use(add).bind(0, h).bind(1, d).bind(2, h).threads((E, 1, 1), (256, 1, 1))
                r.copy(h, y, 4 * E)


def save(path, values):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + floats(values))


def load(path):
    data = path.read_bytes()
    data = data[10 + struct.unpack_from("<H", data, 8)[0] :]
    return struct.unpack(f"<{len(data) // 4}f", data)


def product(matrix, rows, vector):
    n = len(vector)
    return [sum(map(operator.mul, matrix[r * n : (r + 1) * n], vector)) for r in range(rows)]


def check(directory):
    w = {k: struct.unpack(f"<{E * F}e", v) for k, v in weights().items()}
    caches = [[] for _ in range(LAYERS)]
    for pos in range(STEPS):
        h = inputs(pos)
        for cache in caches:
            scale = 1 / math.sqrt(sum(v * v for v in h) / E + 1e-5)
            cache.append([v * scale for v in h])
            t = [sum(column) / len(cache) for column in zip(*cache)]
            g, u = product(w["gate"], F, t), product(w["up"], F, t)
            d = product(w["down"], E, [a / (1 + math.exp(-a)) * b for a, b in zip(g, u)])
            h = [a + b for a, b in zip(h, d)]
        got = load(directory / f"y{pos}.npy")
        most = max(map(abs, h))
        error = max(abs(a - b) for a, b in zip(got, h, strict=True)) / most
        print(f"step {pos}: off by at most {error:.0e} of the greatest")
        if not error <= 1e-5:
            sys.exit(f"step {pos}: y[0] is {got[0]}, want {h[0]}")


if __name__ == "__main__":
    what, *paths = sys.argv[1:]
    if what == "write":
        write(*paths)
    elif what == "inputs":
        for p in range(STEPS):
            save(pathlib.Path(paths[0]) / f"x{p}.npy", inputs(p))
    elif what == "check":
        check(pathlib.Path(paths[0]))
    elif what == "cut":
        pathlib.Path(paths[1]).write_bytes(pathlib.Path(paths[0]).read_bytes()[:-5])
