"""Writes testdata/tokenizer/sentencepiece.json: what llama.cpp does with SentencePiece vocabularies.

    python testdata/gen/sentencepiece.py testdata/tokenizer/sentencepiece.json [STRINGS]

STRINGS is how many random texts there are (default 800). See README.md beside this file for the format.
"""

import json
import os
import random
import sys
import tempfile
import zlib

import gguf
import llama_cpp as L
from tokenizer import Vocab, broken, crc, strings

CONTROL, NORMAL, UNKNOWN, USER, BYTE = 3, 1, 2, 4, 6


# As in Gemma's: runs of line ends and of spaces, and tags, are found in raw text.
RUNS = ["\n\n", "\n\n\n", "\n\n\n\n", "▁▁▁", "▁▁▁▁▁", "\t\t", "<table>", "</b>", "<unused0>"]


def vocabulary(seed, some, runs=()):
    """Tokens with scores and types: specials, bytes, characters, and words that can be joined in several ways."""
    rng = random.Random(seed)
    tokens = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    tokens += [(f"<0x{b:02X}>", 0.0, BYTE) for b in range(256)]
    pool = [c for c in "abcstA.,!'0127é字ß▁ü語🙂" if rng.random() < some]
    words = dict.fromkeys(pool)
    for _ in range(700):
        w = rng.choice(list(words)) + rng.choice(pool)
        if len(w) < 9:
            words[w] = None
    words.update(dict.fromkeys(["▁The", "▁the", "ing", "▁▁", "▁▁▁▁", "\n", "\n\n", "▁hello", "wor", "ld"]))
    for w in runs:
        words.pop(w, None)
    for w in words:  # equal scores too: then the left pair is first
        tokens.append((w, float(-rng.randrange(400)), NORMAL))
    return tokens + [("<|endoftext|>", 0.0, CONTROL), ("<|user|>", 0.0, CONTROL), ("[tool]", 0.0, USER)] + [(w, -1000.0, USER) for w in runs] + [("<start_of_turn>", 0.0, CONTROL)] * bool(runs)


def load(tokens, prefix, name):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "v.gguf")
        w = gguf.GGUFWriter(path, "llama")
        w.add_uint32("llama.block_count", 1)
        w.add_uint32("llama.context_length", 64)
        w.add_uint32("llama.embedding_length", 32)
        w.add_uint32("llama.feed_forward_length", 32)
        w.add_uint32("llama.attention.head_count", 1)
        w.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
        w.add_tokenizer_model("llama")
        w.add_token_list([t for t, _, _ in tokens])
        w.add_token_scores([s for _, s, _ in tokens])
        w.add_token_types([k for _, _, k in tokens])
        w.add_name(name)
        if not prefix:
            w.add_bool("tokenizer.ggml.add_space_prefix", False)
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.close()
        return Vocab(path)


def of(data):
    """Four digits of a CRC-32 of bytes."""
    return ("%08x" % zlib.crc32(data))[:4]


def main(dest, n=800):
    rng = random.Random(5)
    kinds = list("abcstA.,!'0127é字ßü語🙂x\n ") + ["  ", "    ", " The", " the", "ing", "hello", "world", "<s>", "</s>", "<|user|>", "<|user|> \n", "<|endoftext|>", "</s>\u3000", "[tool]", "▁", "\u00a0"]
    runs = ["\n\n", "\n\n\n", "   ", "     ", "▁▁▁", "\t\t", "<table>", "</b>", "<b>", "<start_of_turn>", "<unused0>"]
    own = list(dict.fromkeys("".join(rng.choice(kinds) for _ in range(rng.randint(1, 40))) for _ in range(n)))
    own += dict.fromkeys("".join(rng.choice(kinds + 3 * runs) for _ in range(rng.randint(1, 40))) for _ in range(n // 4))
    own = list(dict.fromkeys(own))
    inputs = [t.encode() for t in own + strings()] + broken()
    models = []
    for seed, some, prefix, name in ((1, 1, True, "a"), (2, 0.7, True, "b"), (3, 1, False, "c"), (4, 1, True, "Phi-3 mini"), (5, 0.9, False, "gemma")):
        tokens = vocabulary(seed, some, RUNS if name == "gemma" else ())
        v = load(tokens, prefix, name)
        every = range(v.size)
        rows = []
        for text in inputs:
            ids = [v.encode(text, False), v.encode(text, True)]
            rows.append(crc(ids[0] + [-1] + ids[1])[:4])
        models.append({
            "prefix": prefix, "strip": "Phi-3" in name, "tokens": [t for t, _, _ in tokens], "scores": [s for _, s, _ in tokens], "types": [k for _, _, k in tokens],
            "add_bos": bool(L.llama_vocab_get_add_bos(v.vocab)), "eog": v.eog(), "each": rows,
            "pieces": [of(v.decode([2, i], sp)) for i in every for sp in (False, True)],
            "decoded": [of(v.decode(v.encode(t, False), False)) for t in inputs],
        })  # fmt: skip
    with open(dest, "w") as f:
        json.dump({"llama_cpp_python": L.__version__, "texts": own, "models": models}, f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
