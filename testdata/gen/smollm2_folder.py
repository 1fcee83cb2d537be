"""Writes the demonstration model as a folder of MLX's: the same weights, vocabulary and chat template.

    python testdata/gen/smollm2_folder.py MODEL.gguf OUT

OUT gets config.json, model.safetensors, tokenizer.json and tokenizer_config.json. Matrices of Q4_1 become MLX's codes of 4
bits in groups of 32, those of Q8_0 codes of 8 bits, whose scales and biases are float16 as the file's are; vectors stay as
they are. Every weight has the same value in both: a scale times a code, plus a bias, where -128 times a scale of Q8_0 is
checked to be a float16. Rows of queries and keys go back to the order of Hugging Face's, which GGUF files of Llama change.
Needs nothing but Python. Deterministic.
"""

import json
import struct
import sys
from pathlib import Path

F32, Q4_1, Q8_0 = 0, 3, 8
NAMES = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip
NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


class Reader:
    """The keys and tensors of a GGUF file."""

    def __init__(self, data):
        self.data, self.at = data, 4
        version, tensors, keys = self.number(4), self.number(10), self.number(10)
        if data[:4] != b"GGUF" or version != 3:
            raise SystemExit("no GGUF file of version 3")
        self.keys = {self.string(): self.value(self.number(4)) for _ in range(keys)}
        self.tensors = {}
        for _ in range(tensors):
            name = self.string()
            dims = [self.number(10) for _ in range(self.number(4))]
            self.tensors[name] = dims, self.number(4), self.number(10)
        align = self.keys.get("general.alignment", 32)
        self.begin = (self.at + align - 1) // align * align

    def number(self, kind):
        (v,) = struct.unpack_from(NUMBERS[kind], self.data, self.at)
        self.at += struct.calcsize(NUMBERS[kind])
        return v

    def string(self):
        n = self.number(10)
        self.at += n
        return self.data[self.at - n : self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.string()
        if kind != 9:
            return self.number(kind)
        of, n = self.number(4), self.number(10)
        return [self.value(of) for _ in range(n)]

    def bytes(self, name):
        dims, kind, offset = self.tensors[name]
        n = 1
        for d in dims:
            n *= d
        size = {F32: 4 * n, Q4_1: n // 32 * 20, Q8_0: n // 32 * 34}[kind]
        return self.data[self.begin + offset : self.begin + offset + size]


def interleave(parts):
    """A byte of each part after another."""
    out = bytearray(len(parts) * len(parts[0]))
    for i, p in enumerate(parts):
        out[i :: len(parts)] = p
    return bytes(out)


def either(low, high):
    """Bytes with these low and high halves, given as bytes below 16."""
    n = len(low)
    return (int.from_bytes(low, "little") | int.from_bytes(high, "little") << 4).to_bytes(n, "little")


def codes4(data):
    """Codes, scales and biases of blocks of Q4_1. Byte i of a block has elements i and i + 16, MLX's 2i and 2i + 1."""
    low, high = bytes(b & 15 for b in range(256)), bytes(b >> 4 for b in range(256))
    plane = [data[4 + i :: 20] for i in range(16)]
    out = [either(plane[2 * i].translate(half), plane[2 * i + 1].translate(half)) for half in (low, high) for i in range(8)]
    return interleave(out), interleave([data[0::20], data[1::20]]), interleave([data[2::20], data[3::20]])


def codes8(data):
    """Those of Q8_0: a code is 128 more, and the bias -128 times the scale."""
    flip = bytes(b ^ 128 for b in range(256))
    scales = interleave([data[0::34], data[1::34]])
    d = struct.unpack(f"<{len(scales) // 2}e", scales)
    biases = struct.pack(f"<{len(d)}e", *(-128 * v for v in d))
    if any(a != -128 * b for a, b in zip(struct.unpack(f"<{len(d)}e", biases), d)):
        raise SystemExit("128 times a scale is no float16")
    return interleave([data[2 + i :: 34].translate(flip) for i in range(32)]), scales, biases


def unpermuted(data, heads, rows):
    """The rows of queries or keys, of which GGUF's turns 2i and 2i + 1 of a head together, and Hugging Face's i and i + half."""
    row, half = len(data) // rows, rows // heads // 2
    out = []
    for h in range(heads):
        for part in range(2):
            for i in range(half):
                at = (h * 2 * half + 2 * i + part) * row
                out.append(data[at : at + row])
    return b"".join(out)


def write_tensors(path, tensors):
    header, at = {"__metadata__": {"format": "mlx"}}, 0
    for name in sorted(tensors):
        kind, shape, data = tensors[name]
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name in sorted(tensors):
            f.write(tensors[name][2])


def write_tokenizer(out, keys):
    tokens, kinds = keys["tokenizer.ggml.tokens"], keys["tokenizer.ggml.token_type"]
    if keys["tokenizer.ggml.model"] != "gpt2" or keys["tokenizer.ggml.pre"] != "smollm" or set(kinds) - {1, 3}:
        raise SystemExit("want byte-level BPE as SmolLM has it, with plain tokens and special ones")
    special = [i for i, kind in enumerate(kinds) if kind == 3]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    (out / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": tokens[i], **flags} for i in special],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, level]},
        "post_processor": None, "decoder": {**level, "add_prefix_space": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False,
                  "byte_fallback": False, "ignore_merges": False, "vocab": {t: i for i, t in enumerate(tokens)}, "merges": keys["tokenizer.ggml.merges"]},
    }))  # fmt: skip
    (out / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "GPT2Tokenizer", "add_prefix_space": False, "chat_template": keys["tokenizer.chat_template"],
        "bos_token": tokens[keys["tokenizer.ggml.bos_token_id"]], "eos_token": tokens[keys["tokenizer.ggml.eos_token_id"]],
    }))  # fmt: skip


def main(source, out):
    out.mkdir(exist_ok=True)
    f = Reader(Path(source).read_bytes())
    llama = {k.removeprefix("llama."): v for k, v in f.keys.items() if k.startswith("llama.")}
    heads, kv = llama["attention.head_count"], llama["attention.head_count_kv"]
    four, eight = {"group_size": 32, "bits": 4}, {"group_size": 32, "bits": 8}
    quantization, tensors = dict(four), {}
    for name, (dims, kind, _) in f.tensors.items():
        words, data = name.split("."), f.bytes(name)
        module = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}.get(words[0]) or f"model.layers.{words[1]}.{NAMES[words[2]]}"
        shape = dims[::-1]
        if words[-2] in ("attn_q", "attn_k"):
            data = unpermuted(data, heads if words[-2] == "attn_q" else kv, shape[0])
        if kind == F32:
            tensors[module + ".weight"] = "F32", shape, data
            continue
        if kind == Q8_0:
            quantization[module] = eight
        codes, scales, biases = (codes4 if kind == Q4_1 else codes8)(data)
        tensors[module + ".weight"] = "U32", [shape[0], len(codes) // shape[0] // 4], codes
        for part, v in ((".scales", scales), (".biases", biases)):
            tensors[module + part] = "F16", [shape[0], shape[1] // 32], v
    write_tensors(out / "model.safetensors", tensors)
    write_tokenizer(out, f.keys)
    (out / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
        "hidden_size": llama["embedding_length"], "intermediate_size": llama["feed_forward_length"], "num_hidden_layers": llama["block_count"],
        "num_attention_heads": heads, "num_key_value_heads": kv, "max_position_embeddings": llama["context_length"],
        # The shortest decimal that is the file's float32.
        "rms_norm_eps": float(f"{llama['attention.layer_norm_rms_epsilon']:.7g}"), "rope_theta": llama["rope.freq_base"], "vocab_size": llama["vocab_size"],
        "tie_word_embeddings": "output.weight" not in f.tensors, "attention_bias": False, "mlp_bias": False,
        "bos_token_id": f.keys["tokenizer.ggml.bos_token_id"], "eos_token_id": f.keys["tokenizer.ggml.eos_token_id"],
        "quantization": quantization, "quantization_config": quantization,
    }, indent=1))  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
