"""Writes testdata/tokenizer/pretokenizers.json: what llama.cpp's pre-tokenizers do.

    python testdata/gen/pretokenizers.py testdata/tokenizer/pretokenizers.json

A made-up vocabulary with many merges, over characters of all kinds, shows where words end: no merge crosses their ends.
See README.md beside this file for the format.
"""

import json
import random
import sys

import llama_cpp as L
from tokenizer import ALPHABET, broken, crc, load_spec, spec, strings

NAMES = ["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "gpt-2", "phi-2", "mpt", "olmo", "exaone4", "mellum",
         "granite-docling", "llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "lfm2", "dbrx", "smaug-bpe", "qwen2", "deepseek-r1-qwen", "stablelm2",
         "megrez", "hunyuan", "tekken", "gpt-4o", "llama4", "kanana2"]  # fmt: skip
BLOCK = 2048
# Two planes with most letters and signs, and the ends of the others that have some.
BLOCKS = [*range(0, 0x20000, BLOCK), 0x2A000, 0x2E800, 0x31000, 0xE0000, 0x10F800]


def vocabulary():
    """Bytes, and what random merges make of characters of every kind."""
    rng = random.Random(31)
    tokens, merges = [ALPHABET[b] for b in range(256)], []

    def of(text):
        return "".join(ALPHABET[b] for b in text.encode())

    pool = [of(c) for c in "abstAST12 \n\r\t'/!.-é字\u0301٣\u00a0\u3000"]
    for text in pool:  # characters of several bytes
        for end in range(2, len(text) + 1):
            merges.append(f"{text[: end - 1]} {text[end - 1]}")
            if text[:end] not in tokens:
                tokens.append(text[:end])
    for x, y in (("1", "1"), ("11", "1"), ("111", "1"), ("2", "1"), ("21", "2"), ("212", "2")):  # digits in groups
        merges.append(f"{x} {y}")
        tokens.append(x + y)
        pool.append(x + y)
    for _ in range(900):
        x, y = rng.choice(pool), rng.choice(pool[:60])
        if len(x + y) <= 12 and x + y not in tokens:
            merges.append(f"{x} {y}")
            tokens.append(x + y)
            pool.append(x + y)
    # Tokens that no merge makes: some pre-tokenizers find them as whole words.
    tokens += [of(t) for t in (" zebra", "zebra", "Zebra", "777", "!?!?", "\n\n\n\n", "qzq") if of(t) not in tokens]
    tokens.append("<x>")
    return spec(tokens, list(dict.fromkeys(merges)), [1] * (len(tokens) - 1) + [3], bos=0, eos=1)


def texts():
    rng = random.Random(32)
    kinds = ["a", "b", "s", "t", "A", "S", "T", "1", "2", " ", "  ", "\n", "\r", "\t", "'", "'s", "'T", "'lL", "'Re", "/", "!", ".", "-", "é", "字", "e\u0301", "٣",
             "\u00a0", "\u3000", "zebra", " zebra", "Zebra", "777", "!?!?", "\n\n\n\n", "qzq", "ſ", "ǅ", "ß", "İ", "\u200b", "🙂", "<x>", "½", "Ⅷ", "ª"]  # fmt: skip
    out = ["".join(rng.choice(kinds) for _ in range(rng.randint(1, 30))) for _ in range(1500)]
    return list(dict.fromkeys(out))


def probes(c):
    """Surroundings in which the class of a code point shows."""
    b = chr(c).encode("utf-8", "surrogatepass")
    return b" ".join([b + b"'s", b"  " + b, b"a" + b + b"a", b"A" + b + b"A", b"1" + b + b"1", b"!" + b + b"\n", b + b + b + b, b"\n" + b + b"\n"])


def main(dest):
    s = vocabulary()
    own = texts()
    rows = {}
    for name in NAMES:
        v = load_spec(s, True, name)
        inputs = [t.encode() for t in own + strings()] + broken()
        rows[name] = {
            "texts": crc([i for t in own for i in v.encode(t.encode(), True)]),
            "each": [crc(v.encode(t, True))[:4] for t in inputs],
            "add_bos": bool(L.llama_vocab_get_add_bos(v.vocab)),
        }
    # Names with the same answers share them.
    same = {}
    for name, row in rows.items():
        same.setdefault(json.dumps(row), []).append(name)
    groups = [{"names": n, **json.loads(r)} for r, n in same.items()]
    for g in groups:
        v = load_spec(s, True, g["names"][0])
        g["codepoints"] = [crc([i for c in range(first, first + BLOCK) for i in v.encode(probes(c), True)]) for first in BLOCKS]
    data = {"llama_cpp_python": L.__version__, "spec": s, "texts": own, "block": BLOCK, "blocks": BLOCKS, "groups": groups}
    with open(dest, "w") as f:
        json.dump(data, f, separators=(",", ":"))
        f.write("\n")
    for g in data["groups"]:
        print(g["names"], g["add_bos"])


if __name__ == "__main__":
    main(sys.argv[1])
