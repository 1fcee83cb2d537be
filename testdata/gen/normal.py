"""Writes testdata/tokenizer/normal.json: what the normalizers NFC, NFD, NFKC and NFKD of Hugging Face's tokenizers make of texts.

    python testdata/gen/normal.py testdata/tokenizer/normal.json [STRINGS SEED]

STRINGS is how many random texts there are (default 1100). See README.md beside this file for the format.
"""

import json
import random
import sys
import unicodedata
import zlib

import tokenizers
from tokenizers import normalizers

FORMS = [normalizers.NFC(), normalizers.NFD(), normalizers.NFKC(), normalizers.NFKD()]
CODEPOINTS = [r for r in range(0x110000) if not 0xD800 <= r < 0xE000]
BLOCK = 1024


def all_forms(text):
    return [f.normalize_str(text) for f in FORMS]


def total(texts):
    """The CRC-32 of all forms of all texts, a line end behind each."""
    sum_ = 0
    for text in texts:
        for out in all_forms(text):
            sum_ = zlib.crc32(out.encode() + b"\n", sum_)
    return f"{sum_:08x}"


def probes(c):
    """Shows what a character becomes alone, and whether it moves or joins beside marks of the lowest and the highest class."""
    return [c, "e\u0345" + c + "\u0334e" + c + "\u0301\u0323" + c]


def classes(c, marks):
    """Shows a mark's class by where it comes to stand among one mark of each class."""
    return [c + marks, marks + c]


def hangul():
    for lead in range(0x10FF, 0x1114):
        for vowel in range(0x1160, 0x1177):
            yield chr(lead) + chr(vowel)
            yield from (chr(lead) + chr(vowel) + chr(trail) for trail in range(0x11A6, 0x11C4))
    for syllable in range(0xAC00, 0xD7B0):
        yield chr(syllable) + "\u11a7" + chr(syllable) + "\u11a8" + chr(syllable) + "\u11c2\u11a8"


def main(path, strings=1100, seed=1):
    rng = random.Random(seed)
    nfd = FORMS[1].normalize_str
    # Between marks of the highest and the lowest class only what has none keeps the three from being sorted.
    moves = [r for r in CODEPOINTS if nfd(chr(r)) == chr(r) and nfd("\u0345" + chr(r) + "\u0334") != "\u0345" + chr(r) + "\u0334"]
    by_class = {}
    for r in moves:
        by_class.setdefault(unicodedata.combining(chr(r)), chr(r))
    marks = list(by_class.values())
    rng.shuffle(marks)
    marks = "".join(marks)
    firsts, seconds, pairs = set(), set(), set()
    changing = []
    for r in CODEPOINTS:
        if 0xAC00 <= r < 0xD7A4:
            continue
        parts = unicodedata.decomposition(chr(r)).split()
        if parts or unicodedata.combining(chr(r)):
            changing.append(chr(r))
        if len(parts) == 2 and not parts[0].startswith("<"):
            a, b = (chr(int(p, 16)) for p in parts)
            firsts.add(a)
            seconds.add(b)
            pairs.add(a + b)
    firsts, seconds, pairs = "".join(sorted(firsts)), "".join(sorted(seconds)), sorted(pairs)
    high = [c for c in changing if ord(c) > 0xFFFF] + [c for c in firsts + seconds if ord(c) > 0xFFFF] * 20
    pools = [
        lambda: rng.choice("aeiouAEIOU \n1.ns"),
        lambda: rng.choice(firsts),
        lambda: rng.choice(seconds),
        lambda: rng.choice(pairs),
        lambda: rng.choice(changing),
        lambda: rng.choice(high),
        lambda: chr(rng.choice(moves)),
        lambda: rng.choice(marks),
        lambda: chr(rng.randrange(0x10FE, 0x1200)),
        lambda: chr(rng.randrange(0xAC00, 0xD7A4)),
        lambda: chr(rng.randrange(0x1100, 0x1113)) + chr(rng.randrange(0x1161, 0x1176)) + rng.choice(["", chr(rng.randrange(0x11A7, 0x11C4))]),
        lambda: chr(rng.choice(CODEPOINTS)),
        lambda: "\ufffd",
    ]
    texts = []
    for i in range(strings):
        chosen = rng.sample(pools, rng.randrange(1, 5))
        text = "".join(rng.choice(chosen)() for _ in range(rng.randrange(1, 24)))
        if i % 10 == 0:  # as many marks as make other programs put a joiner between them
            of = rng.choice([marks, [chr(r) for r in moves], seconds])
            text += rng.choice("ae\u1100") + "".join(rng.choice(of) for _ in range(rng.randrange(28, 70))) + rng.choice(pools)()
        texts.append(text)
    out = {
        "tokenizers": tokenizers.__version__,
        "block": BLOCK,
        "codepoints": [],
        "marks": marks,
        "moves": "".join(map(chr, moves)),
        "classes": total(t for r in moves for t in classes(chr(r), marks)),
        "firsts": firsts,
        "seconds": seconds,
        "pairs": [total(a + b for b in seconds) for a in firsts],
        "hangul": total(hangul()),
        "texts": texts,
        "each": "".join(f"{zlib.crc32(form.encode()) & 0xFFFF:04x}" for text in texts for form in all_forms(text)),
    }
    for begin in range(0, 0x110000, BLOCK):
        block = [r for r in range(begin, begin + BLOCK) if not 0xD800 <= r < 0xE000]
        out["codepoints"].append(total(p for r in block for p in probes(chr(r))))
    with open(path, "w", encoding="utf-8") as f:
        json.dump(out, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
