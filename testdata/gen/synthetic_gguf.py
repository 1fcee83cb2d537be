"""Writes a GGUF file of a model's shapes with made-up weights, for programs that are timed with one.

    python testdata/gen/synthetic_gguf.py SmolLM2-135M|8B FILE [--type q4_0|q4_1|q4_k_m] [--tiny]

The shapes are those that internal/testing/gpubench measures. Matrices have codes of 4 bits, with 32 to a
scale (q4_0: 4.5 bits a weight) or to a scale and an offset (q4_1: 5 bits), or they are of q4_k, and of q6_k
where llama.cpp's mix Q4_K_M has more bits: in the head, and in the values and the second product of the feed-forward
part of half of the layers (4.9 bits a weight). The small model's embedding, which is its head too, is q8_0, as in
the demonstration model's own file. Codes are random, from a fixed seed, and the values have the spread of a trained matrix; the same mebibyte of codes is repeated through a
matrix. There is no vocabulary, only its size, but with q4_k_m: there it is the bytes and names of no meaning, since
`mlxc record` wants one. Needs nothing but Python.
"""

import argparse
import random
import struct

SHAPES = {
    "SmolLM2-135M": dict(layers=30, width=576, ffn=1536, heads=9, kv=3, dim=64, vocab=49152, context=8192, theta=100000.0, tied=True),
    "8B": dict(layers=32, width=4096, ffn=14336, heads=32, kv=8, dim=128, vocab=128256, context=8192, theta=500000.0, tied=False),
}
# Of each type: its number in the format, values and bytes of a block.
TYPES = {"f32": (0, 1, 4), "q4_0": (2, 32, 18), "q4_1": (3, 32, 20), "q8_0": (8, 32, 34), "q4_k": (12, 256, 144), "q6_k": (14, 256, 210)}
FILE_TYPES = {"q4_0": 2, "q4_1": 3, "q4_k_m": 15}
ALIGNMENT = 32
PIECE = 1 << 15  # blocks that are repeated


def metadata(key, kind, form, *values):
    """A key of GGUF with a value of a number type."""
    return text(key) + struct.pack("<I", kind) + struct.pack(form, *values)


def text(s):
    data = s.encode()
    return struct.pack("<Q", len(data)) + data


def string(key, value):
    return text(key) + struct.pack("<I", 8) + text(value)


def strings(key, values):
    return text(key) + struct.pack("<IIQ", 9, 8, len(values)) + b"".join(map(text, values))


def vocabulary(n):
    """Keys of a byte-level vocabulary of n tokens: the bytes, as GPT-2 writes them, and n - 256 others."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = [b for b in range(256) if b not in printed]
    tokens = [chr(b) for b in printed] + [chr(256 + i) for i in range(len(other))]
    tokens += [f"<{i}>" for i in range(n - len(tokens))]
    return [string("tokenizer.ggml.model", "gpt2"), string("tokenizer.ggml.pre", "llama-bpe"), strings("tokenizer.ggml.tokens", tokens),
            strings("tokenizer.ggml.merges", ["a b"]), u32("tokenizer.ggml.eos_token_id", n - 1)]  # fmt: skip


def u32(key, value):
    return metadata(key, 4, "<I", value)


def f32(key, value):
    return metadata(key, 6, "<f", value)


def blocks(kind, width, seed):
    """PIECE blocks of a matrix with rows of `width` values, whose spread is 1/sqrt(width)."""
    size = TYPES[kind][2]
    data = bytearray(random.Random(seed).randbytes(PIECE * size))
    if kind == "q4_k":  # d * scale * code - dmin * min, of 6 bits, 4 bits and 6 bits, whose spread is 257 d with dmin = 7.5 d
        scale = width**-0.5 / 257
        head = struct.pack("<ee", scale, 7.5 * scale)
        for i, byte in enumerate(head):
            data[i::size] = bytes([byte]) * PIECE
        return bytes(data)
    if kind == "q6_k":  # d * scale * (code - 32), of 8 bits and 6 bits, whose spread is 1365 d; d stands last
        for i, byte in enumerate(struct.pack("<e", width**-0.5 / 1365)):
            data[size - 2 + i :: size] = bytes([byte]) * PIECE
        return bytes(data)
    # The spread of uniform codes of n values is sqrt((n*n - 1) / 12).
    scale = width**-0.5 / ((256 if kind == "q8_0" else 16) ** 2 / 12) ** 0.5
    head = struct.pack("<e", scale)
    if kind == "q4_1":
        head += struct.pack("<e", -7.5 * scale)
    for i, byte in enumerate(head):
        data[i::size] = bytes([byte]) * PIECE
    return bytes(data)


def tensors(c, kind):
    """(name, type, columns, rows) of each tensor; rows 0: a vector."""
    width, ffn, heads, kv, layers = c["width"], c["ffn"], c["heads"] * c["dim"], c["kv"] * c["dim"], c["layers"]
    mixed = kind == "q4_k_m"
    kind = "q4_k" if mixed else kind
    yield "token_embd.weight", "q8_0" if c["tied"] else kind, width, c["vocab"]
    yield "output_norm.weight", "f32", width, 0
    if not c["tied"]:
        yield "output.weight", "q6_k" if mixed else kind, width, c["vocab"]
    for i in range(layers):
        more = "q6_k" if mixed and (i < layers // 8 or i >= 7 * layers // 8 or (i - layers // 8) % 3 == 2) else kind
        yield f"blk.{i}.attn_norm.weight", "f32", width, 0
        yield f"blk.{i}.attn_q.weight", kind, width, heads
        yield f"blk.{i}.attn_k.weight", kind, width, kv
        yield f"blk.{i}.attn_v.weight", more, width, kv
        yield f"blk.{i}.attn_output.weight", kind, heads, width
        yield f"blk.{i}.ffn_norm.weight", "f32", width, 0
        yield f"blk.{i}.ffn_gate.weight", kind, width, ffn
        yield f"blk.{i}.ffn_up.weight", kind, width, ffn
        yield f"blk.{i}.ffn_down.weight", more, ffn, width


def write(name, path, kind="q4_1", tiny=False):
    """Writes the file; returns its size in bytes."""
    c = dict(SHAPES[name])
    if tiny:
        c |= dict(layers=2, vocab=512)
    keys = [
        string("general.architecture", "llama"), string("general.name", name + ", made up"), u32("general.quantization_version", 2),
        u32("general.file_type", FILE_TYPES[kind]), u32("llama.block_count", c["layers"]), u32("llama.context_length", c["context"]),
        u32("llama.embedding_length", c["width"]), u32("llama.feed_forward_length", c["ffn"]), u32("llama.attention.head_count", c["heads"]),
        u32("llama.attention.head_count_kv", c["kv"]), u32("llama.rope.dimension_count", c["dim"]), f32("llama.rope.freq_base", c["theta"]),
        f32("llama.attention.layer_norm_rms_epsilon", 1e-5), u32("llama.vocab_size", c["vocab"]),
    ]
    keys += vocabulary(c["vocab"])
    described, at, sizes = [], 0, []
    for tensor, of, columns, rows in tensors(c, kind):
        number, values, size = TYPES[of]
        dims = [columns, rows] if rows else [columns]
        bytes_ = columns * max(rows, 1) // values * size
        described.append(text(tensor) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, number, at))
        sizes.append((of, columns, bytes_))
        at += -(-bytes_ // ALIGNMENT) * ALIGNMENT
    begin = b"GGUF" + struct.pack("<IQQ", 3, len(described), len(keys)) + b"".join(keys) + b"".join(described)
    pieces = {}
    with open(path, "wb") as f:
        f.write(begin.ljust(-(-len(begin) // ALIGNMENT) * ALIGNMENT, b"\0"))
        for of, columns, left in sizes:
            piece = pieces.get((of, columns))
            if piece is None:
                piece = struct.pack("<f", 1.0) * columns if of == "f32" else blocks(of, columns, columns)
                pieces[of, columns] = piece
            pad = -left % ALIGNMENT
            while left:
                n = min(left, len(piece))
                f.write(memoryview(piece)[:n])
                left -= n
            f.write(bytes(pad))
        return f.tell()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("shape", choices=sorted(SHAPES))
    p.add_argument("file")
    p.add_argument("--type", choices=sorted(FILE_TYPES), default="q4_1")
    p.add_argument("--tiny", action="store_true", help="two layers and 512 tokens, to try a program")
    o = p.parse_args()
    print(write(o.shape, o.file, o.type, o.tiny), "bytes")


if __name__ == "__main__":
    main()
