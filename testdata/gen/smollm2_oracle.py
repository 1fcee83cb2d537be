"""Writes testdata/model-oracle/smollm2.json: what the demonstration model must
answer, logits included.

    python testdata/gen/smollm2_oracle.py [--check] MODEL.gguf OUT.json
    python testdata/gen/smollm2_oracle.py --half-cache MODEL.gguf OUT.json
    python testdata/gen/smollm2_oracle.py --q8-cache MODEL.gguf OUT.json

MODEL is SmolLM2-135M-Instruct.Q4_1.gguf. llama.cpp runs its weights as float32
(smollm2_f32.py, into a temporary folder), with a float32 key/value cache and no
flash attention: then it computes the model itself, without the 8-bit
activations of its quantized kernels. Each prompt goes in as one batch, then 47
tokens one by one, always the one with the largest logit, end-of-generation
tokens like any other.

--check computes all logits again by a float64 forward pass, written below from
the architecture and the quantized file alone, prints the largest difference of
each run, and fails where it passes CHECK_TOLERANCE. OUT is the same without it.

--half-cache reads OUT, as it was written before, and writes smollm2_half_cache.json
beside it: the largest logits of the same tokens where keys, behind rope, and
values are rounded to float16, by the float64 forward pass. It fails where that
would choose another token. --q8-cache writes smollm2_q8_cache.json, with keys and
values as gguf-py quantizes to q8_0. Where that would choose another token, the
run ends with it.

The script refuses a prompt at any of whose steps the two largest logits are
closer than MIN_GAP: there the order of a sum could decide the text.

See README.md beside this file for the format. Versions: requirements.txt.
"""

import argparse
import hashlib
import json
import os
import tempfile

# Before llama.cpp loads OpenMP: threads that spin while they wait make a run
# minutes long when other programs share the cores. No influence on values.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import gguf
import numpy as np
from jinja2.sandbox import ImmutableSandboxedEnvironment

import llamacpp
import smollm2_f32

STEPS = 48
TOP = 20
HALF_TOP = 5
THREADS = 2
MIN_GAP = 0.02
CHECK_TOLERANCE = 2e-4  # logits reach 40; measured: README.md

# The first tokens of the run "capital", known before this script was.
PUBLIC_IDS = [7042, 30, 198, 198, 504, 2988, 314, 42, 216, 34, 32, 33, 40, 29, 32, 33,
              29, 34, 34, 216, 33, 34, 42, 33, 34, 42, 37, 35, 30, 2, 198, 1]
PUBLIC_TOP = [(7042, 17.3713), (260, 14.8886), (4528, 13.2450), (2250, 13.0095), (1315, 12.9515)]

PLAIN = {
    "capital": "The capital of France is",
    "prose": (
        "Once upon a time, in a small village at the foot of a mountain, there lived an old clockmaker who had never been late "
        "in his life. Every morning at six he opened the shutters, swept the step before his door, and wound the clocks one after "
        "another, from the smallest watch on the shelf to the tall one in the corner. The children of the village said that he "
        "could hear a second that was too long. But one winter morning, when the snow lay so high that nobody could open a door, "
        "the clocks stopped, all of them, at the same moment. This was the beginning of the story of"
    ),
    "code": 'def fibonacci(n):\n    """Return the n-th Fibonacci number."""\n    if n < 2:\n        return n\n',
    "list": "Shopping list:\n1. 12 eggs\n2. 3 lemons\n3. 250 g of butter\n4.",
    "unicode": "Größe, naïveté, ἀρχή, Москва, 東京, 🙂 – ",
}

CHAT = {
    "chat-haiku": [{"role": "user", "content": "Write a haiku about the sea."}],
    "chat-code": [{"role": "user", "content": "Write a Python function that reverses a string."}],
    "chat-system": [
        {"role": "system", "content": "You are a pirate. Answer like one."},
        {"role": "user", "content": "How do I tie a bowline knot?"},
    ],
    "chat-turns": [
        {"role": "user", "content": "Name three primary colours."},
        {"role": "assistant", "content": "Red, yellow and blue."},
        {"role": "user", "content": "Which two of them make green?"},
    ],
}


def prompts(path, model):
    """The runs, without answers, in the order of the file."""
    fields = gguf.GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"]
    special = {n: tokens.contents(fields[f"tokenizer.ggml.{n}_id"].contents()) for n in ("bos_token", "eos_token")}
    # As Hugging Face transformers and llama-cpp-python set it up.
    template = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(
        fields["tokenizer.chat_template"].contents())
    for name, text in PLAIN.items():
        yield {"name": name, "prompt": text, "parse_special": False, "prompt_ids": model.encode(text, False)}
    for name, messages in CHAT.items():
        text = template.render(messages=messages, add_generation_prompt=True, **special)
        yield {"name": name, "messages": messages, "prompt": text, "parse_special": True, "prompt_ids": model.encode(text, True)}


def order(logits, n):
    """Ids of the n largest logits, largest first, the smaller id first on a tie."""
    among = np.flatnonzero(logits >= np.partition(logits, -n)[-n])
    return among[np.lexsort((among, -logits[among]))][:n]


def answer(run, model, context):
    """Adds llama.cpp's answer to run; returns its logits, [STEPS, vocabulary]."""
    context.clear()
    logits = np.empty((STEPS, model.vocab_size), np.float32)
    ids, feed = [], run["prompt_ids"]
    for step in range(STEPS):
        logits[step] = context.logits(feed)
        ids.append(int(order(logits[step], 1)[0]))
        feed = ids[-1:]
    run["ids"] = ids
    run["text"] = model.decode(ids)
    best = np.sort(logits.astype(np.float64), axis=1)[:, -2:]
    gaps = best[:, 1] - best[:, 0]
    run["min_gap"] = round(float(gaps.min()), 6)
    run["min_gap_step"] = int(gaps.argmin())
    run["top"] = [[[int(i), round(float(row[i]), 6)] for i in order(row, TOP)] for row in logits]
    if run["min_gap"] < MIN_GAP:
        raise SystemExit(f"{run['name']}: at step {run['min_gap_step']} the two largest logits are {run['min_gap']} apart, "
                         f"want {MIN_GAP}: choose another prompt")
    return logits


def check_public(run):
    """Compares the first run with the ids and logits known before."""
    if run["ids"][:len(PUBLIC_IDS)] != PUBLIC_IDS:
        raise SystemExit(f"{run['name']}: ids {run['ids'][:len(PUBLIC_IDS)]}, want {PUBLIC_IDS}")
    for (got, logit), (want, known) in zip(run["top"][0], PUBLIC_TOP):
        if got != want or abs(logit - known) > 2e-4:
            raise SystemExit(f"{run['name']}: first step has {got} at {logit}, want {want} at {known}")


class Float64:
    """A llama decoder in float64, the weights unrounded from their blocks."""

    def __init__(self, path, cached=lambda x: x):
        """cached is what becomes of keys and values in the cache."""
        self.cached = cached
        reader = gguf.GGUFReader(path)
        field = lambda name: reader.fields[f"llama.{name}"].contents()
        self.layers = field("block_count")
        self.heads = field("attention.head_count")
        self.kv_heads = field("attention.head_count_kv")
        self.base = float(field("rope.freq_base"))
        self.eps = float(field("attention.layer_norm_rms_epsilon"))
        self.w = {}
        for t in reader.tensors:
            plain = t.tensor_type == smollm2_f32.Q.F32
            self.w[t.name] = t.data.astype(np.float64) if plain else smollm2_f32.exact(t.data, t.tensor_type)

    def norm(self, x, name):
        return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.eps) * self.w[name]

    def rope(self, x):
        """Turns pair (2i, 2i+1) of x [T, heads, D] at position t by t·base^(−2i/D)."""
        t, _, d = x.shape
        angle = np.arange(t)[:, None] * self.base ** (-np.arange(0, d, 2) / d)
        c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
        out = np.empty_like(x)
        out[..., 0::2] = x[..., 0::2] * c - x[..., 1::2] * s
        out[..., 1::2] = x[..., 0::2] * s + x[..., 1::2] * c
        return out

    def logits(self, ids, first):
        """Logits after each of ids[first:], [len(ids) - first, vocabulary]."""
        w, x = self.w, self.w["token_embd.weight"][ids]
        n = len(ids)
        mask = np.where(np.arange(n)[None, :] > np.arange(n)[:, None], -np.inf, 0.0)
        for layer in range(self.layers):
            b = f"blk.{layer}."
            h = self.norm(x, b + "attn_norm.weight")
            q = self.rope((h @ w[b + "attn_q.weight"].T).reshape(n, self.heads, -1))
            k = self.rope((h @ w[b + "attn_k.weight"].T).reshape(n, self.kv_heads, -1))
            v = (h @ w[b + "attn_v.weight"].T).reshape(n, self.kv_heads, -1)
            k, v = (np.repeat(self.cached(a), self.heads // self.kv_heads, axis=1) for a in (k, v))
            scores = np.einsum("thd,shd->hts", q, k) / np.sqrt(q.shape[-1]) + mask
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            scores /= scores.sum(axis=-1, keepdims=True)
            x = x + np.einsum("hts,shd->thd", scores, v).reshape(n, -1) @ w[b + "attn_output.weight"].T
            h = self.norm(x, b + "ffn_norm.weight")
            gate = h @ w[b + "ffn_gate.weight"].T
            x = x + (gate / (1 + np.exp(-gate)) * (h @ w[b + "ffn_up.weight"].T)) @ w[b + "ffn_down.weight"].T
        return self.norm(x[first:], "output_norm.weight") @ w["token_embd.weight"].T


def check_float64(run, logits, reference):
    """Compares a run with float64; returns the largest absolute difference."""
    prompt = run["prompt_ids"]
    want = reference.logits(prompt + run["ids"][:-1], len(prompt) - 1)
    worst = float(np.abs(logits - want).max())
    print(f"{run['name']}: largest difference from float64 {worst:.2e} over {want.size} logits, largest logit {np.abs(want).max():.1f}", flush=True)
    if want.argmax(axis=1).tolist() != run["ids"]:
        raise SystemExit(f"{run['name']}: float64 chooses {want.argmax(axis=1).tolist()}, llama.cpp {run['ids']}")
    if worst > CHECK_TOLERANCE:
        raise SystemExit(f"{run['name']}: difference {worst:.2e}, want at most {CHECK_TOLERANCE}")
    return worst


def q8_0(x):
    """x [..., D] as it is after gguf-py has quantized it to q8_0."""
    kind = gguf.GGMLQuantizationType.Q8_0
    rows = x.reshape(-1, x.shape[-1]).astype(np.float32)
    return gguf.quants.dequantize(gguf.quants.quantize(rows, kind), kind).astype(np.float64).reshape(x.shape)


def narrow_cache(model, path, what, cached):
    """Writes what becomes of the runs in path with a cache of fewer bits."""
    with open(path, encoding="utf-8") as f:
        known = json.load(f)
    reference = Float64(model, cached)
    runs = []
    for run in known["runs"]:
        prompt = run["prompt_ids"]
        logits = reference.logits(prompt + run["ids"][:-1], len(prompt) - 1)
        other = np.flatnonzero(logits.argmax(axis=1) != run["ids"])
        if len(other) and what == "half":
            raise SystemExit(f"{run['name']}: with a cache of float16 {logits.argmax(axis=1).tolist()}, else {run['ids']}")
        if len(other):
            logits = logits[:other[0] + 1]
            print(f"{run['name']}: another token at step {other[0]}", flush=True)
        moved = max(abs(row[i] - logit) for row, top in zip(logits, run["top"]) for i, logit in top)
        print(f"{run['name']}: a {what} cache moves the largest logits by up to {moved:.2e}", flush=True)
        runs.append({"name": run["name"], "top": [[[int(i), round(float(row[i]), 6)] for i in order(row, HALF_TOP)] for row in logits]})
    head = {"model": known["model"], "model_sha256": known["model_sha256"], "oracle": f"numpy {np.__version__}, float64", "top_n": HALF_TOP}
    with open(os.path.join(os.path.dirname(path), f"smollm2_{what}_cache.json"), "w", encoding="utf-8", newline="\n") as f:
        f.write(dump(head, runs))


def compact(value):
    return json.dumps(value, ensure_ascii=False)


def dump(head, runs):
    """JSON text, a line for each key and each step: changes show in a diff."""
    out = ["{"]
    out += [f" {compact(k)}: {compact(v)}," for k, v in head.items()]
    out.append(' "runs": [')
    for i, run in enumerate(runs):
        out.append("  {")
        out += [f"   {compact(k)}: {compact(v)}," for k, v in run.items() if k != "top"]
        out.append('   "top": [')
        out.append(",\n".join("    " + json.dumps(step, separators=(",", ":")) for step in run["top"]))
        out.append("   ]")
        out.append("  }" + ("," if i + 1 < len(runs) else ""))
    out += [" ]", "}"]
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description="write the oracle of the demonstration model")
    parser.add_argument("--check", action="store_true", help="compare with a float64 forward pass")
    parser.add_argument("--half-cache", action="store_true", help="write logits with a cache of float16 beside what was written before")
    parser.add_argument("--q8-cache", action="store_true", help="write logits with a cache of q8_0 beside what was written before")
    parser.add_argument("model")
    parser.add_argument("out")
    args = parser.parse_args()
    if args.half_cache:
        narrow_cache(args.model, args.out, "half", lambda x: x.astype(np.float16).astype(np.float64))
        return
    if args.q8_cache:
        narrow_cache(args.model, args.out, "q8", q8_0)
        return

    with open(args.model, "rb") as f:
        model_sha = hashlib.file_digest(f, "sha256").hexdigest()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f32.gguf")
        f32_sha = smollm2_f32.convert(args.model, path)
        print(f"float32 file: sha256 {f32_sha}", flush=True)
        # extra_bufts would choose AMX where there is any, which rounds to bf16 and
        # faults in some virtual machines.
        model = llamacpp.Model(path, extra_bufts=False)
        context = llamacpp.Context(model, 512, THREADS, exact=True)
        runs, logits = [], []
        for run in prompts(args.model, model):
            logits.append(answer(run, model, context))
            runs.append(run)
            print(f"{run['name']}: {len(run['prompt_ids'])} prompt ids, smallest gap {run['min_gap']} at step {run['min_gap_step']}", flush=True)
        context.close()
    check_public(runs[0])
    if args.check:
        reference = Float64(args.model)
        print(f"worst {max(check_float64(r, l, reference) for r, l in zip(runs, logits)):.2e}")
    head = {"model": os.path.basename(args.model), "model_sha256": model_sha, "f32_sha256": f32_sha, "oracle": llamacpp.VERSION,
            "steps": STEPS, "top_n": TOP}
    with open(args.out, "w", encoding="utf-8", newline="\n") as f:
        f.write(dump(head, runs))


if __name__ == "__main__":
    main()
