"""Attention with heads for which MLX has no fused kernel.

    python testdata/gen/attention.py testdata/attention.json

Each of the cases has its shapes, a sample of the results in float64 by NumPy (exact, as f32), and the same elements as MLX
computes them on its CPU back end in the type (mlx): base64 of little-endian numbers. Inputs are numbers of eight bits, which
all types have, made by `made`: q is input 0, k 1, v 2, the mask 3, the sinks 4. Element i of the sample is element i·step of
the result [batch, heads, queries, values]. Versions: requirements.txt.
"""

import base64
import json
import sys

import mlx.core as mx
import numpy as np

TYPES = {"f32": mx.float32, "f16": mx.float16, "bf16": mx.bfloat16}
SAMPLE = 96


def mixed(number, count):
    """Hashes of 32 bits."""
    h = np.arange(count, dtype=np.uint32) + np.uint32(number * 1000003)
    h ^= h >> np.uint32(16)
    h *= np.uint32(0x7FEB352D)
    h ^= h >> np.uint32(15)
    h *= np.uint32(0x846CA68B)
    return h ^ (h >> np.uint32(16))


def made(number, shape):
    return ((mixed(number, int(np.prod(shape))) >> np.uint32(24)).astype(np.float64) - 128).reshape(shape) / 64


def truths(number, shape):
    """One of two is true, and the first of each row."""
    t = (mixed(number, int(np.prod(shape))) >> np.uint32(31)).astype(bool).reshape(shape)
    t[..., 0] = True
    return t


def exactly(q, k, v, mask, sinks, scale, causal):
    shared = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, shared, 1), np.repeat(v, shared, 1)
    scores = scale * (q @ k.swapaxes(-1, -2))
    queries, keys = scores.shape[-2:]
    if causal:
        mask = np.arange(keys)[None, :] <= np.arange(keys - queries, keys)[:, None]
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if sinks is not None:
        sink = np.broadcast_to(sinks[None, :, None, None], scores.shape[:-1] + (1,))
        scores = np.concatenate([sink, scores], -1)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return (weights[..., 1:] if sinks is not None else weights) @ v


def case(kind, width, values, batch, heads, key_heads, queries, keys, mask, causal, sinks):
    q, k, v = made(0, (batch, heads, queries, width)), made(1, (batch, key_heads, keys, width)), made(2, (batch, key_heads, keys, values))
    shape = {"": None, "bool": (queries, keys), "batches": (batch, 1, queries, keys), "added": (batch, heads, queries, keys)}[mask]
    m = None if shape is None else made(3, shape) if mask == "added" else truths(3, shape)
    s = made(4, (heads,)) if sinks else None
    scale = float(np.float32(width**-0.5))
    of = lambda a: None if a is None else mx.array(a) if a.dtype == bool else mx.array(a.astype(np.float32)).astype(TYPES[kind])
    got = mx.fast.scaled_dot_product_attention(of(q), of(k), of(v), scale=scale, mask="causal" if causal else of(m), sinks=of(s))
    got = np.array(got.astype(mx.float32)).ravel()
    want = exactly(q, k, v, m, s, scale, causal).ravel()
    step = max(1, want.size // SAMPLE) | 1
    raw = lambda a: base64.b64encode(a[::step].astype("<f4").tobytes()).decode()
    return {
        "type": kind, "width": width, "values": values, "batch": batch, "heads": heads, "key_heads": key_heads, "queries": queries,
        "keys": keys, "mask": mask, "causal": causal, "sinks": sinks, "step": step, "exact": raw(want), "mlx": raw(got),
    }


def cases():
    for kind in TYPES:
        for width in (8, 32, 40, 48, 112, 160, 512):
            for form in (
                (1, 4, 4, 1, 19, "", False, False),
                (2, 4, 2, 1, 19, "batches", False, True),
                (2, 4, 2, 11, 13, "", True, False),
                (2, 4, 4, 11, 13, "bool", False, False),
                (2, 6, 2, 5, 33, "added", False, True),
            ):
                yield case(kind, width, width, *form)
        yield case(kind, 48, 24, 2, 4, 1, 34, 40, "batches", False, False)
        yield case(kind, 40, 40, 1, 1, 1, 40, 200, "", True, True)
        yield case(kind, 160, 160, 1, 1, 1, 1, 1, "", False, False)


if __name__ == "__main__":
    with open(sys.argv[1], "w") as f:
        json.dump({"cases": list(cases())}, f, indent=0)
        f.write("\n")
