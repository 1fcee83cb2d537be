"""Writes testdata/tokenizer/smollm2.json: what llama.cpp's tokenizer answers.

    python testdata/gen/tokenizer.py MODEL.gguf testdata/tokenizer/smollm2.json

MODEL is SmolLM2-135M-Instruct.Q4_1.gguf. Only its vocabulary is loaded. The
calls go to llama.cpp's C functions, not to the Python class, which adds and
strips spaces of its own. See README.md beside this file for the format.
"""

import ctypes
import hashlib
import json
import os
import random
import struct
import sys
import tempfile
import zlib

import gguf
import llama_cpp as L

quiet = L.llama_log_callback(lambda level, text, data: None)
L.llama_log_set(quiet, ctypes.c_void_p())


class Vocab:
    """The vocabulary of a GGUF file, through llama.cpp."""

    def __init__(self, path):
        params = L.llama_model_default_params()
        params.vocab_only = True
        self.model = L.llama_model_load_from_file(path.encode(), params)
        if not self.model:
            raise SystemExit(f"llama.cpp cannot load {path}")
        self.vocab = L.llama_model_get_vocab(self.model)
        self.size = L.llama_vocab_n_tokens(self.vocab)

    def encode(self, text: bytes, special: bool):
        room = 3 * len(text) + 8  # bytes that are no UTF-8 become three
        ids = (L.llama_token * room)()
        n = L.llama_tokenize(self.vocab, text, len(text), ids, room, False, special)
        if n < 0:
            raise SystemExit(f"{-n} tokens for {len(text)} bytes")
        return list(ids[:n])

    def decode(self, ids, special: bool) -> bytes:
        arr = (L.llama_token * max(1, len(ids)))(*ids)
        room = 64 + 64 * len(ids)
        while True:
            buf = ctypes.create_string_buffer(room)
            n = L.llama_detokenize(self.vocab, arr, len(ids), buf, room, False, special)
            if n >= 0:
                return buf.raw[:n]
            room = -n

    def eog(self):
        return [i for i in range(self.size) if L.llama_vocab_is_eog(self.vocab, i)]


def crc(ids) -> str:
    return "%08x" % zlib.crc32(struct.pack("<%di" % len(ids), *ids))


# --- strings ---------------------------------------------------------------

def strings():
    """Texts, each for a reason; the order is the order in the file."""
    out = []
    add = out.append
    # Nothing, and one of each.
    for s in ["", " ", "a", "A", ".", "\n", "\t", "0", "é", "字", "🙂", "'"]:
        add(s)
    # Plain sentences.
    out += [
        "The capital of France is", "Hello, world!", "Hello world", " Hello world", "hello  world",
        "The quick brown fox jumps over the lazy dog.", "THE QUICK BROWN FOX", "tHe QuIcK",
        "a b c d e f g", "One. Two. Three.", "well-known state-of-the-art", "e.g., i.e., etc.",
        "(parentheses) [brackets] {braces} <angles>", "\"quoted\" 'single' `back`", "A/B\\C|D", "100% sure? Yes!!!",
        "...", "…", "—", "--", "- - -", "#hashtag @mention $cash", "a_b_c __init__ _", "C++ C# F# .NET",
        "https://example.com/a?b=c&d=%20#frag", "user@example.com", "2024-02-29T12:34:56.789Z", "3.14159", "-1.5e-10",
        "1,234,567.89", "0x1F", "0b1010", "1st 2nd 3rd", "H2O CO2", "x2y3z4", "v1.2.3-rc4+build5", "$1,000.00", "50°C",
    ]
    # Contractions: only lower case, only ASCII apostrophe, order of the choices.
    for w in ["I'm", "I'M", "you're", "YOU'RE", "they've", "THEY'VE", "he'll", "HE'LL", "she'd", "SHE'D", "it's", "IT'S",
              "don't", "DON'T", "I’m", "don’t", "'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'r", "'v", "'l", "'lL",
              "'rest", "'tis", "'twas", "rock'n'roll", "''s", "a''s", "' s", " 's", "  's", "x 's", "!'s", "!!'re", "1's", "1'll",
              "字's", "é'd", "'", "''", "'''", "a'", "'a", "s's's", "'ss", "'ree", "'d've", "y'all'd've", "\n's", "\t't", "'1", "'é"]:
        add(w)
    # Digits: each alone, never with the space before.
    for s in ["12", " 12", "  12", "   12", "12 ", "12  ", "1 2", "1  2", "a1", "1a", "a 1 b", "a1b2c3", "123456789", "00000",
              "\n1", "1\n", "1\n2", "!1!", " 1 !", "½", "²³", "x²", "①②③", "Ⅷ", "ⅷ viii", "一二三", "〇", "٠١٢٣", "۴۵۶", "०१२३", "১২৩",
              "൧൨൩", "๑๒๓", "໑໒", "༡༢༣", "១២៣", "０１２３", "𝟎𝟏𝟐", "𝟘", "🄀", "㊿", "༳", "৴", "௰", "፲", "𐄇", "𒐀", " ٣", "  ٣ ", "a٣b"]:
        add(s)
    # White space: runs, kinds, at both ends, before letters, signs and digits.
    for ws in [" ", "  ", "   ", "    ", "        ", "\t", "\t\t", " \t", "\t ", "\n", "\n\n", "\n\n\n", "\r\n", "\r\n\r\n", "\r", "\n ",
               " \n", "  \n  ", "\v", "\f", "\u0085", "\u00a0", "\u00a0\u00a0", "\u1680", "\u2000", "\u2003\u2003", "\u2009",
               "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\u3000\u3000", " \u3000", "\u3000 ", "\u00a0 "]:
        add(ws)
        add("a" + ws + "b")
        add(ws + "!" + ws)
        add("1" + ws + "2" + ws)
    # Looks like white space, is not.
    for c in ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u180e", "\u00ad", "\u001c", "\u001f", "\u007f", "\u0000", "\u2800", "\u3164"]:
        add("a" + c + "b")
        add(" " + c + " ")
    # Scripts.
    out += [
        "Ελληνικά γράμματα", "Русский текст, ещё раз.", "Українська ґанок", "עברית", "שָׁלוֹם", "العربية", "اَلْعَرَبِيَّةُ", "فارسی ۱۲۳",
        "हिन्दी में लिखा", "বাংলা লেখা", "தமிழ் எழுத்து", "తెలుగు", "ಕನ್ನಡ", "മലയാളം", "ગુજરાતી", "ਪੰਜਾਬੀ", "සිංහල", "ภาษาไทย ที่นี่",
        "ລາວ", "བོད་ཡིག", "မြန်မာ", "ខ្មែរ", "ქართული", "Հայերեն", "አማርኛ", "ᏣᎳᎩ", "ᐃᓄᒃᑎᑐᑦ", "ᚠᚢᚦ", "ᛁ", "日本語のテキスト", "カタカナ", "ひらがな",
        "漢字仮名交じり文。", "简体中文，标点。", "繁體中文「引號」", "한국어 문장", "한글", "ㅎㅏㄴ", "ᄒ\u1161\u11ab", "Tiếng Việt", "Tie\u0302\u0301ng",
        "Türkçe ıİ", "Straße ẞ", "Łódź żółć", "naïve café", "nai\u0308ve cafe\u0301", "e\u0301", "a\u0323\u0307", "\u0301", " \u0301", "a\u20dd",
        "Z͑ͫ̓a̴l̷g̸o", "𐍈𐌰", "𝒜𝓑𝔠", "𝐛𝐨𝐥𝐝", "ﬁ ﬂ", "ＦＵＬＬ width", "㍿", "℃ Å Ω", "ǅ ǆ", "ª º", "ʰʷ", "ᵃ",
        "\U0002ebf0", "\U00020000", "a\U0002ebf1's", "\U00031350's", "\U000f0000", "\U0010ffff", "\U000e0001", "\u0378", "\ue000", "\ufffd", "\uffff",
    ]
    # Signs and emoji.
    out += [
        "🙂", " 🙂", "🙂🙂", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇫🇷🇩🇪", "1️⃣", "☺️", "❤️", "👩🏿‍🚀 in space", "🧑‍💻", "a🙂b", "🫠",
        "→←↑↓", "±×÷≠≤≥", "∀x∈ℝ", "√2", "∑∫∂", "€£¥₹", "©®™", "§¶†‡", "«»", "“”‘’", "•·", "♠♥♦♣", "░▒▓█", "═║╔", "©2024",
    ]
    # Code.
    out += [
        "func main() {\n\tfmt.Println(\"hi\")\n}\n", "def f(x):\n    return x**2\n", "for (int i = 0; i < 10; ++i) { a[i] = i; }",
        "if x == 1:\n        y = 2\n    else:\n        pass", "<div class=\"a\">text</div>", "SELECT * FROM t WHERE id = 1;", "{\"a\": [1, 2.5, null]}",
        "#include <stdio.h>\n\nint main(void)\n{\n    return 0;\n}\n", "x = y  # comment", "\\begin{equation}\n  E = mc^2\n\\end{equation}", "$ ls -la | grep '^d'",
        "a->b::c<d>()", "!==", "&&||", "/* c */ // d", "\t\tindented", "    four", "  two\n    four\n  two", "import os, sys\n\n\nclass A:\n", "@decorator\n",
        "0.1+0.2==0.30000000000000004", "R\"(raw)\"", "%d %s\\n", "~/.bashrc", "C:\\Users\\x", "a\r\nb\r\n", "---\nyaml: true\n...", "| a | b |\n|---|---|\n| 1 | 2 |",
    ]
    # Special tokens, whole, cut, joined, in other company.
    for s in ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<repo_name>", "<reponame>", "<file_sep>", "<filename>", "<gh_stars>",
              "<issue_start>", "<issue_comment>", "<issue_closed>", "<jupyter_start>", "<jupyter_text>", "<jupyter_code>",
              "<jupyter_output>", "<jupyter_script>", "<empty_output>",
              "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "a<|im_end|>b", "a <|im_end|> b", " <|im_end|>", "<|im_end|> ",
              "<|im_end|><|im_end|>", "<|im_start|><|im_end|><|endoftext|>", "<|im_end", "|im_end|>", "<|im_ end|>", "<|IM_END|>",
              "<<|im_end|>>", "<|im_start|im_end|>", "<|im_<|im_end|>end|>", "x<repo_name>y<reponame>z", "<repo_<reponame>name>",
              "1<|endoftext|>2", "\n<|endoftext|>\n", "don't<|im_end|>'s", "  <|im_end|>  a", "<file_sep>\n\n<filename>", "<|unknown|>", "<s></s>", "[INST]",
              "字<|im_end|>字", "a\u0301<empty_output>\u0301"]:
        add(s)
    # Long words and runs.
    out += ["antidisestablishmentarianism", "Pneumonoultramicroscopicsilicovolcanoconiosis", "a" * 300, "ab" * 150, "A" * 65, "x" * 1000,
            "=" * 80, "-" * 100, "." * 33, "!" * 257, "_" * 129, "0" * 70, "é" * 99, "字" * 77, "🙂" * 21, " " * 100, " " * 257 + "x", "\n" * 50, "\t" * 65,
            "\u00a0" * 9 + "a", "ab " * 60, "Lorem ipsum dolor sit amet, consectetur adipiscing elit. " * 4, "donaudampfschifffahrtsgesellschaftskapitän" * 5]
    # Mixtures.
    rng = random.Random(20240607)
    pieces = ["a", "The", "the", "ing", "Z", "é", "ß", "字", "語", "ج", "न", "\u0301", "🙂", "\u200d", "1", "42", "٣", "½", " ", "  ", "\n", "\t", "\u00a0", "\u3000",
              "'", "'s", "'ll", "'RE", ".", ",", "!?", "-", "_", "(", "}", "<|im_end|>", "<|", "|>", "$", "\\", "/", "\r\n", "\x04", "\x7f", "\ufffd"]
    for _ in range(120):
        add("".join(rng.choice(pieces) for _ in range(rng.randint(2, 24))))
    # Any code points at all (no surrogates: those are not UTF-8).
    for _ in range(40):
        s = ""
        while len(s) < 8:
            c = rng.choice([rng.randrange(0x80), rng.randrange(0x800), rng.randrange(0x10000), rng.randrange(0x110000)])
            if not 0xD800 <= c < 0xE000:
                s += chr(c)
        add(s)
    return list(dict.fromkeys(out))


def broken():
    """Byte strings that are not UTF-8. llama.cpp aborts the process on 4-byte
    forms above U+10FFFF, so those are not here."""
    hexes = ["80", "ff", "c3", "61c3", "c361", "c3c3a9", "e282", "e28261", "e2", "f09f", "f09f99", "f09f9982f0", "61ff62", "fe", "f880808080", "fc8080808080",
             "c080", "c1bf", "e08080", "e09fbf", "f0808080", "f08fbfbf", "eda080", "edbfbf", "eda080edb080", "20ff20", "2020ff", "ff2773", "ff31", "31ff",
             "c2a0c2", "a0", "e38080e3", "6180806273", "3c7c696d5f656e647c3eff", "c33c7c696d5f656e647c3ea9", "ed", "eda0", "00ff00", "f4", "f48fbf"]
    rng = random.Random(7)
    out = [bytes.fromhex(h) for h in hexes]
    while len(out) < 90:
        b = bytes(rng.choice([0x20, 0x61, 0x27, 0x73, 0x80, 0xa0, 0xbf, 0xc2, 0xc3, 0xe2, 0x82, 0xed, 0xf0, 0x9f, 0xff]) for _ in range(rng.randint(1, 9)))
        out.append(b)
    return out


# --- all code points --------------------------------------------------------

SEP = b"<|im_start|>"
BLOCK = 256


def probes(c: int):
    """Surroundings in which the class of a code point shows: the first tells
    signs from letters, the second and third tell digits and white space."""
    b = chr(c).encode("utf-8", "surrogatepass")
    return [b + b"'s", b" " + b, b"  " + b, b"a" + b + b"a", b + b" a", b + b + b"a"]


def codepoints(v: Vocab):
    out = []
    for first in range(0, 0x110000, BLOCK):
        ids = []
        for c in range(first, first + BLOCK):  # one call each: many specials in one text take llama.cpp quadratic time
            ids += v.encode(SEP.join(probes(c)), True)
        out.append(crc(ids))
    return out


# --- small vocabularies -----------------------------------------------------

def alphabet():
    """GPT-2's characters for the 256 bytes."""
    keep = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in keep]
    return {**{b: chr(b) for b in keep}, **{b: chr(256 + i) for i, b in enumerate(rest)}}


ALPHABET = alphabet()
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


def spec(tokens, merges, types=None, **special):
    """The serialized form of the Go package's Spec."""
    types = types or [NORMAL] * len(tokens)
    runs = []
    for t in types:
        if runs and runs[-1][0] == t:
            runs[-1][1] += 1
        else:
            runs.append([t, 1])
    return {"version": 1, "model": "gpt2", "pre": "smollm", "tokens": tokens, "types": runs, "merges": merges,
            "special": special, "add_bos": False, "add_eos": False, "chat_template": ""}


ROLE_KEYS = {"bos": "bos", "eos": "eos", "eot": "eot", "eom": "eom", "unk": "unknown", "pad": "padding", "fim_pre": "fim_pre", "fim_suf": "fim_suf",
             "fim_mid": "fim_mid", "fim_pad": "fim_pad", "fim_rep": "fim_rep", "fim_sep": "fim_sep"}


def load_spec(s, keys, pre="smollm") -> Vocab:
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "v.gguf")
        w = gguf.GGUFWriter(path, "llama")
        w.add_uint32("llama.block_count", 1)
        w.add_uint32("llama.context_length", 64)
        w.add_uint32("llama.embedding_length", 32)
        w.add_uint32("llama.feed_forward_length", 32)
        w.add_uint32("llama.attention.head_count", 1)
        w.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
        w.add_tokenizer_model("gpt2")
        w.add_tokenizer_pre(pre)
        w.add_token_list(s["tokens"])
        w.add_token_types([t for t, n in s["types"] for _ in range(n)])
        w.add_token_merges(s["merges"])
        for role, i in s["special"].items() if keys else ():
            w.add_uint32(f"tokenizer.ggml.{ROLE_KEYS[role]}_token_id", i)
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.close()
        return Vocab(path)


def model_case(name, s, texts, keys=True):
    v = load_spec(s, keys)
    rows = []
    for t in texts:
        row = {"text": t, "ids": v.encode(t.encode(), False)}
        if (x := v.encode(t.encode(), True)) != row["ids"]:
            row["special"] = x
        rows.append(row)
    every = list(range(v.size))
    return {"name": name, "keys": keys, "spec": s, "eog": v.eog(), "strings": rows,
            "pieces": hashlib.sha256(b"".join(struct.pack("<i", len(p)) + p for i in every for p in [v.decode([i], False), v.decode([i], True)])).hexdigest()}


def models():
    out = []
    base = [ALPHABET[b] for b in range(256)]
    texts = ["abcabc abc", "aaaaaaa", "a b  c", "it's", "<x>", "a<x>b<xy>c<x><y>", "é字🙂", "12 3", "  x", "ab\x04cd"]
    # Without keys for the special ids llama.cpp takes 11 for BOS and EOS.
    default = {"bos": 11, "eos": 11}
    # The one merge can never apply. (Without any, gguf-py leaves the key out.)
    out.append(model_case("no merges", spec(base, ["x yz"], **default), texts, keys=False))
    # Order of merging: lowest rank first, then leftmost.
    out.append(model_case("overlapping merges", spec(base + ["ab", "bc", "abc", "aa", "aaa", "Ġa"], ["b c", "a b", "a bc", "a a", "aa a", "Ġ a"], **default), texts, keys=False))
    # The first of two equal merges counts; a merge may be unreachable.
    out.append(model_case("repeated merges", spec(base + ["ab", "bc", "abc"], ["a b", "b c", "b c", "a b", "ab c", "x yz"], **default), texts, keys=False))
    # A merge whose result is no token: its ASCII characters stand alone, other bytes vanish.
    out.append(model_case("merge without token", spec(base + ["abc"], ["a b", "Ã ©", "ab c", "Ġ x"], **default), texts + ["abx", "é", "xé ab"], keys=False))
    # Bytes without a token vanish.
    out.append(model_case("missing bytes", spec([t for b, t in ALPHABET.items() if b not in (0x61, 0x04, 0xA9)] + ["bc"], ["b c"], **default), texts, keys=False))
    # Every type, longest special first, user-defined ones always.
    extra = ["<x>", "<xy>", "<y>", "<unk>", "<never>", "<0x41>", "<x><y>", "", "zz", "[oops]é"]
    kinds = [CONTROL, USER, CONTROL, UNKNOWN, UNUSED, BYTE, USER, CONTROL, 0, NORMAL]
    typed = ["<x>", "a<x>b", "<xy><x>", "<x><y>", "<x><x><y><y>", "<unk>", "<never>", "<0x41>", "zz", "<xy", "[EMPTY_263]", "a[EMPTY_263]b"]
    out.append(model_case("token types", spec(base + extra, ["z z"], [NORMAL] * 256 + kinds, **default), typed, keys=False))
    # Every text that ends generation, alone, of control type and of normal type.
    eog = ["<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>",
           "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~[",
           "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>", "<|file_sep|>",
           "<|fim_prefix|>", "<fim_suffix>", "<MID>", "<|channel|>", "<|message|>", "<|start|>", "<|constrain|>", "<file_sep>", "<bos>", "<|im_start|>"]
    small = [ALPHABET[b] for b in range(0x20, 0x7F)]  # enough to type these texts
    n = len(small)
    for t in eog:
        for kind in (CONTROL, NORMAL):
            out.append(model_case(f"end of generation {t} type {kind}", spec(small + [t], ["x yz"], [NORMAL] * n + [kind], bos=0, eos=1), [f"a{t}b"]))
    # Combinations with rules of their own, and ids given by keys.
    for ts, special in [
        (["<|return|>", "<|call|>", "<|end|>"], {}), (["<|calls|>", "<|flush|>", "<|end|>"], {}), (["<|return|>", "<|end|>"], {}),
        (["<|tool_response>", "</s>"], {}), (["<a>", "<b>", "<c>", "<d>"], {"eot": n, "eom": n + 1, "fim_pad": n + 2, "fim_rep": n + 3}),
        (["<a>", "<|im_end|>"], {"eot": n}), (["<a>", "<|fim_pad|>"], {"fim_pad": n}), (["<a>", "<reponame>"], {"fim_rep": n}), (["<a>", "<|file_sep|>"], {"fim_sep": n}),
        (["<a>", "<|fim_prefix|>"], {"fim_pre": n}),
    ]:
        s = spec(small + ts, ["x yz"], [NORMAL] * n + [CONTROL] * len(ts), bos=0, eos=1, **special)
        out.append(model_case("end of generation " + " ".join(ts), s, ["a" + "".join(ts)]))
    # Random merges over few letters, so that many compete.
    rng = random.Random(99)
    for k in range(6):
        tokens, merges = list(base), []
        pool = ["a", "b", "c", "Ġ", "'", "!"]
        for _ in range(30):
            x, y = rng.choice(pool), rng.choice(pool)
            merges.append(f"{x} {y}")
            if x + y not in pool:
                pool.append(x + y)
                if rng.random() < 0.8 and x + y not in tokens:
                    tokens.append(x + y)
        words = ["".join(rng.choice("aabbcc '!") for _ in range(rng.randint(1, 40))) for _ in range(40)]
        out.append(model_case(f"random merges {k}", spec(tokens, merges, bos=0, eos=1), words))
    return out


def main():
    path, dest = sys.argv[1:]
    v = Vocab(path)
    rows = []
    for s in strings():
        b = s.encode()
        row = {"text": s, "ids": v.encode(b, False)}
        if (x := v.encode(b, True)) != row["ids"]:
            row["special"] = x
        if (d := v.decode(row["ids"], False)) != b:
            row["decoded_hex"] = d.hex()
        rows.append(row)
    for b in broken():
        row = {"hex": b.hex(), "ids": v.encode(b, False)}
        if (x := v.encode(b, True)) != row["ids"]:
            row["special"] = x
        if (d := v.decode(row["ids"], False)) != b:
            row["decoded_hex"] = d.hex()
        rows.append(row)
    runs = []
    for s, n in [("a", 1_000_000), (" ", 1_000_000), ("\n", 200_000), ("=", 200_000), ("ab", 200_000), ("a ", 200_000), ("é", 100_000), ("1", 100_000), ("<|im_end|>", 2_000)]:
        ids = v.encode(s.encode() * n, True)
        runs.append({"text": s, "times": n, "count": len(ids), "crc32": crc(ids)})
    every = range(v.size)
    pieces = {str(sp).lower(): hashlib.sha256(b"".join(struct.pack("<i", len(p)) + p for i in every for p in [v.decode([i], sp)])).hexdigest() for sp in (False, True)}
    data = {
        "model": os.path.basename(path), "llama_cpp_python": L.__version__, "tokens": v.size, "eog": v.eog(),
        "strings": rows, "runs": runs, "pieces": pieces, "codepoints": {"block": BLOCK, "crc32": codepoints(v)}, "models": models(),
    }
    with open(dest, "w") as f:
        f.write("{\n")
        for i, (k, x) in enumerate(data.items()):
            f.write(json.dumps(k) + ": ")
            if isinstance(x, list) and x and isinstance(x[0], dict):
                f.write("[\n" + ",\n".join(json.dumps(y, separators=(",", ":")) for y in x) + "\n]")
            else:
                f.write(json.dumps(x, separators=(",", ":")))
            f.write(",\n" if i < len(data) - 1 else "\n")
        f.write("}\n")
    print(f"{dest}: {len(rows)} strings, {len(runs)} runs, {len(data['models'])} small vocabularies, {os.path.getsize(dest)} bytes")


if __name__ == "__main__":
    main()
