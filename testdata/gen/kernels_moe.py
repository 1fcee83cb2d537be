"""More calls of CPU kernels with the results they must have: softmax, activations
and what a mixture of experts needs.

    python testdata/gen/kernels_moe.py [OUT]      (OUT: testdata/kernels)

writes OUT/moe.json and OUT/moe.bin, in the form that kernels.py describes.
"""

import math

import mlx.core as mx
import mlx.nn as nn
import numpy as np

import kernels
from kernels import F32, F64, NAN, case, dequantized, expect, f32, i32, i64, normal, out, pack, same, strided, u32

SPECIALS = kernels.SPECIALS
erf = np.vectorize(math.erf)


def softmax():
    rng = np.random.default_rng(101)

    def one(rows, n, x=None, inplace=False, note="", oracle=True):
        looped = n > 4096
        x = 4 * normal(rng, rows, n) if x is None else x
        c = case(
            "looped_softmax_float32" if looped else "block_softmax_float32",
            f"{rows}x{n}" + (" in place" if inplace else "") + note,
            {0: x, 1: same(0) if inplace else out(rows * n)},
            {2: i32(n)},
            groups=(rows, 1, 1),
            group=(1024 if looped else 32 * -(-n // 128), 1, 1),
        )
        with np.errstate(invalid="ignore"):
            e = np.exp(x.astype(F64) - x.max(-1, keepdims=True).astype(F64))
            want = e / e.sum(-1, keepdims=True)
        expect(c, 1, want, np.abs(want) + F64(1e-32))
        if oracle:
            got = np.array(mx.softmax(mx.array(x), axis=-1, precise=True))
            expect(c, 1, got, np.abs(want) + F64(1e-32), oracle="mlx")

    one(1, 1)
    one(3, 8)
    one(2, 577)
    one(2, 128, inplace=True)
    one(2, 4096)
    one(2, 5000)
    one(1, 4097, inplace=True)
    one(2, 64, x=np.full((2, 64), 88, F32), note=" equal")
    x = 100 * normal(rng, 4, 33)
    one(4, 33, x=x, note=" far apart")
    x = x.copy()
    x[0, 3], x[1, 4], x[2, 5:9], x[3, :] = np.nan, np.inf, -np.inf, -np.inf
    one(4, 33, x=x, note=" with NaN, inf, -inf and nothing", oracle=False)


def activations():
    rng = np.random.default_rng(102)
    c = math.sqrt(2 / math.pi)

    def gelu(x):
        return 0.5 * x * (1 + np.tanh(c * x * (1 + 0.044715 * x * x)))

    def gelu_erf(x):
        return x * (1 + erf(x / math.sqrt(2))) / 2

    for kernel, f, mlx_f in (("v_Gelufloat32float32", gelu, nn.gelu_approx), ("v_GeluErffloat32float32", gelu_erf, nn.gelu)):
        for n in (1, 7, 2051):
            x = 3 * normal(rng, n)
            k = case(kernel, f"{n}", {0: x, 1: out(n)}, {2: u32(n)}, threads=(n, 1, 1))
            # 1 + tanh and 1 + erf cancel where x is far below 0: what is lost there
            # is a part of x.
            want = f(x.astype(F64))
            expect(k, 1, want, np.abs(x), tol=4e-7)
            expect(k, 1, np.array(mlx_f(mx.array(x))), np.abs(x), tol=1e-6, oracle="mlx")
        x = np.array([0.0, -0.0, np.inf, np.nan, 1e-38, 40, -40, 3e38], F32)
        k = case(kernel, "specials in place", {0: x, 1: same(0)}, {2: u32(x.size)}, threads=(x.size, 1, 1))
        want = np.array([0.0, -0.0, np.inf, np.nan, 5e-39, 40, -0.0, 3e38], F32)
        if f is gelu_erf:
            want[-1] = np.inf  # x·2 comes before the half, as in MLX
        expect(k, 1, want, np.abs(x), tol=1e-6)
    for cap in (30.0, 0.5):
        x = 20 * normal(rng, 1029)
        x[:5] = 0, -0.0, np.inf, -np.inf, np.nan
        k = case("v_Softcapfloat32float32", f"cap {cap}", {0: x, 1: out(x.size)}, {2: u32(x.size), 3: f32(cap)}, threads=(x.size, 1, 1))
        want = cap * np.tanh(x.astype(F64) / cap)
        expect(k, 1, want, np.abs(want), tol=1e-6)
        expect(k, 1, np.array(mx.tanh(mx.array(x) / cap) * cap), np.abs(want), tol=2e-6, oracle="mlx")


def topk():
    rng = np.random.default_rng(103)

    def one(rows, n, k, x=None, note=""):
        x = normal(rng, rows, n) if x is None else x
        c = case(
            "topk_float32",
            f"{k} of {rows}x{n}{note}",
            {0: x, 1: out(rows * k, np.uint32), 2: out(rows * k)},
            {3: u32(n), 4: u32(k)},
            groups=(rows, 1, 1),
            group=(min(1024, 32 * -(-n // 32)), 1, 1),
        )
        # Greatest first, equal ones by index, NaN (which sorts last) behind all.
        ids = np.argsort(-x.astype(F64), axis=-1, kind="stable")[:, :k]
        expect(c, 1, ids.astype(np.uint32))
        expect(c, 2, np.take_along_axis(x, ids, -1))
        if not np.isnan(x).any() and len(np.unique(x)) == x.size:
            got = np.array(mx.argsort(-mx.array(x), axis=-1)[:, :k]).astype(np.uint32)
            expect(c, 1, got, oracle="mlx")

    one(1, 1, 1)
    one(3, 8, 2)
    one(5, 128, 8)
    one(2, 33, 33)
    one(1, 1500, 6)
    one(4, 16, 5, x=rng.integers(0, 3, (4, 16)).astype(F32), note=" with ties")
    one(2, 12, 12, x=np.stack([SPECIALS, SPECIALS[::-1]]), note=" specials")
    one(2, 7, 7, x=np.full((2, 7), NAN), note=" of NaN")


def gathered():
    rng = np.random.default_rng(104)

    def quantized(bits, group, e, n, k, xs, m, batch, lhs, rhs, note="", bad=False):
        fast = n % 8 == 0 and k % (2048 // bits) == 0
        codes = rng.integers(0, 1 << bits, (e, n, k), np.uint8)
        w = np.stack([pack(c, bits) for c in codes])
        s = (normal(rng, e, n, k // group) / (1 << bits)).astype(F32)
        b = normal(rng, e, n, k // group)
        x = normal(rng, xs, m, k)
        li = rng.integers(0, xs, batch, np.uint32) if lhs is None else lhs
        ri = rng.integers(0, e, batch, np.uint32) if rhs is None else rhs
        words = lambda *v: b"".join(i32(a) for a in v)
        c = case(
            f"affine_gather_qmv{'_fast' if fast else ''}_float_gs_{group}_b_{bits}",
            f"{batch} of {e}x{n}x{k}, {m} vectors{note}",
            {0: w, 1: s, 2: b, 3: x, 4: strided(li, [st // 4 for st in li.strides]), 5: ri, 6: out(int(np.prod(batch)) * m * n)},
            {7: i32(k), 8: i32(n), 9: i32(1), 10: words(xs, m, k), 11: i64(m * k, k, 1), 12: i32(1), 13: words(e, n, k * bits // 32)}
            | {14: i64(n * k * bits // 32), 15: i64(n * k // group), 16: i64(n * k // group), 17: i32(len(batch)), 18: words(*batch)}
            | {19: i64(*[st // 4 for st in li.strides]), 20: i64(*[st // 4 for st in ri.strides])},
            groups=(m, -(-n // 8), int(np.prod(batch))),
            group=(32, 2, 1),
        )
        full = np.stack([dequantized(w[i], s[i], b[i], bits, group) for i in range(e)]).astype(F64)
        want, scale = np.full((*batch, m, n), np.nan), np.ones((*batch, m, n))
        for at in np.ndindex(*batch):
            if li[at] < xs and ri[at] < e:
                v = x[li[at]].astype(F64)
                want[at] = v @ full[ri[at]].T
                scale[at] = np.abs(v) @ (np.abs(s[ri[at]]).repeat(group, -1) * codes[ri[at]] + np.abs(b[ri[at]]).repeat(group, -1)).T
        expect(c, 6, want, scale)
        if not bad:
            got = mx.gather_qmm(
                mx.array(x), mx.array(w), mx.array(s), mx.array(b), mx.array(np.ascontiguousarray(li)), mx.array(np.ascontiguousarray(ri)),
                transpose=True, group_size=group, bits=bits,
            )
            expect(c, 6, np.array(got), scale, oracle="mlx")

    for bits in (4, 8):
        for group in (32, 64):
            quantized(bits, group, 4, 13, 192, 3, 1, (5,), None, None)
            quantized(bits, group, 3, 16, 512, 2, 2, (3, 2), None, None)
    tokens = np.broadcast_to(np.arange(3, dtype=np.uint32)[:, None], (3, 2))  # strides (1, 0)
    quantized(4, 32, 5, 24, 96, 3, 1, (3, 2), tokens, None, note=", tokens by experts")
    quantized(4, 64, 3, 9, 64, 4, 1, (4,), np.array([0, 4, 2, 1], np.uint32), np.array([2, 1, 3, 0xFFFFFFFF], np.uint32), note=", outside", bad=True)

    def rows_of(bits, group, rows, slots, shared, note=""):
        e, n, k = 4, 19, 3 * group
        codes = rng.integers(0, 1 << bits, (e, n, k), np.uint8)
        w = np.stack([pack(c, bits) for c in codes])
        s = (normal(rng, e, n, k // group) / (1 << bits)).astype(F32)
        b = normal(rng, e, n, k // group)
        x = normal(rng, rows, 1 if shared else slots, k)
        ids = rng.integers(0, e, (rows, slots), np.uint32)
        if note:
            ids[0, 0], ids[-1, -1] = e, 0xFFFFFFFF
        c = case(
            f"gather_qmv_float_gs_{group}_b_{bits}",
            f"{rows}x{slots} of {e}x{n}x{k}{', a row for all' if shared else ''}{note}",
            {0: w, 1: s, 2: b, 3: x, 4: ids, 5: out(rows * slots * n)},
            {6: i32(k), 7: i32(n), 8: i32(e), 9: i64(k if shared else slots * k, 0 if shared else k)},
            groups=(-(-n // 8), slots, rows),
            group=(32, 2, 1),
        )
        full = np.stack([dequantized(w[i], s[i], b[i], bits, group) for i in range(e)]).astype(F64)
        size = np.stack([np.abs(s[i]).repeat(group, -1) * codes[i] + np.abs(b[i]).repeat(group, -1) for i in range(e)])
        at = np.minimum(ids, e - 1)
        v = np.broadcast_to(x, (rows, slots, k)).astype(F64)
        want = np.where((ids < e)[..., None], np.einsum("rsnk,rsk->rsn", full[at], v), np.nan)
        expect(c, 5, want, np.einsum("rsnk,rsk->rsn", size[at], np.abs(v)))

    for bits in (4, 8):
        for group in (32, 64):
            rows_of(bits, group, 2, 3, True)
            rows_of(bits, group, 3, 2, False, note=", outside")

    for half in (False, True):
        for rows, slots, shared, note in ((1, 2, True, ""), (3, 2, False, ""), (4, 3, True, ", outside")):
            e, n, k = 5, 21, 197
            mat = normal(rng, e, n, k)
            mat = mat.astype(np.float16) if half else mat
            x = normal(rng, rows, 1 if shared else slots, k)
            ids = rng.integers(0, e, (rows, slots), np.uint32)
            if note:
                ids[1, 0], ids[3, 2] = e, 0xFFFFFFFF
            c = case(
                "gather_gemv_float16_float32" if half else "gather_gemv_float32",
                f"{rows}x{slots} of {e}x{n}x{k}{', a row for all' if shared else ''}{note}",
                {0: mat, 1: x, 2: ids, 3: out(rows * slots * n)},
                {4: i32(k), 5: i32(n), 6: i32(e), 7: i64(k if shared else slots * k, 0 if shared else k)},
                groups=(-(-n // 8), slots, rows),
                group=(32, 2, 1),
            )
            ok = (ids < e)[..., None]
            picked = mat[np.minimum(ids, e - 1)].astype(F64)
            v = np.broadcast_to(x, (rows, slots, k)).astype(F64)
            want = np.where(ok, np.einsum("rsnk,rsk->rsn", picked, v), np.nan)
            scale = np.einsum("rsnk,rsk->rsn", np.abs(picked), np.abs(v))
            expect(c, 3, want, scale)
            if not half and not note:
                of_rows = np.arange(rows * (1 if shared else slots), dtype=np.uint32).reshape(rows, -1)
                got = mx.gather_mm(
                    mx.array(x.reshape(-1, 1, k)), mx.swapaxes(mx.array(mat), 1, 2), mx.array(np.broadcast_to(of_rows, (rows, slots)).copy()), mx.array(ids)
                )
                expect(c, 3, np.array(got).reshape(rows, slots, n), scale, oracle="mlx")


def weighted_sum():
    rng = np.random.default_rng(105)
    for rows, count, width in ((1, 1, 5), (3, 2, 577), (2, 8, 64)):
        x, w = normal(rng, rows, count, width), normal(rng, rows, count)
        c = case("weighted_sum_float32", f"{rows}x{count}x{width}", {0: x, 1: w, 2: out(rows * width)}, {3: i32(count)}, threads=(width, rows, 1))
        scale = np.einsum("rji,rj->ri", np.abs(x).astype(F64), np.abs(w).astype(F64))
        expect(c, 2, np.einsum("rji,rj->ri", x.astype(F64), w.astype(F64)), scale)
        expect(c, 2, np.array((mx.array(x) * mx.array(w)[..., None]).sum(axis=-2)), scale, oracle="mlx")


if __name__ == "__main__":
    kernels.main("moe", (softmax, activations, topk, gathered, weighted_sum))
