"""A small Llama model whose matrices have all block formats of GGML, and its logits.

    python testdata/gen/blocks_model.py [OUT]      (OUT: testdata/blocks)

writes OUT/model.gguf.gz, by the gguf package, with matrices of random blocks (few different ones, so that the file is
small), and OUT/logits.json: for each number of TOKENS the logits of the last one, in float64, with the weights that
the package makes of the blocks. Deterministic. Versions: requirements.txt.
"""

import gzip
import io
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFWriter
from gguf.quants import dequantize

EMB, FFN, HEADS, KV, DIM, VOCAB, EPS, THETA = 256, 64, 2, 1, 64, 40, 1e-5, 10000.0
TOKENS = [3, 1, 39, 0, 17, 17, 5, 22, 8]
TYPES = {
    "token_embd": "Q6_K", "output": "Q3_K",
    "blk.0.attn_q": "Q4_K", "blk.0.attn_k": "Q5_K", "blk.0.attn_v": "Q2_K", "blk.0.attn_output": "MXFP4",
    "blk.0.ffn_gate": "Q3_K", "blk.0.ffn_up": "Q6_K", "blk.0.ffn_down": "Q5_0",
    "blk.1.attn_q": "Q5_1", "blk.1.attn_k": "IQ4_NL", "blk.1.attn_v": "Q4_0", "blk.1.attn_output": "Q4_1",
    "blk.1.ffn_gate": "Q8_0", "blk.1.ffn_up": "Q5_K", "blk.1.ffn_down": "Q5_1",
}  # fmt: skip
SHAPES = {
    "token_embd": (VOCAB, EMB), "output": (VOCAB, EMB), "attn_q": (HEADS * DIM, EMB), "attn_k": (KV * DIM, EMB),
    "attn_v": (KV * DIM, EMB), "attn_output": (EMB, HEADS * DIM), "ffn_gate": (FFN, EMB), "ffn_up": (FFN, EMB), "ffn_down": (EMB, FFN),
}  # fmt: skip
# Where the f16 numbers of a block lie.
SCALES = {
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "IQ4_NL": (0,), "MXFP4": (),
    "Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,),
}  # fmt: skip


def matrix(rng, kind, n, k, different=17):
    """The blocks of a matrix whose weights have the spread of 1/sqrt(k), and its weights. Few blocks are different."""
    qtype = GGMLQuantizationType[kind]
    weights, size = GGML_QUANT_SIZES[qtype]
    row = k // weights * size
    some = rng.integers(0, 256, (different, size), dtype=np.uint8)
    for at in SCALES[kind]:
        some[:, at : at + 2] = rng.uniform(0.5, 1, (different, 1)).astype(np.float16).view(np.uint8)
    if kind == "MXFP4":
        some[:, 0] = rng.integers(124, 127, different)
    blocks = np.resize(some, (n * row // size, size))
    scale = (k * np.var(dequantize(blocks.reshape(n, row), qtype).astype(np.float64))) ** -0.5
    for at in SCALES[kind]:
        d = blocks[:, at : at + 2].copy().view(np.float16)
        blocks[:, at : at + 2] = (d.astype(np.float64) * scale).astype(np.float16).view(np.uint8)
    if kind == "MXFP4":
        blocks[:, 0] = blocks[:, 0].astype(int) + int(np.round(np.log2(scale)))
    blocks = blocks.reshape(n, row)
    return blocks, dequantize(blocks, qtype).astype(np.float64)


def logits(w, tokens):
    """The model, from its formulas."""

    def norm(x, g):
        return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPS) * g

    def rope(x):
        a = np.arange(len(x))[:, None, None] * THETA ** (-2.0 * np.arange(DIM // 2) / DIM)
        even, odd = x[..., ::2], x[..., 1::2]
        return np.stack((even * np.cos(a) - odd * np.sin(a), even * np.sin(a) + odd * np.cos(a)), -1).reshape(x.shape)

    n = len(tokens)
    x = w["token_embd"][tokens]
    for i in range(2):
        at = f"blk.{i}."
        h = norm(x, w[at + "attn_norm"])
        q = rope((h @ w[at + "attn_q"].T).reshape(n, HEADS, DIM))
        k = np.repeat(rope((h @ w[at + "attn_k"].T).reshape(n, KV, DIM)), HEADS // KV, axis=1)
        v = np.repeat((h @ w[at + "attn_v"].T).reshape(n, KV, DIM), HEADS // KV, axis=1)
        s = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(DIM)
        p = np.exp(s) * np.tri(n)
        a = np.einsum("hij,jhd->ihd", p / p.sum(axis=-1, keepdims=True), v).reshape(n, HEADS * DIM)
        x = x + a @ w[at + "attn_output"].T
        h = norm(x, w[at + "ffn_norm"])
        gate = h @ w[at + "ffn_gate"].T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w[at + "ffn_up"].T)) @ w[at + "ffn_down"].T
    return norm(x[-1], w["output_norm"]) @ w["output"].T


def main(out):
    rng = np.random.default_rng(301)
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.gguf")
        f = GGUFWriter(path, "llama")
        f.add_block_count(2)
        f.add_embedding_length(EMB)
        f.add_feed_forward_length(FFN)
        f.add_head_count(HEADS)
        f.add_head_count_kv(KV)
        f.add_key_length(DIM)
        f.add_value_length(DIM)
        f.add_rope_dimension_count(DIM)
        f.add_context_length(32)
        f.add_layer_norm_rms_eps(EPS)
        f.add_rope_freq_base(THETA)
        f.add_tokenizer_model("gpt2")
        f.add_tokenizer_pre("smollm")
        f.add_token_list([chr(ord("A") + i) for i in range(VOCAB - 1)] + ["AB"])
        f.add_token_merges(["A B"])  # an empty list would not be written
        w = {}
        for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm", "blk.1.attn_norm", "blk.1.ffn_norm"):
            v = (1 + 0.2 * rng.standard_normal(EMB)).astype(np.float32)
            f.add_tensor(name + ".weight", v)
            w[name] = v.astype(np.float64)
        for name, kind in TYPES.items():
            raw, w[name] = matrix(rng, kind, *SHAPES[name.split(".")[-1]])
            f.add_tensor(name + ".weight", raw, raw_dtype=GGMLQuantizationType[kind])
        f.write_header_to_file()
        f.write_kv_data_to_file()
        f.write_tensors_to_file()
        f.close()
        packed = io.BytesIO()
        with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=9, mtime=0) as z:
            z.write(path.read_bytes())
    Path(out, "model.gguf.gz").write_bytes(packed.getvalue())
    values = {"tokens": TOKENS, "logits": [logits(w, TOKENS[:n]).tolist() for n in (6, 8, 9)]}
    Path(out, "logits.json").write_text(json.dumps(values) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / "blocks"))
