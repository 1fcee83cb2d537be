"""Goldens: dispatches of kernels with the results they must have.

    python testdata/gen/kernels.py testdata/kernels/l2_norm.txtar

runs program.py of the archive, which calls case and expect below, and writes
cases.json and arrays.base64 behind it: a golden of a new kernel is one such file.

    python testdata/gen/kernels.py [OUT]      (OUT: testdata/kernels)

writes OUT/cases.json, one case a line, and OUT/cases.bin, for the kernels whose
program stands here. Cases refer to arrays as [offset, bytes].
backend/conformance/golden.go reads all of them.

A case is one dispatch: kernel, function constants, grid, the bytes of every
argument. "expect" holds the results of one or two oracles:

  numpy  the kernel's formula in float64 on the same inputs, written here; a
         rounding that belongs to the kernel's definition (the angle of rope,
         an embedded value) is done in float32;
  mlx    the operation of MLX itself, on its CPU back end, in float32.

The tolerance of a value is "tol" times its "scale", the sum of the absolute
values of the terms that make it (without a scale: its own absolute value);
"exact" asks for the bits. An output buffer is
given by its size alone: the test fills it with a pattern and checks that every
byte outside the expected elements keeps it. Bytes of inputs that a kernel must
not read are NaN.

Deterministic: a seed a family. Versions: requirements.txt.
"""

import base64
import json
import re
import struct
import sys
from pathlib import Path

import numpy as np

try:
    import mlx.core as mx
except ImportError:  # the program of an archive needs NumPy alone, unless it asks for MLX's results
    mx = None

F32, F64 = np.float32, np.float64
NAN = F32(np.nan)

cases = []
blob = bytearray()
seen = {}


def ref(array):
    """Stores an array's bytes once; returns [offset, bytes]."""
    data = np.ascontiguousarray(array).tobytes()
    if data not in seen:
        while len(blob) % 8:
            blob.append(0)
        seen[data] = [len(blob), len(data)]
        blob.extend(data)
    return seen[data]


def i32(v):
    return struct.pack("<i", v)


def u32(v):
    return struct.pack("<I", v)


def i64(*v):
    return struct.pack("<%dq" % len(v), *v)


def f32(v):
    return struct.pack("<f", v)


def out(n, dtype=F32):
    """An output buffer of n elements."""
    return {"bytes": int(n) * np.dtype(dtype).itemsize}


def same(slot):
    """A buffer that is the one at another slot."""
    return {"same": slot}


def case(kernel, note, device, constant, threads=None, groups=None, group=(32, 1, 1), flags=None):
    """Appends a call; the caller adds expectations to what it returns."""
    c = {
        "kernel": kernel,
        "note": note,
        "flags": {str(k): int(v) for k, v in (flags or {}).items()},
        "groups": list(groups or [-(-t // g) for t, g in zip(threads, group)]),
        "threads": list(threads or [a * b for a, b in zip(groups, group)]),
        "group": list(group),
        "device": {str(k): v if isinstance(v, dict) else {"data": ref(v)} for k, v in device.items()},
        "constant": {str(k): v.hex() for k, v in constant.items()},
        "expect": [],
    }
    cases.append(c)
    return c


def bf16(v):
    """The bits of the bf16 nearest to finite values, ties to even."""
    bits = np.asarray(v, F32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def bf16_value(bits):
    return (np.asarray(bits, np.uint32) << 16).view(F32)


def expect(c, slot, value, scale=None, tol=1e-5, oracle="numpy", strides=None, half=False, bfloat=False):
    """Says what the elements of a slot become. strides are in elements; scale
    None asks for the bits of value. Elements are f16 with half, or if value is;
    bf16 with bfloat."""
    value = np.asarray(value)
    half = half or bfloat or value.dtype == np.float16
    if strides is None:
        strides = [int(np.prod(value.shape[i + 1 :])) for i in range(value.ndim)]
    e = {"oracle": oracle, "slot": slot, "shape": list(value.shape), "strides": [int(s) for s in strides]}
    if half:
        e["half"] = True
        if bfloat:
            e["bfloat"] = True
    if scale is None:
        e["exact"] = True
        e["values"] = ref(value)
    else:
        e["tol"] = tol
        e["values"] = ref(value.astype(F32))
        if not np.array_equal(scale, np.abs(value)):
            e["scale"] = ref(np.broadcast_to(scale, value.shape).astype(F32))
    c["expect"].append(e)


def strided(x, strides, size=None):
    """A buffer that holds x under strides, with NaN in between."""
    x = np.asarray(x)
    last = sum((n - 1) * s for n, s in zip(x.shape, strides))
    buf = np.full(max(size or 0, last + 1), NAN, F32) if x.dtype == F32 else np.zeros(last + 1, x.dtype)
    for i in np.ndindex(x.shape):
        buf[sum(a * b for a, b in zip(i, strides))] = x[i]
    return buf


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(F32)


SPECIALS = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.4e38, -3.4e38, 1e-38, 1.0, -1.0], F32)


# ---- norm


def rms():
    rng = np.random.default_rng(1)

    def one(kernel, rows, n, w_stride=1, eps=1e-5, inplace=False, x=None, group=None, note="", oracle=False):
        x = normal(rng, rows, n) if x is None else x
        w = normal(rng, n if w_stride else 1)
        ws = np.broadcast_to(w, n) if w_stride == 0 else w
        c = case(
            kernel,
            f"{rows}x{n} w_stride {w_stride}" + (" in place" if inplace else "") + note,
            {0: x, 1: w if w_stride <= 1 else strided(w, [w_stride]), 2: same(0) if inplace else out(rows * n)},
            {3: f32(eps), 4: u32(n), 5: u32(w_stride)},
            groups=(rows, 1, 1),
            group=(group or 32 * -(-n // 128), 1, 1),
        )
        with np.errstate(invalid="ignore"):
            want = ws.astype(F64) * x / np.sqrt(np.mean(x.astype(F64) ** 2, -1, keepdims=True) + F64(F32(eps)))
        expect(c, 2, want, np.abs(want))
        if oracle:
            got = np.array(mx.fast.rms_norm(mx.array(x), mx.array(np.ascontiguousarray(ws)), eps))
            expect(c, 2, got, np.abs(want), oracle="mlx")

    one("rmsfloat32", 1, 576, oracle=True)
    one("rmsfloat32", 3, 577, oracle=True)
    one("rmsfloat32", 4, 1)
    one("rmsfloat32", 2, 130, inplace=True)
    one("rmsfloat32", 2, 37, w_stride=2)
    one("rmsfloat32", 2, 37, w_stride=0)
    one("rmsfloat32", 2, 64, eps=1.0)
    one("rmsfloat32", 2, 64, x=np.full((2, 64), 1e-3, F32), note=" constant rows")
    x = normal(rng, 3, 33)
    x[1, 20] = np.nan
    one("rmsfloat32", 3, 33, x=x, note=" NaN in one row")
    one("rms_loopedfloat32", 1, 4100, group=1024, oracle=True)
    one("rms_loopedfloat32", 1, 4101, group=64, inplace=True)


# ---- elementwise


def binary():
    rng = np.random.default_rng(2)
    ops = {"Add": (np.add, mx.add), "Multiply": (np.multiply, mx.multiply)}
    for name, (op, mlx_op) in ops.items():
        for n in (1, 7, 576, 1023, 2051):
            a, b = normal(rng, n), normal(rng, n)
            c = case(f"vv_{name}float32", f"{n}", {0: a, 1: b, 2: out(n)}, {3: u32(n)}, threads=(n, 1, 1))
            expect(c, 2, op(a, b))
            if n == 576:
                expect(c, 2, np.array(mlx_op(mx.array(a), mx.array(b))), oracle="mlx")
        a, b = np.meshgrid(SPECIALS, SPECIALS)
        a, b = a.ravel().copy(), b.ravel().copy()
        with np.errstate(all="ignore"):
            want = op(a, b)
        for note, dev in (
            ("specials", {0: a, 1: b, 2: out(a.size)}),
            ("specials, c is a", {0: a, 1: b, 2: same(0)}),
            ("specials, c is b", {0: a, 1: b, 2: same(1)}),
        ):
            c = case(f"vv_{name}float32", note, dev, {3: u32(a.size)}, threads=(a.size, 1, 1))
            expect(c, 2, want)

        def g2(d0, d1, sa, sb):
            a = normal(rng, d0 if sa[0] else 1, d1 if sa[1] else 1)
            b = normal(rng, d0 if sb[0] else 1, d1 if sb[1] else 1)
            c = case(
                f"g2_{name}float32",
                f"{d0}x{d1} a {sa} b {sb}",
                {0: strided(a, sa), 1: strided(b, sb), 2: out(d0 * d1)},
                {3: i64(*sa), 4: i64(*sb)},
                threads=(d1, d0, 1),
            )
            expect(c, 2, op(a, b) * np.ones((d0, d1), F32))

        g2(3, 5, (5, 1), (5, 1))
        g2(3, 5, (7, 1), (0, 1))
        g2(3, 5, (1, 3), (1, 0))
        g2(1, 1, (0, 0), (0, 0))
        g2(3, 700, (701, 1), (0, 1))
        g2(2, 1100, (1101, 1), (1, 2))
        g2(400, 3, (1, 400), (4, 1))


def unary():
    rng = np.random.default_rng(3)

    def sigmoid(x):
        with np.errstate(over="ignore"):
            return 1 / (1 + np.exp(-x.astype(F64)))

    def silu(x):
        with np.errstate(over="ignore", invalid="ignore"):
            return x.astype(F64) / (1 + np.exp(-x.astype(F64)))

    for name, fn in (("v_Sigmoid", sigmoid), ("v_Silu", silu)):
        for n in (1, 9, 1536, 2049):
            x = normal(rng, n) * F32(4)
            c = case(f"{name}float32float32", f"{n}", {0: x, 1: out(n)}, {2: u32(n)}, threads=(n, 1, 1))
            want = fn(x)
            expect(c, 1, want, np.abs(want))
            if n == 1536:
                m = mx.sigmoid(mx.array(x))
                m = m if name == "v_Sigmoid" else mx.array(x) * m
                expect(c, 1, np.array(m), np.abs(want), oracle="mlx")
        # Where exp overflows in f32 the kernels' own formulas give ±0: the scale
        # is no smaller than what makes that difference (3e-37) pass.
        x = np.concatenate([SPECIALS, np.linspace(-110, 110, 441).astype(F32)])
        c = case(f"{name}float32float32", "specials, -110 to 110", {0: x, 1: out(x.size)}, {2: u32(x.size)}, threads=(x.size, 1, 1))
        want = fn(x)
        expect(c, 1, want, np.maximum(np.abs(want), F64(3e-32)))


# ---- copy


def copies():
    rng = np.random.default_rng(4)

    def bits(*shape):
        """Any bits at all: a copy keeps the payload of a NaN."""
        return rng.integers(0, 2**32, shape, np.uint32).view(F32)

    for n in (1, 5, 1024, 2051):
        x = bits(n)
        c = case("v_copyfloat32float32", f"{n}", {0: x, 1: out(n)}, {2: u32(n)}, threads=(n, 1, 1))
        expect(c, 1, x)

    def g(shape, src, dst=None):
        dims = len(shape)
        x = bits(*[n if s else 1 for n, s in zip(shape, src)])
        dev = {0: strided(x, src)}
        const = {3: i64(*src)}
        want = np.ascontiguousarray(np.broadcast_to(x, shape))
        if dst is None:
            dev[1] = out(want.size)
        else:
            dev[1] = out(sum((n - 1) * s for n, s in zip(shape, dst)) + 1)
            const[4] = i64(*dst)
        threads = (list(shape[::-1]) + [1])[:3]
        c = case(f"{'gg' if dst else 'g'}{dims}_copyfloat32float32", f"{shape} src {src} dst {dst}", dev, const, threads=threads)
        expect(c, 1, want, strides=dst)

    g((3, 5), (5, 1))
    g((3, 5), (1, 3))
    g((3, 5), (0, 1))
    g((700, 3), (4, 1))
    g((2, 1100), (2201, 2))
    g((2, 3, 5), (15, 5, 1))
    g((3, 2, 5), (5, 15, 1))
    g((5, 3, 2), (1, 5, 15))
    g((9, 7, 64), (64, 9 * 64, 1))
    g((2, 1, 1030), (1031, 0, 1))
    g((3, 5), (5, 1), (8, 1))
    g((3, 5), (1, 3), (1, 4))
    g((3, 64), (64, 1), (640, 1))
    g((2, 1100), (1100, 1), (1, 2))
    g((2, 3, 5), (15, 5, 1), (40, 8, 1))
    g((3, 2, 64), (64, 192, 1), (256, 64, 1))
    g((4, 3, 2), (1, 4, 12), (1, 5, 16))
    g((1, 1, 1), (0, 0, 0), (7, 3, 2))


# ---- quantized


def pack(codes, bits):
    """Codes [N, K] to uint32 [N, K*bits/32], little-endian inside and across words."""
    single = codes[:, :, None].astype(np.uint32) >> np.arange(bits, dtype=np.uint32) & 1
    return np.packbits(single.reshape(codes.shape[0], -1).astype(np.uint8), axis=1, bitorder="little").view(np.uint32)


def unpack(w, bits):
    single = np.unpackbits(np.ascontiguousarray(w).view(np.uint8), axis=1, bitorder="little")
    return np.sum(single.reshape(w.shape[0], -1, bits).astype(np.uint32) << np.arange(bits, dtype=np.uint32), axis=2, dtype=np.uint32)


def dequantized(w, s, b, bits, group):
    q = unpack(w, bits).astype(F64)
    return np.repeat(s.astype(F64), group, 1) * q + np.repeat(b.astype(F64), group, 1)


def quantized():
    rng = np.random.default_rng(5)

    def weights(n, k, bits, group, kind):
        codes = rng.integers(0, 2**bits, (n, k))
        shape = (n, k // group)
        if kind == "integers":  # every product and sum is exact in f32
            s = rng.integers(1, 4, shape).astype(F32)
            b = rng.integers(-20, 20, shape).astype(F32)
        elif kind == "symmetric":  # as Q8_0 and Q4_0 models have it
            s = (np.abs(normal(rng, *shape)) * 0.01).astype(np.float16).astype(F32)
            b = -(2 ** (bits - 1)) * s
        else:
            s, b = normal(rng, *shape), normal(rng, *shape)
        return pack(codes, bits), s.astype(F32), b.astype(F32)

    def product(kernel, m, n, k, bits, group, kind, groups, threads, with_m):
        if kind == "integers":
            x = rng.integers(-8, 9, (m, k)).astype(F32)
        else:
            x = normal(rng, m, k)
        if kind == "mlx":
            full = normal(rng, n, k)
            q = mx.quantize(mx.array(full), group_size=group, bits=bits)
            w, s, b = (np.array(t) for t in q)
        else:
            w, s, b = weights(n, k, bits, group, kind)
        const = {5: i32(k), 6: i32(n)}
        if with_m:
            const[7] = i32(m)
        c = case(kernel, f"{m}x{n}x{k} {kind}", {0: w, 1: s, 2: b, 3: x, 4: out(m * n)}, const, groups=groups, group=threads)
        d = dequantized(w, s, b, bits, group)
        want = x.astype(F64) @ d.T
        scale = np.abs(x.astype(F64)) @ np.abs(d).T
        if kind == "integers":
            expect(c, 4, want.astype(F32))
        else:
            expect(c, 4, want, scale)
        if kind == "mlx":
            got = mx.quantized_matmul(mx.array(x), *q, transpose=True, group_size=group, bits=bits)
            expect(c, 4, np.array(got), scale, oracle="mlx")

    for group in (32, 64):
        for bits in (4, 8):
            name = f"float_gs_{group}_b_{bits}"

            def qmv(m, n, k, kind, fast=False):
                kernel = f"affine_qmv_{'fast_' if fast else ''}{name}_batch_0_pr_0_hgs_0_r_4"
                product(kernel, m, n, k, bits, group, kind, (m, -(-n // 8), 1), (32, 2, 1), False)

            qmv(1, 1, group, "integers")
            qmv(1, 13, 3 * group, "integers")
            qmv(3, 17, 5 * group, "integers")
            qmv(1, 37, 9 * group, "random")
            qmv(5, 9, 2 * group, "random")
            qmv(2, 11, 7 * group, "symmetric")
            qmv(1, 16, 6 * group, "mlx")
            step = 512 if bits == 4 else 256
            qmv(1, 8, step, "integers", True)
            qmv(2, 24, 2 * step, "random", True)
            qmv(1, 16, step, "mlx", True)

            def qmm(m, n, k, kind):
                kernel = f"affine_qmm_t_{name}_alN_{'true' if n % 32 == 0 else 'false'}_batch_0"
                product(kernel, m, n, k, bits, group, kind, (-(-n // 32), -(-m // 32), 1), (32, 2, 2), True)

            qmm(1, 5, group, "integers")
            qmm(25, 49, 2 * group, "integers")
            qmm(33, 51, 3 * group, "random")
            qmm(13, 101, group, "symmetric")
            qmm(1, 32, group, "integers")
            qmm(34, 64, 2 * group, "random")
            qmm(9, 32, 2 * group, "mlx")

            def embed(ids, v, k, kind):
                ids = np.array(ids, np.int32)
                w, s, b = weights(v, k, bits, group, kind)
                c = case(
                    f"affine_embed_{name}",
                    f"ids {ids.tolist()} of {v}x{k}",
                    {0: ids, 1: w, 2: s, 3: b, 4: out(ids.size * k)},
                    {5: i32(k), 6: i32(v)},
                    threads=(k, ids.size, 1),
                )
                codes = unpack(w, bits).astype(F32)
                table = np.repeat(s, group, 1) * codes + np.repeat(b, group, 1)
                assert table.dtype == F32
                inside = (ids >= 0) & (ids < v)
                want = np.where(inside[:, None], table[np.where(inside, ids, 0)], NAN)
                expect(c, 4, want)
                if inside.all():
                    m = mx.dequantize(mx.array(w), mx.array(s), mx.array(b), group_size=group, bits=bits)
                    expect(c, 4, np.array(m)[ids], np.abs(want) + np.abs(np.repeat(b, group, 1))[ids], tol=2e-7, oracle="mlx")

            embed([0], 1, group, "random")
            embed([4, 0, 2, 2], 5, 3 * group, "random")
            embed([2, 3, -1, 1, -(2**31), 2**31 - 1], 3, 2 * group, "symmetric")


def embed():
    rng = np.random.default_rng(6)
    for ids, v, k in (([0], 1, 1), ([3, 1, 1, 0], 4, 37), ([1, 2, -1, 0, 2**31 - 1], 2, 8)):
        ids = np.array(ids, np.int32)
        inside = (ids >= 0) & (ids < v)
        for name, table in (
            ("embed_float32", rng.integers(0, 2**32, (v, k), np.uint32).view(F32)),
            ("embed_float16", rng.integers(0, 2**16, (v, k), np.uint16).view(np.float16)),
        ):
            c = case(
                name,
                f"ids {ids.tolist()} of {v}x{k}",
                {0: ids, 1: table, 2: out(ids.size * k)},
                {3: i32(k), 4: i32(v)},
                threads=(k, ids.size, 1),
            )
            want = np.full((ids.size, k), NAN, F32)
            want[inside] = table[ids[inside]].astype(F32)
            expect(c, 2, want)


# ---- matrix products


def gemv():
    rng = np.random.default_rng(7)

    def one(tiling, n, k, ld=None, batch=1, integers=False, oracle=False):
        bm, bn, sm, sn, tm, tn = tiling
        ld = ld or k
        if integers:
            mat, x = rng.integers(-50, 51, (batch, n, k)).astype(F32), rng.integers(-50, 51, (batch, k)).astype(F32)
        else:
            mat, x = normal(rng, batch, n, k), normal(rng, batch, k)
        ms, xs = n * ld + 3, k + 2
        c = case(
            "gemv_float32_bm%d_bn%d_sm%d_sn%d_tm%d_tn%d_nc0_axpby0" % tiling,
            f"{batch}x{n}x{k} ld {ld}",
            {0: strided(mat, (ms, ld, 1)), 1: strided(x, (xs, 1)), 3: out(batch * n)},
            {4: i32(k), 5: i32(n), 6: i32(ld), 9: i32(1), 10: i32(batch), 11: i64(xs), 12: i64(ms)},
            groups=(-(-n // (bm * sm * tm)), 1, batch),
            group=(32, bn, bm),
        )
        want = np.einsum("bnk,bk->bn", mat.astype(F64), x)
        scale = np.einsum("bnk,bk->bn", np.abs(mat).astype(F64), np.abs(x))
        if integers:
            expect(c, 3, want.astype(F32))
        else:
            expect(c, 3, want, scale)
        if oracle:
            got = (mx.array(mat) @ mx.array(x)[:, :, None])[:, :, 0]
            expect(c, 3, np.array(got), scale, oracle="mlx")

    one((4, 1, 1, 32, 4, 4), 37, 101, oracle=True)
    one((4, 1, 1, 32, 4, 4), 5, 67, ld=70)
    one((4, 1, 1, 32, 4, 4), 9, 65, batch=3)
    one((4, 1, 1, 32, 4, 4), 19, 77, integers=True)
    one((4, 1, 1, 32, 1, 4), 3, 90, batch=2, ld=91)
    one((8, 1, 1, 32, 4, 4), 4099, 1)
    one((1, 8, 1, 32, 4, 4), 6, 97)
    one((1, 8, 1, 32, 1, 4), 1, 66)
    one((1, 1, 8, 4, 4, 4), 41, 64)
    one((1, 1, 8, 4, 4, 4), 7, 1)
    one((1, 1, 8, 4, 1, 4), 2, 33)

    for half in (False, True):

        def matrix(n, k, integers):
            w = rng.integers(-50, 51, (n, k)).astype(F32) if integers else normal(rng, n, k)
            return w.astype(np.float16) if half else w

        def vectors(m, k, integers):
            return rng.integers(-50, 51, (m, k)).astype(F32) if integers else normal(rng, m, k)

        def judge(c, slot, x, w, integers):
            want = x.astype(F64) @ w.astype(F64).T
            if integers:
                expect(c, slot, want.astype(F32))
            else:
                expect(c, slot, want, np.abs(x).astype(F64) @ np.abs(w).astype(F64).T)

        if half:
            for n, k, integers in ((1, 1, False), (13, 101, False), (17, 64, True)):
                w, x = matrix(n, k, integers), vectors(1, k, integers)
                c = case(
                    "gemv_float16_float32",
                    f"{n}x{k}",
                    {0: w, 1: x, 2: out(n)},
                    {3: i32(k), 4: i32(n)},
                    groups=(-(-n // 8), 1, 1),
                    group=(32, 2, 1),
                )
                judge(c, 2, x, w, integers)
        for m, n, k, integers in ((1, 1, 1, False), (1, 50, 33, False), (33, 35, 70, False), (40, 101, 37, True)):
            w, x = matrix(n, k, integers), vectors(m, k, integers)
            c = case(
                "gemm_nt_float16_float32" if half else "gemm_nt_float32",
                f"{m}x{n}x{k}",
                {0: x, 1: w, 2: out(m * n)},
                {3: i32(k), 4: i32(n), 5: i32(m)},
                groups=(-(-n // 32), -(-m // 32), 1),
                group=(32, 2, 2),
            )
            judge(c, 2, x, w, integers)


# ---- rope


def rope():
    rng = np.random.default_rng(8)

    def rotate(x, positions, scale, base, forward, traditional):
        """x [H, T, D] f32 -> f64 and the sums of absolute terms."""
        half = x.shape[-1] // 2
        d = np.arange(half, dtype=F32) / F32(half)
        freq = np.exp2((-d * F32(base)).astype(F64)).astype(F32)
        theta = ((F32(scale) * positions.astype(F32))[:, None] * freq).astype(F32).astype(F64)
        c, s = np.cos(theta), np.sin(theta) * (1 if forward else -1)
        a, b = (x[..., 0::2], x[..., 1::2]) if traditional else (x[..., :half], x[..., half:])
        a, b = a.astype(F64), b.astype(F64)
        want, terms = np.empty(x.shape), np.empty(x.shape)
        pairs = (slice(0, None, 2), slice(1, None, 2)) if traditional else (slice(0, half), slice(half, None))
        want[..., pairs[0]], want[..., pairs[1]] = a * c - b * s, a * s + b * c
        terms[..., pairs[0]], terms[..., pairs[1]] = abs(a * c) + abs(b * s), abs(a * s) + abs(b * c)
        return want, terms

    def mlx_rope(x, offset, scale, base, traditional):
        r = mx.fast.rope(mx.array(x)[None], x.shape[-1], traditional=traditional, base=base, scale=scale, offset=offset)
        return np.array(r)[0]

    # MLX's CPU path rounds the angle in other places than the kernel: its
    # results are compared at small positions only, at tolerance 1e-4.
    def single(heads, dims, offset, stride=None, scale=1.0, base=10000.0, inplace=False, oracle=False, forward=True, traditional=False):
        stride = stride or dims
        log_base = F32(np.log2(base))
        x = normal(rng, heads, dims)
        buf = strided(x, (stride, 1))
        c = case(
            "rope_single_float32",
            f"{heads}x{dims} offset {offset} stride {stride}",
            {0: buf, 1: same(0) if inplace else out(buf.size)},
            {2: i32(offset), 3: f32(scale), 4: i64(stride), 10: f32(log_base)},
            threads=(dims // 2, heads, 1),
            flags={1: forward, 2: traditional},
        )
        want, terms = rotate(x[:, None], np.array([offset]), scale, log_base, forward, traditional)
        expect(c, 1, want[:, 0], terms[:, 0], strides=(stride, 1))
        if oracle:
            expect(c, 1, mlx_rope(x[:, None], offset, scale, base, traditional)[:, 0], terms[:, 0] + 1, tol=1e-4, oracle="mlx", strides=(stride, 1))

    def many(heads, t, dims, offset, strides=None, out_strides=None, scale=1.0, base=10000.0, inplace=False, oracle=False, forward=True, traditional=False):
        strides = strides or (t * dims, dims, 1)
        out_strides = strides if inplace else out_strides or (t * dims, dims, 1)
        log_base = F32(np.log2(base))
        x = normal(rng, heads, t, dims)
        size = sum((n - 1) * s for n, s in zip(x.shape, out_strides)) + 1
        c = case(
            "rope_float32",
            f"{heads}x{t}x{dims} offset {offset} strides {strides} out {out_strides}",
            {0: strided(x, strides), 1: same(0) if inplace else out(size), 2: np.array([offset], np.int32)},
            {3: f32(scale), 4: i64(*strides), 5: i64(*out_strides), 6: i64(0), 7: i32(heads), 10: f32(log_base)},
            threads=(dims // 2, t, -(-heads // 4)),
            flags={1: forward, 2: traditional, 3: False},
        )
        want, terms = rotate(x, offset + np.arange(t), scale, log_base, forward, traditional)
        expect(c, 1, want, terms, strides=out_strides)
        if oracle:
            expect(c, 1, mlx_rope(x, offset, scale, base, traditional), terms + 1, tol=1e-4, oracle="mlx", strides=out_strides)

    for traditional in (False, True):
        single(1, 2, 0, traditional=traditional)
        single(9, 64, 5, base=100000.0, oracle=True, traditional=traditional)
        single(3, 64, 8191, base=100000.0, traditional=traditional)
        single(4, 6, 30, stride=10, scale=0.5, inplace=True, oracle=True, traditional=traditional)
        single(2, 8, 11, forward=False, traditional=traditional)
        many(1, 1, 2, 3, traditional=traditional)
        many(3, 5, 64, 7, base=100000.0, oracle=True, traditional=traditional)
        many(5, 4, 6, 100, strides=(6, 5 * 6, 1), traditional=traditional)
        many(3, 6, 8, 9, strides=(60, 10, 1), inplace=True, oracle=True, traditional=traditional)
        many(2, 3, 8, 2000, strides=(1, 40, 2), out_strides=(100, 9, 1), scale=0.25, traditional=traditional)
        many(2, 3, 8, 6, forward=False, traditional=traditional)


# ---- attention


def sdpa():
    rng = np.random.default_rng(9)

    def one(hq, gqa, l, n, d, causal=False, transposed=False, rows=False, k_strides=None, v_strides=None, oracle=False, change=None, note="", tol=1e-5):
        kv = -(-hq // gqa)
        ks, vs = k_strides or (n * d, d), v_strides or (n * d, d)
        q, k, v = normal(rng, hq, l, d), normal(rng, kv, n, d), normal(rng, kv, n, d)
        if change:
            change(q, k, v)
        scale = F32(1 / np.sqrt(d))
        c = case(
            f"sdpa_{'rows' if rows else 'vector'}_float_{d}_{d}",
            f"q {hq}x{l} kv {kv}x{n}" + (" causal" if causal else "") + (" transposed" if transposed else "") + f" strides {ks} {vs}" + note,
            {
                0: np.ascontiguousarray(q.transpose(1, 0, 2)) if transposed or rows else q,
                1: strided(k, ks + (1,)),
                2: strided(v, vs + (1,)),
                3: out(hq * l * d),
            },
            {4: i32(gqa), 5: i32(n), 6: i64(ks[0]), 7: i64(ks[1]), 8: i64(vs[0]), 9: i64(vs[1]), 10: f32(scale)},
            groups=(hq, l, 1),
            group=(256 if rows else 1024, 1, 1),
            flags={22: causal} if rows else {20: 0, 21: transposed, 22: causal, 23: 0, 24: 0, 25: 0},
        )
        want, terms = np.empty((hq, l, d)), np.empty((hq, l, d))
        for h in range(hq):
            for i in range(l):
                used = max(0, n - l + i + 1) if causal else n
                s = (k[h // gqa, :used].astype(F64) @ (F64(scale) * q[h, i].astype(F64)))
                p = np.exp(s - s.max()) if used else s
                p = p / p.sum()
                want[h, i] = p @ v[h // gqa, :used].astype(F64)
                terms[h, i] = p @ np.abs(v[h // gqa, :used]).astype(F64)
        strides = (d, hq * d, 1) if rows else None
        expect(c, 3, want, terms, tol=tol, strides=strides)
        if oracle:
            got = mx.fast.scaled_dot_product_attention(
                mx.array(q)[None], mx.array(k)[None], mx.array(v)[None], scale=float(scale), mask="causal" if causal else None
            )
            expect(c, 3, np.array(got)[0], terms, oracle="mlx", strides=strides)

    one(3, 3, 1, 1, 64)
    one(3, 3, 1, 70, 64, causal=True, oracle=True)
    one(3, 1, 1, 21, 96, k_strides=(96, 3 * 96), v_strides=(23 * 96, 96))
    one(2, 2, 3, 67, 128, causal=True, transposed=True)
    one(2, 2, 1, 270, 64, v_strides=(0, 66))
    one(3, 3, 5, 20, 64, transposed=True, oracle=True)
    one(2, 2, 4, 2, 64, causal=True, note=": two queries without a key")
    one(3, 3, 9, 9, 64, causal=True, oracle=True)
    one(1, 1, 12, 262, 64, causal=True)
    one(3, 3, 66, 130, 64, causal=True, transposed=True)
    one(2, 2, 13, 30, 96, k_strides=(96, 200), v_strides=(100 * 96, 97))
    one(2, 1, 8, 25, 128, oracle=True)
    one(2, 2, 10, 3, 64, causal=True, note=": seven queries without a key")
    one(5, 3, 1, 4, 64, note=": two heads share the last key head")
    one(5, 3, 6, 7, 64, causal=True, note=": two heads share the last key head")
    one(4, 2, 1, 9, 64, causal=True, rows=True)
    one(4, 2, 7, 19, 64, causal=True, rows=True, oracle=True)
    one(2, 1, 3, 5, 96, rows=True)
    one(3, 3, 8, 8, 128, causal=True, rows=True)

    # A score is rounded to f32; at some hundreds that moves its exponential by
    # 1e-5 and more.
    def large(q, k, v):
        q *= 60

    one(2, 1, 1, 40, 64, change=large, tol=1e-4, note=": large scores")
    one(1, 1, 9, 40, 64, change=large, causal=True, tol=1e-4, note=": large scores")

    def poison_last(q, k, v):
        k[:, -1], v[:, -1] = np.nan, np.inf

    # Only the last query uses the last key: no other may see its NaN.
    one(1, 1, 3, 10, 64, causal=True, change=poison_last, note=": NaN in the last key")
    one(2, 2, 9, 10, 64, causal=True, change=poison_last, note=": NaN in the last key")


# ---- arg reduce


def argmax():
    rng = np.random.default_rng(10)

    def one(x, ndim, in_stride=None, out_stride=1, axis_stride=1, note="", oracle=True):
        rows, n = x.shape
        in_stride = in_stride if in_stride is not None else n * axis_stride
        want = np.zeros(rows, np.uint32)
        for r in range(rows):
            best = -np.inf
            for i, v in enumerate(x[r]):
                if v > best:
                    best, want[r] = v, i
        c = case(
            "argmax_float32",
            f"{rows}x{n} ndim {ndim} strides {in_stride} {axis_stride} {out_stride}" + note,
            {0: strided(x, (in_stride, axis_stride)), 1: out((rows - 1) * out_stride + 1)},
            {2: i32(rows), 3: i64(in_stride), 4: i64(out_stride), 5: i64(ndim), 6: i64(axis_stride), 7: i64(n)},
            threads=(32 * -(-n // 128), rows, 1),
            group=(32 * -(-n // 128), 1, 1),
        )
        expect(c, 1, want, strides=(out_stride,))
        if oracle:
            expect(c, 1, np.array(mx.argmax(mx.array(x), axis=1)), oracle="mlx", strides=(out_stride,))

    one(normal(rng, 1, 1), 0)
    one(normal(rng, 1, 1000), 0)
    one(normal(rng, 1, 5003), 0)
    one(normal(rng, 4, 77), 1)
    one(normal(rng, 3, 20), 1, in_stride=25, out_stride=2)
    one(normal(rng, 5, 12), 1, in_stride=1, axis_stride=5)
    one(rng.integers(0, 3, (3, 2000)).astype(F32), 1, note=" ties")
    one(np.zeros((1, 2049), F32) * F32(-1), 0, note=" all -0")
    one(np.array([[-0.0, 0.0, -0.0]], F32), 0, note=" signed zeros")
    one(np.full((1, 1500), -np.inf, F32), 0, note=" all -Inf")
    x = np.full((1, 1500), -np.inf, F32)
    x[0, 1200] = -3e38
    one(x, 0, note=" one above -Inf")
    x = normal(rng, 3, 2500)
    x[0, 1] = x[1, 2000] = x[2, 1100] = np.nan
    x[2, 1101] = x[2, 7] = np.inf
    one(x, 1, note=" NaN among values", oracle=False)
    one(np.full((1, 40), np.nan, F32), 0, note=" all NaN", oracle=False)


# ---- half precision


def halves():
    rng = np.random.default_rng(11)
    F16 = np.float16

    def half(*shape):
        return rng.standard_normal(shape).astype(F16)

    specials = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 6e-8, -6e-8, 65504, -65504, 6.1e-5, 1.0, -1.0, 255.9, 2.0**-13], F16)
    ops = {"Add": (np.add, mx.add), "Multiply": (np.multiply, mx.multiply)}
    for name, (op, mlx_op) in ops.items():

        def both(a, b):
            with np.errstate(all="ignore"):
                return op(a.astype(F64), b.astype(F64)).astype(F16)

        for n in (1, 7, 576, 2051):
            a, b = half(n), half(n)
            c = case(f"vv_{name}float16", f"{n}", {0: a, 1: b, 2: out(n, F16)}, {3: u32(n)}, threads=(n, 1, 1))
            expect(c, 2, both(a, b))
            if n == 576:
                expect(c, 2, np.array(mlx_op(mx.array(a), mx.array(b))), oracle="mlx")
        a, b = np.meshgrid(specials, specials)
        a, b = a.ravel().copy(), b.ravel().copy()
        for note, dev in (
            ("specials", {0: a, 1: b, 2: out(a.size, F16)}),
            ("specials, c is a", {0: a, 1: b, 2: same(0)}),
            ("specials, c is b", {0: a, 1: b, 2: same(1)}),
        ):
            c = case(f"vv_{name}float16", note, dev, {3: u32(a.size)}, threads=(a.size, 1, 1))
            expect(c, 2, both(a, b))
        for d0, d1, sa, sb in ((3, 5, (5, 1), (0, 1)), (3, 700, (701, 1), (1, 0)), (40, 3, (1, 40), (4, 1))):
            a = half(d0 if sa[0] else 1, d1 if sa[1] else 1)
            b = half(d0 if sb[0] else 1, d1 if sb[1] else 1)
            c = case(
                f"g2_{name}float16",
                f"{d0}x{d1} a {sa} b {sb}",
                {0: strided(a, sa), 1: strided(b, sb), 2: out(d0 * d1, F16)},
                {3: i64(*sa), 4: i64(*sb)},
                threads=(d1, d0, 1),
            )
            expect(c, 2, np.broadcast_to(both(a, b), (d0, d1)))
    for n in (1, 5, 2051):
        x = rng.integers(0, 2**16, n, np.uint16).view(F16)  # any bits
        c = case("v_copyfloat16float16", f"{n}", {0: x, 1: out(n, F16)}, {2: u32(n)}, threads=(n, 1, 1))
        expect(c, 1, x)
    for kernel, rows, n, ws, group in (
        ("rmsfloat16", 1, 576, 1, 160),
        ("rmsfloat16", 3, 577, 1, 160),
        ("rmsfloat16", 2, 37, 2, 32),
        ("rmsfloat16", 2, 37, 0, 32),
        ("rms_loopedfloat16", 1, 4100, 1, 1024),
    ):
        x, w = half(rows, n), half(n if ws else 1)
        c = case(
            kernel,
            f"{rows}x{n} w_stride {ws}",
            {0: x, 1: strided(w, [ws or 1]), 2: out(rows * n, F16)},
            {3: f32(1e-5), 4: u32(n), 5: u32(ws)},
            groups=(rows, 1, 1),
            group=(group, 1, 1),
        )
        y = x.astype(F64)
        scaled = (y / np.sqrt(np.mean(y**2, -1, keepdims=True) + F64(F32(1e-5)))).astype(F16)
        want = (w.astype(F64) * scaled.astype(F64)).astype(F16).astype(F64)
        # An inverse near the middle of two f16 may move the first rounding by a
        # unit, and that the second by one more.
        scale = np.abs(want) + F64(2**-14)
        expect(c, 2, want, scale, tol=2 * 2.0**-10, half=True)
        if ws == 1:
            got = np.array(mx.fast.rms_norm(mx.array(x), mx.array(w), 1e-5))
            expect(c, 2, got.astype(F64), scale, tol=2 * 2.0**-10, oracle="mlx", half=True)


# ---- layer norm


def layer_norms():
    rng = np.random.default_rng(12)
    F16 = np.float16

    def parts(x, eps):
        x = x.astype(F64)
        mean = np.mean(x, -1, keepdims=True)
        inv = 1 / np.sqrt(np.mean((x - mean) ** 2, -1, keepdims=True) + F64(F32(eps)))
        # The mean is exact to some units of f32, less than 1e-2 of a tolerance.
        return x - mean, inv, np.abs(x - mean) + 1e-2 * (np.abs(x) + np.mean(np.abs(x), -1, keepdims=True)) * (x.shape[-1] > 1)

    def spread(a, n, stride):
        return np.broadcast_to(a, n) if stride == 0 else a

    # Of each type: numbers to elements and back, the unit of a rounding.
    types = {
        "float32": (lambda v: v.astype(F32), lambda e: e, mx.float32, 1e-5),
        "float16": (lambda v: v.astype(F16), lambda e: e.astype(F64), mx.float16, 2.0**-10),
        "bfloat16": (bf16, lambda e: bf16_value(e).astype(F64), mx.bfloat16, 2.0**-7),
    }

    def forward(kernel, rows, n, ws=1, bs=1, eps=1e-5, inplace=False, x=None, group=None, note="", oracle=False):
        name = kernel.replace("layer_norm", "").replace("_looped", "")
        to, back, mlx_type, unit = types[name]
        narrow = name != "float32"
        x = normal(rng, rows, n) if x is None else x
        x, w, b = (to(v) for v in (x, normal(rng, n if ws else 1), normal(rng, n if bs else 1)))
        c = case(
            kernel,
            f"{rows}x{n} strides {ws} {bs}" + (" in place" if inplace else "") + note,
            {0: x, 1: strided(w, [ws or 1]), 2: strided(b, [bs or 1]), 3: same(0) if inplace else out(rows * n, x.dtype)},
            {4: f32(eps), 5: u32(n), 6: u32(ws), 7: u32(bs)},
            groups=(rows, 1, 1),
            group=(group or 32 * -(-n // 256), 1, 1),
        )
        x, w, b = back(x), *(np.ascontiguousarray(spread(back(v), n, s)).astype(F64) for v, s in ((w, ws), (b, bs)))
        with np.errstate(invalid="ignore"):
            centred, inv, size = parts(x, eps)
            if narrow:  # rounded three times; the first two may fall on either side
                scaled = back(to(w * back(to(centred * inv))))
                want = back(to(scaled + b))
                scale, tol = np.abs(scaled) + np.abs(b) + 2**-14, 2 * unit
            else:
                want = w * centred * inv + b
                scale, tol = np.abs(w) * size * inv + np.abs(b), unit
        kind = {"half": name == "float16", "bfloat": name == "bfloat16"}
        expect(c, 3, want, scale, tol, **kind)
        if oracle:
            got = mx.fast.layer_norm(*(mx.array(v.astype(F32)).astype(mlx_type) for v in (x, w, b)), eps)
            expect(c, 3, np.array(got.astype(mx.float32)), scale, tol, oracle="mlx", **kind)

    def backward(kernel, rows, n, ws=1, has_w=True, eps=1e-5, inplace=None, x=None, group=None, note="", oracle=False):
        x, g = normal(rng, rows, n) if x is None else x, normal(rng, rows, n)
        w = normal(rng, n if ws else 1)
        device = {0: x, 1: strided(w, [ws or 1]), 2: g, 3: out(rows * n)}
        if has_w:
            device[4] = out(rows * n)
        if inplace:
            device[inplace[0]] = same(inplace[1])
        c = case(
            kernel,
            f"{rows}x{n} w_stride {ws} has_w {has_w}" + (" %d in place of %d" % inplace if inplace else "") + note,
            device,
            {5: f32(eps), 6: u32(n), 7: u32(ws)},
            groups=(rows, 1, 1),
            group=(group or 32 * -(-n // 256), 1, 1),
            flags={20: has_w},
        )
        w = np.ascontiguousarray(spread(w, n, ws))
        centred, inv, size = parts(x, eps)
        wg, norm = w.astype(F64) * g, centred * inv
        mean_wg, mean_wgc = (np.mean(v, -1, keepdims=True) for v in (wg, wg * centred))
        sizes = (np.mean(np.abs(v), -1, keepdims=True) for v in (wg, wg * size))
        gx = inv * (wg - mean_wg) - norm * mean_wgc * inv**2
        size_wg, size_wgc = sizes
        scale = inv * (np.abs(wg) + size_wg) + size * inv * size_wgc * inv**2
        expect(c, 3, gx, scale)
        if has_w:
            expect(c, 4, g * norm, np.abs(g) * size * inv)
        if oracle:
            _, got = mx.vjp(lambda x: mx.fast.layer_norm(x, mx.array(w), None, eps), [mx.array(x)], [mx.array(g)])
            expect(c, 3, np.array(got[0]), scale, oracle="mlx")

    for t in types:
        forward("layer_norm" + t, 1, 576, oracle=True)
        forward("layer_norm" + t, 3, 577, oracle=True)
        forward("layer_norm" + t, 4, 1)
        forward("layer_norm" + t, 2, 130, inplace=True)
        forward("layer_norm" + t, 2, 37, ws=2, bs=3)
        forward("layer_norm" + t, 2, 37, ws=0)
        forward("layer_norm" + t, 2, 37, bs=0)
        forward("layer_norm_looped" + t, 1, 1300, group=1024, oracle=True)
        forward("layer_norm_looped" + t, 2, 1301, group=64, inplace=True)
    forward("layer_normfloat32", 2, 64, eps=1.0)
    forward("layer_normfloat32", 2, 64, x=np.full((2, 64), 1e-3, F32), note=" constant rows")
    forward("layer_normfloat32", 2, 64, x=100 + normal(rng, 2, 64), note=" far from zero")
    x = normal(rng, 3, 33)
    x[1, 20] = np.nan
    forward("layer_normfloat32", 3, 33, x=x, note=" NaN in one row")

    backward("vjp_layer_normfloat32", 1, 576, oracle=True)
    backward("vjp_layer_normfloat32", 3, 577, oracle=True)
    backward("vjp_layer_normfloat32", 3, 70, has_w=False, oracle=True)
    backward("vjp_layer_normfloat32", 3, 70, ws=0, has_w=False, oracle=True)
    backward("vjp_layer_normfloat32", 4, 1)
    backward("vjp_layer_normfloat32", 2, 37, ws=2)
    backward("vjp_layer_normfloat32", 2, 64, eps=1.0)
    backward("vjp_layer_normfloat32", 2, 64, x=100 + normal(rng, 2, 64), note=" far from zero")
    for pair in ((3, 0), (3, 2), (4, 0), (4, 2)):
        backward("vjp_layer_normfloat32", 3, 130, inplace=pair)
        backward("vjp_layer_norm_loopedfloat32", 2, 300, inplace=pair, group=64)
    backward("vjp_layer_norm_loopedfloat32", 1, 1300, group=1024, oracle=True)
    backward("vjp_layer_norm_loopedfloat32", 2, 1301, group=64, has_w=False)


# ---- sums of columns


def column_sums():
    rng = np.random.default_rng(13)

    def one(rows, n, stride=None):
        stride = stride or n
        x = normal(rng, rows, n)
        for kernel, groups, group, more in (
            ("col_reduce_small_1_reduce_sumfloat32", -(-n // 128), (min(-(-n // 4), 32), min(rows, 8), 1), {}),
            ("col_reduce_looped_1_32_32_reduce_sumfloat32", -(-n // 32), (256, 1, 1), {11: i64(0)}),
        ):
            c = case(
                kernel,
                f"{rows}x{n} stride {stride}",
                {0: strided(x, (stride, 1)), 1: out(n)},
                {2: i64(rows), 3: i64(n), 4: i32(0), 5: i64(0), 6: i32(0), 7: i32(rows), 8: i64(stride), 9: i32(1), 10: i64(1)} | more,
                groups=(groups, 1, 1),
                group=group,
            )
            expect(c, 1, np.sum(x.astype(F64), 0), np.sum(np.abs(x.astype(F64)), 0))
            expect(c, 1, np.array(mx.sum(mx.array(x), axis=0)), np.sum(np.abs(x), 0), oracle="mlx")

    one(1, 1)
    one(1, 200)
    one(7, 37)
    one(31, 129)
    one(33, 300)
    one(500, 3)
    one(9, 20, stride=25)


# ---- products with transposed operands


def transposed():
    rng = np.random.default_rng(14)
    for m, n, k in ((1, 1, 1), (3, 5, 2), (33, 50, 70), (65, 97, 129), (513, 3, 4), (4, 60, 300)):
        for name, xs in (("nn", (m, k)), ("tn", (k, m))):
            x, w = normal(rng, *xs), normal(rng, k, n)
            c = case(
                f"gemm_{name}_float32",
                f"{m}x{n}x{k}",
                {0: x, 1: w, 2: out(m * n)},
                {3: i32(k), 4: i32(n), 5: i32(m)},
                groups=(-(-n // 32), -(-m // 32), 1),
                group=(32, 2, 2),
            )
            left = x.T if name == "tn" else x
            scale = np.abs(left).astype(F64) @ np.abs(w)
            expect(c, 2, left.astype(F64) @ w.astype(F64), scale)
            got = mx.matmul(mx.array(x).T if name == "tn" else mx.array(x), mx.array(w))
            expect(c, 2, np.array(got), scale, oracle="mlx")


def text():
    """The cases as JSON, one a line."""
    versions = f"numpy {np.__version__}" + (f", mlx {mx.__version__}" if mx else "")
    head = '{"made by": "testdata/gen/%s, %s",\n"cases": [\n' % (Path(sys.argv[0]).name, versions)
    return head + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]}\n"


def archive(path):
    """Runs the program of a golden and writes what it makes behind it."""
    remark, marker, rest = path.read_text().partition("-- program.py --\n")
    if not marker:
        sys.exit(f"{path} has no line -- program.py --")
    program = re.split(r"^-- .* --\n", rest, maxsplit=1, flags=re.M)[0]
    exec(compile(program, f"{path}: program.py", "exec"), globals())
    arrays = base64.encodebytes(bytes(blob)).decode()
    path.write_text(f"{remark}{marker}{program}-- cases.json --\n{text()}-- arrays.base64 --\n{arrays}")
    print(f"{len(cases)} cases, {len(blob)} bytes")


def main(name, families):
    target = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / "kernels")
    if mx:
        mx.set_default_device(mx.cpu)
    if target.suffix == ".txtar":
        return archive(target)
    for family in families:
        family()
    target.mkdir(parents=True, exist_ok=True)
    (target / f"{name}.json").write_text(text())
    (target / f"{name}.bin").write_bytes(blob)
    print(f"{len(cases)} cases, {len(blob)} bytes")


if __name__ == "__main__":
    main("cases", (rms, binary, unary, copies, quantized, embed, gemv, rope, sdpa, argmax, halves, layer_norms, column_sums, transposed))
