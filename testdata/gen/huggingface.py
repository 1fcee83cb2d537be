"""Writes testdata/tokenizer/huggingface.json: what Hugging Face's tokenizers do with tokenizer.json files of several kinds.

    python testdata/gen/huggingface.py testdata/tokenizer/huggingface.json [STRINGS SEED]

STRINGS is how many random texts there are (default 900). See README.md beside this file for the format.
"""

import json
import random
import sys
import zlib

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizer import ALPHABET, broken, crc, strings

SPACE = "▁"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
ENDS = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CASE = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CASE}|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CASE}|\p{{N}}{{1,3}}" + ENDS
TEKKEN = rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*|\p{{N}}" + ENDS
SPECIALS = ["<unk>", "<s>", "</s>", "<|user|>", "<|end|>"]


def grown(rng, pool, n, longest):
    """Random merges over a pool, and the tokens that they make."""
    pool = list(pool)
    made, merges = dict.fromkeys(pool), []
    start = len(pool)
    for _ in range(40 * n):
        x, y = rng.choice(pool), rng.choice(pool[:start] if rng.random() < 0.5 else pool)
        if len(x + y) <= longest and x + y not in made:
            made[x + y] = None
            merges.append((x, y))
            pool.append(x + y)
        elif x + y in made and len(x) > 1 and (x, y) not in merges and rng.random() < 0.1:
            merges.append((x, y))  # another way to a token that is there
        if len(merges) >= n:
            break
    return list(made), merges


CHARS = "abstAST12 \n'!.,-<>|éß字語ü🙂".replace(" ", SPACE)


def characters(seed, bytes_, fuse, unk="<unk>", all_bytes=True):
    rng = random.Random(seed)
    pieces, merges = grown(rng, CHARS, 260, 7)
    tokens = ["<unk>", "<s>", "</s>"]
    if bytes_:
        tokens += [f"<0x{b:02X}>" for b in range(256) if all_bytes or b % 16]
    # What no merge makes is found by nothing; runs of spaces are made as in models' files.
    extra = [(SPACE, SPACE), (SPACE * 2, SPACE * 2), (SPACE * 4, SPACE * 4), ("\n", "\n"), (SPACE, "a"), ("s", "t")]
    for x, y in extra:
        if x + y not in pieces:
            pieces.append(x + y)
        if (x, y) not in merges:
            merges.append((x, y))
    rng.shuffle(merges)
    vocab = {t: i for i, t in enumerate(tokens + pieces)}
    return Tokenizer(models.BPE(vocab, merges, unk_token=unk, fuse_unk=fuse, byte_fallback=bytes_))


def unigram(seed, bytes_):
    rng = random.Random(seed)
    pieces, _ = grown(rng, CHARS, 400, 8)
    vocab = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0)]
    if bytes_:
        vocab += [(f"<0x{b:02X}>", -20.0 - b / 64) for b in range(256)]
    vocab += [(p, -rng.choice([rng.uniform(1, 4), rng.uniform(3, 12), float(rng.randrange(2, 9))]) * len(p) ** 0.5) for p in pieces if rng.random() < 0.9]
    vocab.append((SPACE * 4, -3.0))
    return Tokenizer(models.Unigram(list(dict(vocab).items()), 0, bytes_))


def byte_level(seed, expression, ignore):
    rng = random.Random(seed)
    of = lambda s: "".join(ALPHABET[b] for b in s.encode())  # noqa: E731
    alphabet = [ALPHABET[b] for b in range(256)]
    # Characters of several bytes are made first.
    base, merges = list(alphabet), []
    pool = []
    for c in "abstASTLlE12 \n\r\t'/!.-é字\u0301٣\u00a0\u3000ſǅ":
        w = of(c)
        for end in range(2, len(w) + 1):
            if w[:end] not in base:
                base.append(w[:end])
                merges.append((w[: end - 1], w[end - 1]))
        pool.append(w)
    made, more = grown(rng, pool, 300, 8)
    tokens = base + [t for t in made if t not in base]
    tokens += [of(t) for t in (" zebra", "zebra", "Zebra", "777", "!?!?", "\n\n\n\n", "qzq") if of(t) not in tokens]
    t = Tokenizer(models.BPE({x: i for i, x in enumerate(tokens)}, merges + more, ignore_merges=ignore))
    split = pre_tokenizers.Split(Regex(expression), "isolated")
    t.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens([AddedToken(x, special=True, normalized=False) for x in SPECIALS])
    return t


def text_of(*last):
    return decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *last])


def kinds():
    prepend = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    strip = decoders.Strip(" ", 1, 0)
    special = [AddedToken(x, special=True, normalized=False) for x in SPECIALS]

    def made(t, decoder, normalizer=None, pre=None, added=special):
        t.decoder = decoder
        if normalizer:
            t.normalizer = normalizer
        if pre:
            t.pre_tokenizer = pre
        t.add_tokens(added)
        return t

    metaspace = pre_tokenizers.Metaspace
    yield "llama2", made(characters(1, True, True), text_of(strip), prepend)
    yield "mistral", made(characters(2, True, True), text_of(strip), None, metaspace(SPACE, "first", False))
    runs = [AddedToken(x, special=False, normalized=False) for x in ["\n\n", "\n\n\n", "\n\n\n\n", SPACE * 2, SPACE * 3, "\t\t", "<b>", "</b>"]]
    yield "gemma", made(characters(3, True, True), text_of(), normalizers.Replace(" ", SPACE), pre_tokenizers.Split(" ", "merged_with_previous"), special + runs)
    late = [AddedToken(x, special=False, normalized=True) for x in ["tool", "a b", "[x]"]]
    behind = [AddedToken("<|user|>", special=True, normalized=False, rstrip=True), AddedToken("<|end|>", special=True, normalized=False, rstrip=True, lstrip=True)]
    yield "phi3", made(characters(4, True, True), text_of(strip), prepend, None, special[:3] + behind + late)
    yield "unknown", made(characters(5, False, True), text_of(strip), None, metaspace(SPACE, "always", True))
    yield "unknowns", made(characters(6, False, False), text_of(), None, metaspace(SPACE, "never", True))
    yield "left out", made(characters(7, False, False, None), text_of(), None, metaspace(SPACE, "first", True))
    yield "some bytes", made(characters(8, True, True, all_bytes=False), text_of(), None, metaspace(SPACE, "never", False))
    yield "unigram", made(unigram(9, True), decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(SPACE, "first", False)]), None, metaspace(SPACE, "first", False))
    clean = normalizers.Sequence([normalizers.NFKC(), normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), SPACE)])
    yield "unigram words", made(unigram(10, False), decoders.Metaspace(SPACE, "always", True), clean, metaspace(SPACE, "always", True), special + [AddedToken("ﬁx", normalized=True), AddedToken("a  b", normalized=True), AddedToken("Zz", normalized=True, lstrip=True)])
    yield "llama3", byte_level(11, LLAMA3, True)
    yield "llama3 merges", byte_level(12, LLAMA3, False)
    qwen2 = byte_level(13, QWEN2, False)
    qwen2.normalizer = normalizers.NFC()
    yield "qwen2", qwen2
    yield "o200k", byte_level(14, O200K, False)
    yield "o200k whole", byte_level(15, O200K, True)
    yield "tekken", byte_level(16, TEKKEN, True)


BLOCK = 2048
BLOCKS = [*range(0, 0x20000, BLOCK), 0x2A000, 0x2E800, 0x31000, 0xE0000, 0x10F800]


def probes(c):
    """Surroundings in which the class of a code point shows."""
    s = chr(c)
    return "\r".join([s + "'s", "  " + s, "a" + s + "a", "A" + s + "A", "1" + s + "1", "!" + s + "\n", s + s + s + s])


def codepoints(t):
    """Of each block, the CRC-32 of the IDs of the probes of its code points."""
    out = []
    for first in BLOCKS:
        every = [probes(c) for c in range(first, first + BLOCK) if not 0xD800 <= c < 0xE000]
        out.append(crc([i for e in t.encode_batch(every, add_special_tokens=False) for i in e.ids]))
    return out


def texts(n, seed):
    rng = random.Random(seed)
    parts = list("abstASTLlE12 \n\r\t'!.,-/<>|éßü字語🙂ſǅxZ\u0301٣\u00a0\u3000\u200d½\x00\x1c\x85\u2028") + [
        "  ", "    ", "     ", "\n\n", "\n\n\n", " the", "st", "ing", "'s", "'S", "'ſ", "'LL", "'lL", "'Re", SPACE, SPACE * 2, "tool", "a b", "[x]", "ﬁx", "fix", "a  b", " Zz", "<b>", "</b>",
        *SPECIALS, *SPECIALS, "<|user|> \n ", " \n <|end|>", "<|us", "<0x41>", "zebra", " zebra", "Zebra", "777", "!?!?", "qzq", "e\u0301", "if (x) {\n\treturn 1;\n}",
    ]  # fmt: skip
    out = []
    while len(out) < n:
        s = ""
        for _ in range(rng.randint(1, 30)):
            if rng.random() < 0.04:
                c = rng.choice([rng.randrange(0x80), rng.randrange(0x800), rng.randrange(0x10000), rng.randrange(0x110000)])
                s += chr(c) if not 0xD800 <= c < 0xE000 else ""
            else:
                s += rng.choice(parts)
        out.append(s)
    return list(dict.fromkeys(out))


def repaired(b):
    """Bytes as text: one U+FFFD for each byte that is no character."""
    out, i = "", 0
    while i < len(b):
        for n in (1, 2, 3, 4):
            try:
                out += b[i : i + n].decode()
                i += n
                break
            except UnicodeDecodeError:
                continue
        else:
            out += "\ufffd"
            i += 1
    return out


def lenient(b):
    """Whether byte-level BPE reads the bytes as repaired does: they have no surrogates and no overlong forms."""
    bad = any(b[i] in (0xC0, 0xC1) or b[i] == 0xED and i + 1 < len(b) and b[i + 1] >= 0xA0 or b[i] == 0xE0 and i + 1 < len(b) and b[i + 1] < 0xA0
              or b[i] == 0xF0 and i + 1 < len(b) and b[i + 1] < 0x90 for i in range(len(b)))  # fmt: skip
    return not bad


def main(dest, n=900, seed=41):
    own = texts(n, seed)
    rows = []
    for name, t in kinds():
        inputs = own + strings()
        inputs += [repaired(b) if "ByteLevel" not in str(t.pre_tokenizer) or lenient(b) else None for b in broken()]
        file = t.to_str()
        t, plain = Tokenizer.from_str(file), Tokenizer.from_str(file)  # as files are read: numbers may be off by a bit
        plain.encode_special_tokens = True
        each, decoded = [], []
        some = [x for x in inputs if x is not None]
        with_, without = t.encode_batch(some, add_special_tokens=False), plain.encode_batch(some, add_special_tokens=False)
        at = iter(zip(with_, without))
        for x in inputs:
            if x is None:
                each.append("----")
                decoded.append("----")
                continue
            a, b = next(at)
            each.append(crc(b.ids + [-1] + a.ids)[:4])
            shown = [t.decode(a.ids, skip_special_tokens=k) for k in (True, False)]
            decoded.append(("%08x" % zlib.crc32("\0".join(shown).encode()))[:4])
        rows.append({"codepoints": codepoints(t) if n == 900 and "ByteLevel" in str(t.pre_tokenizer) else None, "name": name, "json": json.loads(file), "each": "".join(each), "decoded": "".join(decoded)})
    with open(dest, "w") as f:
        json.dump({"tokenizers": tokenizers.__version__, "texts": own, "block": BLOCK, "blocks": BLOCKS, "kinds": rows}, f, separators=(",", ":"), ensure_ascii=False)
        f.write("\n")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
