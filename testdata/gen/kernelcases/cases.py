"""What the scripts of this folder share: drawing values, and writing cases.

The form is that of internal/testing/kernelcases. Floats are computed in float64 and stored as
float32; bfloat16 has no type in NumPy, so arrays of it are float64 arrays of its values.
"""
import gzip
import json
import struct

import numpy as np

SIZES = {"bool": 1, "u8": 1, "i8": 1, "u16": 2, "i16": 2, "u32": 4, "i32": 4, "u64": 8, "i64": 8, "f16": 2, "bf16": 2, "f32": 4, "c64": 8}
NUMPY = {"bool": np.bool_, "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16, "u32": np.uint32, "i32": np.int32, "u64": np.uint64, "i64": np.int64, "f16": np.float16, "f32": np.float32, "c64": np.complex64}
# As the names of kernels spell them.
MLX = {"bool": "bool_", "u8": "uint8", "i8": "int8", "u16": "uint16", "i16": "int16", "u32": "uint32", "i32": "int32", "u64": "uint64", "i64": "int64", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "c64": "complex64"}
EPS = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24}  # the greatest relative error of rounding
FLOATS = ("f32", "f16", "bf16")


def is_float(dtype):
    return dtype in ("f16", "bf16", "f32", "c64")


def bf16_bits(x):
    """The bits of bfloat16, rounded from float64 to nearest, ties to even."""
    b = np.ascontiguousarray(x, np.float64).view(np.uint64)
    half = np.uint64((1 << 44) - 1) + (b >> np.uint64(45) & np.uint64(1))
    r = ((b + half) >> np.uint64(45) << np.uint64(45)).view(np.float64)
    with np.errstate(all="ignore"):
        return (r.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def cast(x, dtype):
    """Rounds to a type. The result is of NumPy's type, or of float64 for bfloat16."""
    if dtype == "bf16":
        return (bf16_bits(x).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(NUMPY[dtype])


def raw(x, dtype):
    """The bytes of an array as a buffer has them."""
    if dtype == "bf16":
        return bf16_bits(x).tobytes()
    return np.ascontiguousarray(x).astype(NUMPY[dtype]).tobytes()


def mix(seed, n):
    """hash of internal/testing/kernelcases, for the elements 0 to n-1."""
    with np.errstate(over="ignore"):
        x = np.uint64(seed * 0xD1342543DE82EF95 % 2**64) + (np.arange(n, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return x ^ x >> np.uint64(31)


def drawn(seed, dtype, n, low, high, scale):
    """What the rule says that a buffer holds."""
    h = mix(seed, 2 * n if dtype == "c64" else n)
    if low == 0 and high == 0:
        if dtype == "bool":
            raise ValueError("a bool has no random bits")
        if is_float(dtype):
            raise ValueError("random bits may be no number")
        return h.astype(NUMPY[dtype])
    v = low + (h % np.uint64(high - low + 1)).astype(np.int64)
    if dtype == "c64":
        v = (v * scale).astype(np.float32)
        return v.view(np.complex64)
    if is_float(dtype):
        return cast(v * float(scale), dtype)
    return v.astype(NUMPY[dtype])


class Group:
    """The cases of a file."""

    def __init__(self, name, oracle="NumPy"):
        self.name, self.oracle, self.cases, self.data = name, oracle, [], bytearray()

    def case(self, kernel, note="", oracle=None, **constants):
        c = Case(self, kernel, note, oracle or self.oracle, constants)
        self.cases.append(c)
        return c

    def store(self, b):
        at = self.data.find(b) if len(b) > 64 else -1
        if at < 0:
            at = len(self.data)
            self.data += b
        return {"At": at, "Size": len(b)}

    def write(self, folder):
        with open(f"{folder}/{self.name}.json", "w") as f:
            f.write("[\n" + ",\n".join(json.dumps(c.json(), ensure_ascii=False) for c in self.cases) + "\n]\n")
        with open(f"{folder}/{self.name}.bin.gz", "wb") as f:
            f.write(gzip.compress(bytes(self.data), 9, mtime=0))
        print(f"{self.name}: {len(self.cases)} cases, {len({c.kernel for c in self.cases})} kernels, {len(self.data)} bytes")


class Case:
    def __init__(self, group, kernel, note, oracle, constants):
        self.group, self.kernel, self.oracle = group, kernel, oracle
        self.name = kernel + ("/" + note if note else "")
        self.constants = [{"Name": k, "Value": int(v)} for k, v in constants.items()]
        self.args, self.threads, self.threadgroup = [], None, None
        self.seed = len(group.cases) * 16 + sum(map(ord, group.name)) * 4096

    def _arg(self, name, dtype, count, **more):
        self.args.append({"Name": name, "Type": dtype, "Count": int(count), **more})

    def draw(self, name, dtype, shape, low=0, high=0, scale=1, **more):
        """A buffer that holds what the rule says; returns that."""
        n = int(np.prod(shape))
        seed = self.seed + len(self.args)
        rule = {"Seed": seed, "Low": low, "High": high}
        if scale != 1:
            rule["Scale"] = float(scale)
        self._arg(name, dtype, n, Rule=rule, **more)
        return drawn(seed, dtype, n, low, high, scale).reshape(shape)

    def give(self, name, dtype, values, **more):
        """A buffer with these values; returns them as the type has them."""
        values = np.asarray(values)
        self._arg(name, dtype, values.size, Given=self.group.store(raw(values, dtype)), **more)
        return cast(values, dtype)

    def want(self, name, dtype, values, abs=0.0, rel=0.0, ulp=0.0, why="", of=None, every=1):
        """The results in a buffer: one of its own, or, with of, the last that was given or drawn.
        A float's are rounded to its type where no tolerance is given, else to float32. Of a large
        buffer only some elements are stored, with every."""
        values = np.ascontiguousarray(values)
        count = values.size
        if every > 1:
            values = np.ascontiguousarray(values.reshape(-1)[::every])
        if is_float(dtype):
            if not (abs or rel or ulp):
                values = cast(values, dtype)
            if dtype == "c64":
                b = values.astype(np.complex64).tobytes()
            else:
                with np.errstate(all="ignore"):
                    b = values.astype(np.float32).tobytes()
        else:
            b = raw(values, dtype)
        w = {**self.group.store(b)}
        if every > 1:
            w["Every"] = every
        for k, v in (("Abs", abs), ("Rel", rel), ("ULP", ulp), ("Why", why)):
            if v:
                w[k] = v if k == "Why" else float(v)
        if of:
            [a] = [a for a in self.args if a["Name"] == name]
            a["Want"] = w
        else:
            self._arg(name, dtype, count, Want=w)

    def free(self, name, dtype, count):
        """A buffer that nobody looks at afterwards."""
        self._arg(name, dtype, count, Free=True)

    def value(self, name, kind, *values):
        """Bytes that are bound inline: kind is a type of buffers' elements, or a form of struct's."""
        if kind in SIZES:
            b = raw(np.array(values), kind)
        else:
            b = struct.pack("<" + kind, *values)
        self.args.append({"Name": name, "Bytes": b.hex()})

    def memory(self, name, size):
        """Threadgroup memory."""
        self.args.append({"Name": name, "Threadgroup": size})

    def grid(self, threads, group):
        """The grid in threads."""
        three = lambda v: ([int(i) for i in v] if hasattr(v, "__len__") else [int(v)]) + [1, 1, 1]
        self.threads, self.threadgroup = three(threads)[:3], three(group)[:3]

    def groups(self, groups, group):
        """The grid in threadgroups."""
        three = lambda v: ([int(i) for i in v] if hasattr(v, "__len__") else [int(v)]) + [1, 1, 1]
        self.grid([a * b for a, b in zip(three(groups)[:3], three(group)[:3])], group)

    def json(self):
        if self.threads is None:
            raise ValueError(f"{self.name} has no grid")
        return {"Name": self.name, "Kernel": self.kernel, "Oracle": self.oracle, "Constants": self.constants, "Args": self.args, "Threads": self.threads, "Group": self.threadgroup}
