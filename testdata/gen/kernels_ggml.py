"""Calls of the CPU kernels for GGML's block formats with the results they must have.

    python testdata/gen/kernels_ggml.py [OUT]      (OUT: testdata/kernels)

writes OUT/ggml.json and OUT/ggml.bin, in the form that kernels.py describes. The
weights are what the gguf package makes of the blocks, which are random bytes with
ordinary scales: every code occurs, and every scale of q6_K. The products are
NumPy's, in float64.
"""

import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import dequantize

import kernels
from kernels import F32, F64, case, expect, i32, i64, normal, out

# format: weights and bytes of a block, place of its scale
FORMATS = {"q4_0": (32, 18, 0), "q8_0": (32, 34, 0), "q6_K": (256, 210, 208)}


def blocks(rng, fmt, *shape):
    """Random blocks for a matrix of this shape, and its weights in float32."""
    weights, size, at = FORMATS[fmt]
    raw = rng.integers(0, 256, (*shape[:-1], shape[-1] // weights, size), dtype=np.uint8)
    d = (rng.standard_normal(raw.shape[:-1]) / 16).astype(np.float16)
    raw[..., at : at + 2] = d[..., None].view(np.uint8)
    return raw, values(fmt, raw, shape)


def values(fmt, raw, shape):
    return dequantize(raw.reshape(-1), GGMLQuantizationType[fmt.upper()]).reshape(shape)


def products():
    rng = np.random.default_rng(201)
    for fmt, (weights, size, at) in FORMATS.items():
        for m, n, chunks in ((1, 1, 1), (1, 9, 3), (3, 8, 2), (2, 37, 5), (7, 3, 4)):
            k = weights * chunks
            raw, w = blocks(rng, fmt, n, k)
            if n == 9:  # extreme scales: zeros, subnormal, greatest; and what is not a number
                for row, d in enumerate((0.0, -0.0, 2**-24, -(2**-14), 65504.0, np.nan)):
                    raw[row, :, at : at + 2] = np.array([d], np.float16).view(np.uint8)
                w = values(fmt, raw, (n, k))
            x = normal(rng, m, k)
            c = case(
                f"ggml_mul_mv_{fmt}_f32",
                f"{m}x{n}x{k}",
                {0: raw, 1: x, 2: out(m * n)},
                {3: i32(k), 4: i32(n)},
                groups=(-(-n // 8), m, 1),
                group=(32, 2, 1),
            )
            expect(c, 2, x.astype(F64) @ w.T.astype(F64), np.abs(x).astype(F64) @ np.abs(w.T).astype(F64), tol=1e-6)


def gathered():
    rng = np.random.default_rng(202)
    for fmt, (weights, _, _) in FORMATS.items():
        for rows, slots, e, n, chunks, shared in ((1, 1, 1, 1, 1, True), (2, 2, 4, 9, 3, True), (3, 2, 5, 17, 2, False)):
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
            picked = w[np.minimum(ids, e - 1)].astype(F64)
            v = np.broadcast_to(x, (rows, slots, k)).astype(F64)
            want = np.where((ids < e)[..., None], np.einsum("rsnk,rsk->rsn", picked, v), np.nan)
            expect(c, 3, want, np.einsum("rsnk,rsk->rsn", np.abs(picked), np.abs(v)), tol=1e-6)


if __name__ == "__main__":
    kernels.main("ggml", (products, gathered))
