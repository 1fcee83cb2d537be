"""Calls of the CPU kernels for GGML's block formats with the results they must have.

    python testdata/gen/kernels_ggml.py [OUT]      (OUT: testdata/kernels)

writes OUT/ggml.json and OUT/ggml.bin, in the form that kernels.py describes. The
weights are what the gguf package makes of the blocks, which are random bytes with
ordinary scales: every code occurs, and every scale of a group. The products are
NumPy's, in float64; rows of embeddings are the package's, to the bit.
"""

import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import dequantize

import kernels
from kernels import F32, F64, bf16, bf16_value, case, expect, i32, i64, normal, out

# format: weights and bytes of a block, places of its f16 numbers, bytes of codes if weights have a bias: with codes of 0
# they are their biases. mxfp4 has no f16: its first byte is an exponent.
FORMATS = {
    "q4_0": (32, 18, (0,), None),
    "q8_0": (32, 34, (0,), None),
    "q6_K": (256, 210, (208,), None),
    "q4_1": (32, 20, (0, 2), ((4, 20),)),
    "q5_0": (32, 22, (0,), None),
    "q5_1": (32, 24, (0, 2), ((4, 24),)),
    "iq4_nl": (32, 18, (0,), None),
    "mxfp4": (32, 17, (), None),
    "q2_K": (256, 84, (80, 82), ((16, 80),)),
    "q3_K": (256, 110, (108,), None),
    "q4_K": (256, 144, (0, 2), ((16, 144),)),
    "q5_K": (256, 176, (0, 2), ((16, 176),)),
}
FIRST = ("q4_0", "q8_0", "q6_K")


def halves(d):
    return np.asarray(d, np.float16)[..., None].view(np.uint8)


def blocks(rng, fmt, *shape):
    """Random blocks for a matrix of this shape, and its weights in float32."""
    weights, size, scales, _ = FORMATS[fmt]
    raw = rng.integers(0, 256, (*shape[:-1], shape[-1] // weights, size), dtype=np.uint8)
    for at in scales:
        raw[..., at : at + 2] = halves(rng.standard_normal(raw.shape[:-1]) / 16)
    if fmt == "mxfp4":
        raw[..., 0] = rng.integers(115, 130, raw.shape[:-1])
    return raw, values(fmt, raw, shape)


def values(fmt, raw, shape):
    return dequantize(raw.reshape(-1), GGMLQuantizationType[fmt.upper()]).reshape(shape)


def sizes(fmt, raw, w):
    """The sum of the sizes of what each weight is the sum of."""
    codes = FORMATS[fmt][3]
    if codes is None:
        return np.abs(w).astype(F64)
    raw = raw.copy()
    for a, b in codes:
        raw[..., a:b] = 0
    bias = values(fmt, raw, w.shape).astype(F64)
    return np.abs(w - bias) + np.abs(bias)


def products():
    rng = np.random.default_rng(201)
    for fmt, (weights, size, scales, _) in FORMATS.items():
        first = ((1, 1, 1), (1, 9, 3), (3, 8, 2), (2, 37, 5), (7, 3, 4))
        for m, n, chunks in first if fmt in FIRST else ((1, 9, 3), (2, 11, 2)):
            k = weights * chunks
            raw, w = blocks(rng, fmt, n, k)
            if n == 9:  # extreme scales: zeros, subnormal, greatest; and what is not a number
                for at in scales:
                    for row, d in enumerate((0.0, -0.0, 2**-24, -(2**-14), 65504.0, np.nan)):
                        raw[row, :, at : at + 2] = halves([d])
                if fmt == "mxfp4":
                    raw[:6, :, 0] = np.array((0, 1, 2, 127, 200, 240), np.uint8)[:, None]
                w = values(fmt, raw, (n, k))
            x = normal(rng, m, k)
            if n == 9 and fmt == "mxfp4":
                x /= 256  # so that products fit
            c = case(
                f"ggml_mul_mv_{fmt}_f32",
                f"{m}x{n}x{k}",
                {0: raw, 1: x, 2: out(m * n)},
                {3: i32(k), 4: i32(n)},
                groups=(-(-n // 8), m, 1),
                group=(32, 2, 1),
            )
            expect(c, 2, x.astype(F64) @ w.T.astype(F64), np.abs(x).astype(F64) @ sizes(fmt, raw, w).T, tol=1e-6)


def gathered():
    rng = np.random.default_rng(202)
    for fmt, (weights, *_) in FORMATS.items():
        first = ((1, 1, 1, 1, 1, True), (2, 2, 4, 9, 3, True), (3, 2, 5, 17, 2, False))
        for rows, slots, e, n, chunks, shared in first if fmt in FIRST else ((3, 2, 3, 9, 1, True),):
            k = weights * chunks
            raw, w = blocks(rng, fmt, e, n, k)
            x = normal(rng, rows, 1 if shared else slots, k)
            ids = rng.integers(0, e, (rows, slots), np.uint32)
            if rows == 3:
                ids[1, 0], ids[2, 1] = e, 2**32 - 1  # outside
            c = case(
                f"ggml_mul_mv_id_{fmt}_f32",
                f"{rows}x{slots} of {e}x{n}x{k}{', a row for all' if shared else ''}",
                {0: raw, 1: x, 2: ids, 3: out(rows * slots * n)},
                {4: i32(k), 5: i32(n), 6: i32(e), 7: i64(k if shared else slots * k, 0 if shared else k)},
                groups=(-(-n // 8), slots, rows),
                group=(32, 2, 1),
            )
            at = np.minimum(ids, e - 1)
            v = np.broadcast_to(x, (rows, slots, k)).astype(F64)
            want = np.where((ids < e)[..., None], np.einsum("rsnk,rsk->rsn", w[at].astype(F64), v), np.nan)
            expect(c, 3, want, np.einsum("rsnk,rsk->rsn", sizes(fmt, raw, w)[at], np.abs(v)), tol=1e-6)


def many():
    rng = np.random.default_rng(203)
    xs = {(m, k): normal(rng, m, k) for m in (3, 33) for k in (96, 256)}
    for fmt, (weights, _, scales, _) in FORMATS.items():
        m, n, k = (33, 35, max(96, weights)) if fmt == "q4_0" else (3, 9, max(96, weights))
        raw, w = blocks(rng, fmt, n, k)
        x = xs[m, k]
        c = case(
            f"ggml_mul_mm_{fmt}_f32",
            f"{m}x{n}x{k}",
            {0: x, 1: raw, 2: out(m * n)},
            {3: i32(k), 4: i32(n), 5: i32(m)},
            groups=(-(-n // 32), -(-m // 32), 1),
            group=(32, 2, 2),
        )
        expect(c, 2, x.astype(F64) @ w.T.astype(F64), np.abs(x).astype(F64) @ sizes(fmt, raw, w).T, tol=1e-6)

        raw = raw.copy()
        for row, d in enumerate((-0.0, 2**-24, 65504.0, np.inf, np.nan)):
            for at in scales:
                raw[row, :, at : at + 2] = halves([d])
        if fmt == "mxfp4":
            raw[:5, :, 0] = np.array((0, 1, 2, 254, 255), np.uint8)[:, None]
        ids = np.array([7, -1, 0, 3, 1, 2, n, 4], np.int32)
        with np.errstate(all="ignore"):
            w = values(fmt, raw, (n, k))
        c = case(
            f"ggml_get_rows_{fmt}_f32",
            f"{len(ids)} of {n}x{k}",
            {0: ids, 1: raw, 2: out(len(ids) * k)},
            {3: i32(k), 4: i32(n)},
            threads=(k, len(ids), 1),
            group=(32, 1, 1),
        )
        inside = (ids >= 0) & (ids < n)
        want = np.where(inside[:, None], w[np.clip(ids, 0, n - 1)], np.nan)
        expect(c, 2, np.where(np.isnan(want), np.nan, want).astype(F32))


def narrow():
    """The same with vectors and results of 16 bits, which are rounded once."""
    rng = np.random.default_rng(204)
    xs = {k: normal(rng, 5, k) for k in (64, 256)}
    for fmt, (weights, _, scales, _) in FORMATS.items():
        e, n, k = 2, 9, max(64, weights)
        raw, w = blocks(rng, fmt, e, n, k)
        special = raw[0].copy()  # the table of embeddings
        for row, d in enumerate((-0.0, 2**-24, 65504.0, np.inf, np.nan)):
            for at in scales:
                special[row, :, at : at + 2] = halves([d])
        if fmt == "mxfp4":
            special[:5, :, 0] = np.array((0, 1, 2, 254, 255), np.uint8)[:, None]
        with np.errstate(all="ignore"):
            table = values(fmt, special, (n, k))
        ids = np.array([[1, 0], [e, 1]], np.uint32)
        at = np.minimum(ids, e - 1)
        rows = np.array([7, -1, 0, 3, 1, 2, n, 4], np.int32)
        for name, rounded, value, unit in (
            ("f16", lambda v: v.astype(np.float16), lambda v: v.astype(F32), 2.0**-11),
            ("bf16", bf16, bf16_value, 2.0**-8),
        ):
            x = rounded(xs[k])
            v = value(x).astype(F64)

            def near(c, slot, want, scale):
                expect(c, slot, want, 1e-6 * scale + unit * np.abs(want), tol=1, half=True, bfloat=name == "bf16")

            c = case(
                f"ggml_mul_mv_{fmt}_{name}",
                f"3x{n}x{k}",
                {0: raw[0], 1: x[:3], 2: out(3 * n, x.dtype)},
                {3: i32(k), 4: i32(n)},
                groups=(-(-n // 8), 3, 1),
                group=(32, 2, 1),
            )
            near(c, 2, v[:3] @ w[0].T.astype(F64), np.abs(v[:3]) @ sizes(fmt, raw[0], w[0]).T)
            c = case(
                f"ggml_mul_mm_{fmt}_{name}",
                f"5x{n}x{k}",
                {0: x, 1: raw[0], 2: out(5 * n, x.dtype)},
                {3: i32(k), 4: i32(n), 5: i32(5)},
                groups=(-(-n // 32), 1, 1),
                group=(32, 2, 2),
            )
            near(c, 2, v @ w[0].T.astype(F64), np.abs(v) @ sizes(fmt, raw[0], w[0]).T)
            c = case(
                f"ggml_mul_mv_id_{fmt}_{name}",
                f"2x2 of {e}x{n}x{k}",
                {0: raw, 1: x[:4], 2: ids, 3: out(4 * n, x.dtype)},
                {4: i32(k), 5: i32(n), 6: i32(e), 7: i64(2 * k, k)},
                groups=(-(-n // 8), 2, 2),
                group=(32, 2, 1),
            )
            own = v[:4].reshape(2, 2, k)
            want = np.where((ids < e)[..., None], np.einsum("rsnk,rsk->rsn", w[at].astype(F64), own), np.nan)
            near(c, 3, want, np.einsum("rsnk,rsk->rsn", sizes(fmt, raw, w)[at], np.abs(own)))
            c = case(
                f"ggml_get_rows_{fmt}_{name}",
                f"{len(rows)} of {n}x{k}",
                {0: rows, 1: special, 2: out(len(rows) * k, x.dtype)},
                {3: i32(k), 4: i32(n)},
                threads=(k, len(rows), 1),
                group=(32, 1, 1),
            )
            inside = (rows >= 0) & (rows < n)
            want = np.where(inside[:, None], table[np.clip(rows, 0, n - 1)], np.nan)
            with np.errstate(over="ignore"):
                bits = rounded(np.where(np.isnan(want), 0, want))
            nan = np.uint16(0x7FC0) if name == "bf16" else np.float16(np.nan)
            expect(c, 2, np.where(np.isnan(want), nan, bits), half=True, bfloat=name == "bf16")


def silu_mul():
    """silu(gate)·up of the products with two matrices."""
    rng = np.random.default_rng(205)
    for fmt, (weights, *_) in FORMATS.items():
        m, n, k = 2, 9, max(64, weights)
        gate, wg = blocks(rng, fmt, n, k)
        up, wu = blocks(rng, fmt, n, k)
        x = (normal(rng, m, k) * (2 / np.sqrt(k * np.mean(wg.astype(F64) ** 2)))).astype(F32)  # so that sigmoids are not all 0 or 1
        for name, rounded, value, unit, least in (
            ("f32", lambda v: v, lambda v: v, 2.0**-24, 0),
            ("f16", lambda v: v.astype(np.float16), lambda v: v.astype(F32), 2.0**-11, 2.0**-25),
            ("bf16", bf16, bf16_value, 2.0**-8, 0),
        ):
            typed = rounded(x)
            v = value(typed).astype(F64)
            g, u = v @ wg.T.astype(F64), v @ wu.T.astype(F64)
            sigmoid = 1 / (1 + np.exp(-g))
            want = g * sigmoid * u
            # What the products are off: sums in f32 and, where that is the type, a rounding to it. The slope of silu is at most 1.1.
            # In bf16 a sigmoid has four roundings, of numbers up to 1. What is rounded to a subnormal number is off by up to least.
            off_g, off_u = (1e-6 * np.abs(v) @ sizes(fmt, raw, w).T + unit * np.abs(p) + least for raw, w, p in ((gate, wg, g), (up, wu, u)))
            scale = 1.1 * off_g * np.abs(u) + np.abs(g * sigmoid) * off_u + off_g * off_u
            scale += 3 * unit * np.abs(want) + 4 * unit * np.abs(g * u) + least * (1 + np.abs(u) + np.abs(g * u))
            typ = {"f32": F32, "f16": np.float16, "bf16": np.uint16}[name]
            c = case(
                f"ggml_mul_mv_silu_mul_{fmt}_{name}",
                f"{m}x{n}x{k}",
                {0: gate, 1: up, 2: typed, 3: out(m * n, typ)},
                {4: i32(k), 5: i32(n)},
                groups=(-(-n // 8), m, 1),
                group=(32, 2, 1),
            )
            expect(c, 3, want, scale, tol=1, half=name != "f32", bfloat=name == "bf16")


if __name__ == "__main__":
    kernels.main("ggml", (products, gathered, many, narrow, silu_mul))
