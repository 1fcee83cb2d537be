"""Writes testdata/compat/tiny.gguf: a Llama model of one small layer with random weights of Q8_0, whose text is nonsense, for
files of each release (scripts/compat.sh).

    python3 testdata/gen/tiny_gguf.py testdata/compat/tiny.gguf
"""

import random
import struct
import sys

EMBEDDING, FEED_FORWARD, VOCABULARY = 64, 64, 40
rng = random.Random(1)


def text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def value(v):
    if isinstance(v, str):
        return struct.pack("<I", 8) + text(v)
    if isinstance(v, int):
        return struct.pack("<II", 4, v)
    if isinstance(v, float):
        return struct.pack("<If", 6, v)
    return struct.pack("<IIQ", 9, 8, len(v)) + b"".join(map(text, v))  # a list of texts


def matrix(rows, columns):
    """Blocks of 32 codes behind a scale in f16, so that a row of products has about the size of its inputs."""
    out = b""
    for _ in range(rows * columns // 32):
        out += struct.pack("<e", 0.0018) + bytes(rng.randrange(-127, 128) & 255 for _ in range(32))
    return (8, (columns, rows), out)


def norm():
    return (0, (EMBEDDING,), struct.pack(f"<{EMBEDDING}f", *(1 + rng.uniform(-0.1, 0.1) for _ in range(EMBEDDING))))


keys = {
    "general.architecture": "llama",
    "llama.block_count": 1,
    "llama.embedding_length": EMBEDDING,
    "llama.feed_forward_length": FEED_FORWARD,
    "llama.attention.head_count": 1,
    "llama.attention.head_count_kv": 1,
    "llama.context_length": 32,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": [chr(ord("A") + i) for i in range(VOCABULARY)],
    "tokenizer.ggml.merges": [],
}
tensors = {"token_embd.weight": matrix(VOCABULARY, EMBEDDING), "output_norm.weight": norm(), "blk.0.attn_norm.weight": norm(), "blk.0.ffn_norm.weight": norm()}
for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
    tensors[f"blk.0.{name}.weight"] = matrix(EMBEDDING, EMBEDDING)
for name in ("ffn_gate", "ffn_up"):
    tensors[f"blk.0.{name}.weight"] = matrix(FEED_FORWARD, EMBEDDING)
tensors["blk.0.ffn_down.weight"] = matrix(EMBEDDING, FEED_FORWARD)

head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
for key, v in keys.items():
    head += text(key) + value(v)
data = b""
for name, (kind, shape, contents) in tensors.items():
    head += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<IQ", kind, len(data))
    data += contents + bytes(-len(contents) % 32)
with open(sys.argv[1], "wb") as f:
    f.write(head + bytes(-len(head) % 32) + data)
