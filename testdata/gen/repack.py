"""Blocks of GGUF quantizations with their values, by the gguf package's own dequantizer.

    python testdata/gen/repack.py testdata/repack.json

Each case: a type, random and extreme blocks as hex, and the f32 values of every
element as little-endian hex. 16 blocks of 32 elements a type.
"""
import json
import sys

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import quants

rng = np.random.default_rng(20261121)


def halves(n):
    """Scales as models have them, and every odd f16: zeros, subnormals, the greatest."""
    v = (rng.standard_normal(n) * 0.1).astype(np.float16)
    extreme = np.array([0.0, -0.0, 6e-8, -6e-8, 6.1e-5, 65504, -65504, 1 / 3], np.float16)
    v[: len(extreme)] = extreme
    return v


cases = []
for t, head, body in [(T.Q4_0, 1, 16), (T.Q4_1, 2, 16), (T.Q8_0, 1, 32)]:
    n = 16
    h = np.stack([np.roll(halves(n), 3 * i) for i in range(head)], 1).view(np.uint8).reshape(n, 2 * head)
    q = rng.integers(0, 256, (n, body), dtype=np.uint8)
    q[0], q[1] = 0, 255
    blocks = np.concatenate([h, q], 1)
    values = quants.dequantize(blocks.reshape(1, -1), t).reshape(-1)
    assert values.dtype == np.float32 and values.size == 32 * n
    cases.append({"type": t.name, "blocks": blocks.tobytes().hex(), "values": values.astype("<f4").tobytes().hex()})
json.dump(cases, open(sys.argv[1], "w"), indent=1)
