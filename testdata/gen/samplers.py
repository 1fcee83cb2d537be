"""Writes testdata/tokenizer/samplers.json: which candidates llama.cpp's samplers leave, and with which probabilities.

    python testdata/gen/samplers.py testdata/tokenizer/samplers.json

The chain is llama.cpp's default: penalties, top-k, top-p, min-p, temperature, and a draw, which makes probabilities of
the logits that are left. See README.md beside this file for the format.
"""

import ctypes
import json
import random
import struct
import sys

import llama_cpp as L


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def survivors(logits, before, c):
    """The candidates that are left, most likely first, with their probabilities."""
    n = len(logits)
    data = (L.llama_token_data * n)(*[L.llama_token_data(i, x, 0) for i, x in enumerate(logits)])
    array = L.llama_token_data_array(data, n, -1, False)
    chain = L.llama_sampler_chain_init(L.llama_sampler_chain_default_params())
    add = lambda s: L.llama_sampler_chain_add(chain, s)  # noqa: E731
    last = len(before) if c["last"] < 0 else c["last"]
    add(L.llama_sampler_init_penalties(n, last, c["penalty"], 0.0, 0.0))
    add(L.llama_sampler_init_top_k(c["top_k"]))
    add(L.llama_sampler_init_top_p(c["top_p"], 1))
    add(L.llama_sampler_init_min_p(c["min_p"], 1))
    add(L.llama_sampler_init_temp(c["temp"]))
    add(L.llama_sampler_init_dist(1))
    for t in before:
        L.llama_sampler_accept(chain, t)
    L.llama_sampler_apply(chain, ctypes.byref(array))
    left = [(array.data[i].id, array.data[i].p) for i in range(array.size) if array.data[i].p > 0]
    L.llama_sampler_free(chain)
    total = sum(p for _, p in left)
    assert abs(total - 1) < 1e-4, total
    return sorted(left, key=lambda x: (-x[1], x[0]))


def main(dest):
    rng = random.Random(7)
    rows = []
    for spread in (0.5, 2, 5):
        rows.append([f32(round(rng.gauss(0, spread), 4)) for _ in range(120)])
    rows.append([f32(round(-abs(rng.gauss(0, 3)), 4)) for _ in range(40)])  # all negative
    rows.append([f32(2.5)])
    cases = []
    for i in range(250):
        row = rng.randrange(len(rows))
        n = len(rows[row])
        c = {
            "row": row,
            "before": [rng.randrange(n) for _ in range(rng.choice([0, 3, 20, 80]))],
            "temp": rng.choice([0.3, 0.8, 1.0, 2.0]),
            "top_k": rng.choice([0, 0, 1, 3, 40, 1000]),
            "top_p": rng.choice([1.0, 1.0, 0.95, 0.5, 0.05]),
            "min_p": rng.choice([0.0, 0.0, 0.02, 0.3, 1.0]),
            "penalty": rng.choice([1.0, 1.0, 1.1, 1.7, 0.8]),
            "last": rng.choice([64, 2, 0, -1]),
        }
        left = survivors(rows[row], c["before"], c)
        c["ids"] = [t for t, _ in left]
        c["p"] = [float(f"{p:.6g}") for _, p in left]
        cases.append(c)
    rows = [[float(f"{x:.9g}") for x in r] for r in rows]
    with open(dest, "w") as f:
        json.dump({"llama_cpp_python": L.__version__, "rows": rows, "cases": cases}, f, separators=(",", ":"))
        f.write("\n")
    print(len(cases), "cases,", sum(len(c["ids"]) for c in cases), "candidates")


if __name__ == "__main__":
    main(sys.argv[1])
