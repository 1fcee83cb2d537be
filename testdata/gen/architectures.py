"""Small models of each architecture that frontend/gguf records, with what llama.cpp computes of them.

    python testdata/gen/architectures.py [OUT [NAME …]]      (OUT: testdata/architectures)

writes OUT/NAME.gguf.gz, by the gguf package, with matrices of several types (random blocks, few different ones, so that the
files are small), and OUT/NAME.json: `ids`, a prompt of PROMPT tokens and the STEPS that follow it, each the one with the
largest logit; `logits`, those behind the prompt, one and STEPS - 1 tokens later; `min_gap`, by how much a chosen token's
logit was the largest at least.

    python testdata/gen/architectures.py --types OUT [TYPE …]

writes models of each architecture whose matrices all have one type, for each type, as ggml quantizes random numbers: OUT/NAME-TYPE.gguf
and .json. There `same`
says what llama.cpp computes of that very file, whose products are of rounded activations: of how many of the STEPS tokens it has the same
one, when it is given those before, and by how much the logits that are kept differ at most.

Oracle: llama.cpp with float32 cache and no flash attention on a file in which the same
weights are float32 (of blocks it would round activations to 8 bits). Deterministic. Versions: requirements.txt.
"""

import ctypes
import gzip
import io
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from blocks_model import matrix
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFWriter
from gguf.quants import dequantize
from llama_cpp._ggml import libggml as GGML
from llamacpp import VERSION, Context, Model

VOCAB, CONTEXT, PROMPT, STEPS, MIN_GAP = 96, 128, 11, 64, 0.004
ALONE = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "MXFP4", "F16", "BF16")
TYPES = ("Q4_K", "Q8_0", "F16", "Q4_0", "Q6_K", "F32", "Q5_K", "Q4_1", "Q5_0", "IQ4_NL")


class Arch:
    """One model: the sizes that differ from these, keys of its own, and which tensors a layer has beside Llama's."""

    def __init__(self, arch, layers=2, emb=256, ffn=512, heads=4, kv=2, dim=64, theta=10000.0, tied=True,
                 keys=(), biases=(), head_norms=False, factors=None, experts=0, used=2, expert_ffn=256, shared=0, shared_gate=False,
                 fused=False, turned=None, long=None, oss=False, post=0, gap=None, varied=1):  # fmt: skip
        self.__dict__.update(locals())


# llama.cpp looks gelu up in a table of float16.
GELU = 0.02
FLOAT, STRING, COUNT, ARRAY = "add_float32", "add_string", "add_uint32", "add_array"
MODELS = {
    "llama": Arch("llama", tied=False, biases=("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")),
    # Factors as those of Llama 3.1: high frequencies stay, low ones are divided by 8.
    "llama3": Arch("llama", kv=1, theta=500000.0, factors=[1.0] * 12 + [1.5, 2.0, 3.0, 4.0, 6.0] + [8.0] * 15),
    "llama-linear": Arch("llama", keys=((STRING, "rope.scaling.type", "linear"), (FLOAT, "rope.scaling.factor", 4.0))),
    "qwen2": Arch("qwen2", heads=6, kv=2, emb=768, ffn=256, dim=128, theta=1e6, biases=("attn_q", "attn_k", "attn_v")),
    "qwen3": Arch("qwen3", heads=4, kv=2, dim=128, theta=1e6, head_norms=True),
    "smollm3": Arch("smollm3", layers=5, theta=5e6),
    "granite": Arch("granite", keys=((FLOAT, "logit_scale", 8.0), (FLOAT, "residual_scale", 0.22), (FLOAT, "embedding_scale", 12.0),
                                     (FLOAT, "attention.scale", 0.015625))),  # fmt: skip
    "phi3": Arch("phi3", kv=4, tied=False, fused=True, keys=((COUNT, "attention.sliding_window", 100),)),
    "mixtral": Arch("llama", experts=4, ffn=256),
    "qwen3moe": Arch("qwen3moe", heads=2, kv=1, dim=128, experts=8, used=3, head_norms=True,
                     keys=((COUNT, "expert_feed_forward_length", 256),)),  # fmt: skip
    "qwen2moe": Arch("qwen2moe", tied=False, experts=6, biases=("attn_q", "attn_k", "attn_v"), shared=512, shared_gate=True,
                     keys=((COUNT, "expert_feed_forward_length", 256), (COUNT, "expert_shared_feed_forward_length", 512))),  # fmt: skip
    "granitemoe": Arch("granitemoe", experts=4, ffn=256, shared=256,
                       keys=((FLOAT, "logit_scale", 6.0), (FLOAT, "residual_scale", 0.22), (FLOAT, "embedding_scale", 12.0),
                             (FLOAT, "attention.scale", 0.0078125), (COUNT, "expert_shared_feed_forward_length", 256))),  # fmt: skip
    # Windows are shorter than what is generated.
    "gemma2": Arch("gemma2", layers=3, heads=2, kv=1, dim=256, post=12, gap=0.03, varied=5,
                   keys=((COUNT, "attention.sliding_window", 24), (FLOAT, "attn_logit_softcapping", 5.0), (FLOAT, "final_logit_softcapping", 10.0))),
    "gemma3": Arch("gemma3", layers=7, emb=256, ffn=256, heads=2, kv=1, dim=128, theta=1e6, post=4, head_norms=True, tied=False, gap=0.03, varied=3,
                   keys=((COUNT, "attention.sliding_window", 20), (STRING, "rope.scaling.type", "linear"), (FLOAT, "rope.scaling.factor", 8.0))),
    "gemma3-pattern": Arch("gemma3", layers=3, heads=4, kv=2, dim=64, theta=1e6, post=4, head_norms=True, tied=False, gap=0.015, varied=3,
                           keys=((COUNT, "attention.sliding_window", 30), (ARRAY, "attention.sliding_window_pattern", [True, False, True]),
                                 (FLOAT, "rope.freq_base_swa", 20000.0), (FLOAT, "final_logit_softcapping", 12.0))),  # fmt: skip
    # Trained for 32 positions.
    "qwen3-yarn": Arch("qwen3", heads=2, kv=1, dim=128, head_norms=True, gap=0.01, varied=4,
                       keys=((STRING, "rope.scaling.type", "yarn"), (FLOAT, "rope.scaling.factor", 4.0), (COUNT, "rope.scaling.original_context_length", 32))),
    # One that turns a part of its heads in a long context, and one in a short one.
    "phi3-long": Arch("phi3", heads=2, kv=2, dim=128, turned=96, fused=True, long=0.2, gap=0.1, varied=3,
                      keys=((STRING, "rope.scaling.type", "longrope"), (COUNT, "rope.scaling.original_context_length", 64), (FLOAT, "rope.scaling.attn_factor", 1.25))),
    "phi3-short": Arch("phi3", kv=4, fused=True, long=0.3, gap=0.01, varied=4,
                       keys=((COUNT, "rope.scaling.original_context_length", 512), (FLOAT, "rope.scaling.attn_factor", 1.2))),
    # Biases of experts are such that gates are clamped.
    "gpt-oss": Arch("gpt-oss", layers=3, theta=150000.0, tied=False, experts=5, used=2, oss=True, biases=("attn_q", "attn_k", "attn_v", "attn_output"),
                    gap=0.01, varied=4, keys=((COUNT, "expert_feed_forward_length", 256), (COUNT, "attention.sliding_window", 16),
                    (STRING, "rope.scaling.type", "yarn"), (FLOAT, "rope.scaling.factor", 32.0), (COUNT, "rope.scaling.original_context_length", 64))),
}  # fmt: skip


def dense(rng, n, k, spread):
    """n×k random numbers, few of them different."""
    return np.resize(rng.standard_normal(1009) * spread, (n, k)).astype(np.float32)


def bf16(raw):
    """The bytes of numbers in bfloat16, rounded to nearest even, and their values."""
    bits = raw.view(np.uint32).astype(np.uint64)
    bits = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return bits.view(np.uint8).reshape(*raw.shape[:-1], -1), (bits.astype(np.uint32) << 16).view(np.float32)


def quantized(raw, kind):
    """The bytes of numbers in a type by ggml, and the values that they stand for."""
    if kind == "BF16":
        return bf16(raw)
    qtype = GGMLQuantizationType[kind]
    weights, size = GGML_QUANT_SIZES[qtype]
    rows, k = raw.shape
    out = np.empty((rows, k // weights * size), np.uint8)
    raw = np.ascontiguousarray(raw, np.float32)
    floats = raw.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    GGML.ggml_quantize_chunk(ctypes.c_int(qtype), floats, out.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(0), ctypes.c_int64(rows), ctypes.c_int64(k), None)
    return out, dequantize(out, qtype)


def write(path, m, exact, seed, alone=None):
    """Writes a model; exact: all weights as float32, with the values that the other file has. alone: the type of all matrices."""
    rng = np.random.default_rng(seed)
    f = GGUFWriter(path, m.arch)
    f.add_block_count(m.layers)
    f.add_embedding_length(m.emb)
    f.add_feed_forward_length(m.ffn)
    f.add_head_count(m.heads)
    f.add_head_count_kv(m.kv)
    f.add_key_length(m.dim)
    f.add_value_length(m.dim)
    f.add_rope_dimension_count(m.turned or m.dim)
    f.add_context_length(CONTEXT)
    f.add_layer_norm_rms_eps(1e-5)
    f.add_rope_freq_base(m.theta)
    if m.experts:
        f.add_expert_count(m.experts)
        f.add_expert_used_count(m.used)
    for add, key, value in m.keys:
        getattr(f, add)(f"{m.arch}.{key}", value)
    f.add_tokenizer_model("gpt2")
    f.add_tokenizer_pre("smollm")
    f.add_token_list([chr(ord("A") + i) for i in range(VOCAB - 1)] + ["AB"])
    f.add_token_merges(["A B"])
    kinds = 0

    def put(name, n, k, many=1, kind=None):
        nonlocal kinds
        kind = alone or kind
        if kind is None:
            kind = TYPES[kinds % len(TYPES)]
            kinds += 1
        if alone:
            raw, values = quantized((rng.standard_normal((many * n, k)) * k**-0.5).astype(np.float32), kind)
            if many > 1:
                raw, values = raw.reshape(many, n, -1), values.reshape(many, n, k)
            if exact:
                f.add_tensor(name, values.astype(np.float32))
            elif kind == "F16":
                f.add_tensor(name, raw.view(np.float16))
            else:
                f.add_tensor(name, raw, raw_dtype=GGMLQuantizationType[kind])
            return
        if kind in ("F32", "F16"):
            raw = dense(rng, many * n, k, k**-0.5).astype(np.float16 if kind == "F16" else np.float32)
            raw = raw.reshape((many, n, k) if many > 1 else (n, k))
            f.add_tensor(name, raw.astype(np.float32) if exact else raw)
            return
        raw, values = matrix(rng, kind, many * n, k, 101 if n == VOCAB else 37)  # no two tokens have the same row
        if many > 1:
            raw, values = raw.reshape(many, n, -1), values.reshape(many, n, k)
        if exact:
            f.add_tensor(name, values.astype(np.float32))
        else:
            f.add_tensor(name, raw, raw_dtype=GGMLQuantizationType[kind])

    def vector(name, n, around, spread):
        f.add_tensor(name, (around + spread * rng.standard_normal(n)).astype(np.float32))

    put("token_embd.weight", VOCAB, m.emb)
    if not m.tied:
        put("output.weight", VOCAB, m.emb)
    vector("output_norm.weight", m.emb, 1, 0.2)
    if m.factors:
        f.add_tensor("rope_freqs.weight", np.array(m.factors, np.float32))
    if m.long:
        pairs = np.arange((m.turned or m.dim) // 2)
        f.add_tensor("rope_factors_long.weight", (1 + pairs * m.long).astype(np.float32))
        f.add_tensor("rope_factors_short.weight", (1 + pairs * m.long / 4).astype(np.float32))
    q, kv = m.heads * m.dim, m.kv * m.dim
    for i in range(m.layers):
        at = f"blk.{i}."
        vector(at + "attn_norm.weight", m.emb, 1, 0.2)
        vector(at + ("post_attention_norm.weight" if m.oss else "ffn_norm.weight"), m.emb, 1, 0.2)
        if m.oss:
            vector(at + "attn_sinks.weight", m.heads, 1, 1.5)
            vector(at + "ffn_gate_inp.bias", m.experts, 0, 0.5)
            for name, n in (("ffn_gate_exps", m.expert_ffn), ("ffn_up_exps", m.expert_ffn), ("ffn_down_exps", m.emb)):
                f.add_tensor(at + name + ".bias", (rng.standard_normal((m.experts, n)) * (1 if n == m.emb and "down" in name else 5)).astype(np.float32))
        shapes = [("attn_q", q, m.emb), ("attn_k", kv, m.emb), ("attn_v", kv, m.emb), ("attn_output", m.emb, q)]
        if m.fused:
            shapes = [("attn_qkv", q + 2 * kv, m.emb), ("attn_output", m.emb, q), ("ffn_up", 2 * m.ffn, m.emb), ("ffn_down", m.emb, m.ffn)]
        if m.experts:
            f.add_tensor(at + "ffn_gate_inp.weight", (rng.standard_normal((m.experts, m.emb)) * 2 * m.emb**-0.5).astype(np.float32))
            wide = m.expert_ffn
            for name, n, k in (("ffn_gate_exps", wide, m.emb), ("ffn_up_exps", wide, m.emb), ("ffn_down_exps", m.emb, wide)):
                put(at + name + ".weight", n, k, m.experts, "MXFP4" if m.oss else None)
        elif not m.fused:
            shapes += [("ffn_gate", m.ffn, m.emb), ("ffn_up", m.ffn, m.emb), ("ffn_down", m.emb, m.ffn)]
        if m.shared:
            shapes += [("ffn_gate_shexp", m.shared, m.emb), ("ffn_up_shexp", m.shared, m.emb), ("ffn_down_shexp", m.emb, m.shared)]
        if m.shared_gate:
            vector(at + "ffn_gate_inp_shexp.weight", m.emb, 0, 0.1)
        for name, n, k in shapes:
            put(at + name + ".weight", n, k)
            if name in m.biases:
                vector(at + name + ".bias", n, 0, 0.3)
        if m.post:
            vector(at + "post_attention_norm.weight", m.emb, m.post, m.post / 5)
            vector(at + "post_ffw_norm.weight", m.emb, m.post, m.post / 5)
        if m.head_norms:
            vector(at + "attn_q_norm.weight", m.dim, 1, 0.2)
            vector(at + "attn_k_norm.weight", m.dim, 1, 0.2)
    f.write_header_to_file()
    f.write_kv_data_to_file()
    f.write_tensors_to_file()
    f.close()


def generate(context, prompt):
    """The prompt with STEPS tokens, some logits, and by how much a token was the largest at least."""
    ids = [int(i) for i in prompt]
    logits = context.logits(ids).copy()
    kept, gap = [logits], np.inf
    for step in range(STEPS):
        second, first = np.argsort(logits)[-2:]
        gap = min(gap, float(logits[first] - logits[second]))
        ids.append(int(first))
        logits = context.logits(ids[-1:]).copy()
        if step in (0, STEPS - 2):
            kept.append(logits)
    return ids, kept, gap


def choose(context, m, seed, tries, varied):
    """Of the first prompts the one whose tokens vary and no order of a sum decides, or else the one that comes nearest to that."""
    best = None
    for prompt in range(tries):
        context.clear()
        ids, kept, gap = generate(context, np.random.default_rng([*seed, prompt]).integers(0, VOCAB, PROMPT))
        good = len(set(ids[PROMPT:])) >= varied, min(gap, m.gap or MIN_GAP)
        if best is None or good > best[0]:
            best = good, ids, kept, gap
        if good == (True, m.gap or MIN_GAP):
            break
    return best[1:]


def values_of(m, ids, kept, gap):
    values = {
        "oracle": VERSION, "prompt": PROMPT, "ids": ids, "min_gap": gap,
        "logits": [[round(float(v), 6) for v in row] for row in kept],
    }  # fmt: skip
    if m.post:
        values["tolerance"] = GELU
    return values


def same_file(path, ids, kept):
    """What llama.cpp computes of a file itself."""
    context = Context(Model(path, extra_bufts=False), CONTEXT, threads=1, exact=True)
    tokens, worst, at = 0, 0.0, 0
    for step in range(STEPS):
        logits = context.logits(ids[:PROMPT] if step == 0 else ids[PROMPT + step - 1 : PROMPT + step])
        tokens += int(np.argmax(logits) == ids[PROMPT + step])
        if step in (0, 1, STEPS - 1):
            worst = max(worst, float(np.abs(logits - kept[at]).max()))
            at += 1
    context.close()
    return {"tokens": tokens, "worst": worst}


def one_type(out, kinds):
    out.mkdir(exist_ok=True)
    for number, (name, m) in enumerate(MODELS.items()):
        if any(key == "embedding_scale" for _, key, _ in m.keys):
            m.tied = False  # or else the embedding, which is multiplied, has each token chosen again
        for kind in kinds or ALONE:
            path, exact = Path(out, f"{name}-{kind}.gguf"), Path(out, f"{name}-{kind}-f32.gguf")
            seed = [number, ALONE.index(kind)]
            write(path, m, False, seed, kind)
            write(exact, m, True, seed, kind)
            context = Context(Model(exact, extra_bufts=False), CONTEXT, threads=1, exact=True)
            ids, kept, gap = choose(context, m, seed, 100, max(m.varied, 4))
            context.close()
            exact.unlink()
            values = values_of(m, ids, kept, gap)
            values["same"] = same_file(path, ids, kept)
            Path(out, f"{name}-{kind}.json").write_text(json.dumps(values) + "\n")
            print(name, kind, path.stat().st_size, "bytes, gap", gap, "different", len(set(ids[PROMPT:])), "same file", values["same"], flush=True)


def main(out, names):
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, m) in enumerate(MODELS.items()):
            if names and name not in names:
                continue
            path, exact = Path(folder, name + ".gguf"), Path(folder, name + "-f32.gguf")
            write(path, m, False, 500 + number)
            write(exact, m, True, 500 + number)
            packed = io.BytesIO()
            with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=9, mtime=0) as z:
                z.write(path.read_bytes())
            Path(out, name + ".gguf.gz").write_bytes(packed.getvalue())

            context = Context(Model(exact, extra_bufts=False), CONTEXT, threads=1, exact=True)
            # the first with which no order of a sum decides over a token
            ids, kept, gap = choose(context, m, [number], 200 if m.varied > 1 else 100, m.varied)
            context.close()
            values = values_of(m, ids, kept, gap)
            Path(out, name + ".json").write_text(json.dumps(values) + "\n")
            print(name, len(packed.getvalue()), "bytes, gap", gap)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--types"]:
        one_type(Path(sys.argv[2]), sys.argv[3:])
        sys.exit()
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / "architectures"), sys.argv[2:])
