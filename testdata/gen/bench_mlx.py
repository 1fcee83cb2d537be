"""Measures MLX's CPU back end on the demonstration model, as one JSON object.

    python testdata/gen/bench_mlx.py [--threads N] [--rounds N] [--depth N] [--seconds S] [--decode-only]
                                      [--check ORACLE.json] MODEL.gguf

The phases of bench_llamacpp.py, or the decode phase only, and the same report,
without the uncounted round: nothing is compiled or tuned in it, and a round
takes 20 s. The weights stay quantized, in MLX's affine form with float32 scales
(bits 4 or 8, group 32: a lossless re-ordering of Q4_1 and Q8_0, compared value
by value when loading); activations and the key/value cache are float32. One
mx.eval a token, no mx.compile. MLX has no setting for its threads: --threads
binds the process to so many CPUs, and cpu_seconds_per_second says how many it
kept busy.

--check first runs the prompts of testdata/model-oracle/smollm2.json through the
same code, prompt as one batch and then token by token, prints the largest
difference from the stored logits to standard error, and fails above 1e-3.
Versions: requirements.txt.
"""

import importlib.metadata
import json
import os
import sys
import time

import numpy as np

from bench_llamacpp import DECODE, PROMPT, arguments, measure, tokens

CHECK_TOLERANCE = 1e-3
GROUP = 32


def affine(data, kind):
    """Blocks as MLX's (words u32 [N, K·bits/32], scales, biases f32 [N, K/32], bits).

    Element e of a row lies in bits bits·(e mod 32/bits) up of its word, and is
    scale·q + bias. Q4_1: scale d, bias m. Q8_0: q is the byte plus 128, scale d,
    bias −128·d.
    """
    rows = data.shape[0]
    if kind.name == "Q4_1":
        blocks = data.reshape(rows, -1, 20)
        d, m = (np.ascontiguousarray(blocks[:, :, i:i + 2]).view("<f2")[:, :, 0].astype(np.float32) for i in (0, 2))
        q = np.concatenate([blocks[:, :, 4:] & 15, blocks[:, :, 4:] >> 4], axis=2)
        packed, bits = q[:, :, 0::2] | q[:, :, 1::2] << 4, 4
    elif kind.name == "Q8_0":
        blocks = data.reshape(rows, -1, 34)
        d = np.ascontiguousarray(blocks[:, :, 0:2]).view("<f2")[:, :, 0].astype(np.float32)
        m, packed, bits = -128 * d, blocks[:, :, 2:] ^ 0x80, 8
    else:
        raise SystemExit(f"type {kind.name}; this script knows F32, Q4_1 and Q8_0")
    return np.ascontiguousarray(packed).reshape(rows, -1).view("<u4"), d, m, bits


class Llama:
    """A llama decoder in MLX with a cache of size tokens."""

    def __init__(self, path, size):
        reader = gguf.GGUFReader(path)
        field = lambda name: reader.fields[f"llama.{name}"].contents()
        self.layers = field("block_count")
        self.heads = field("attention.head_count")
        self.kv_heads = field("attention.head_count_kv")
        self.dim = field("rope.dimension_count")
        self.base = field("rope.freq_base")
        self.eps = field("attention.layer_norm_rms_epsilon")
        self.vocab = field("vocab_size")
        self.w = {}
        for t in reader.tensors:
            name = t.name.removesuffix(".weight")
            if t.tensor_type.name == "F32":
                self.w[name] = mx.array(t.data)
                continue
            words, scales, biases, bits = affine(np.array(t.data), t.tensor_type)
            self.w[name] = (mx.array(words), mx.array(scales), mx.array(biases), bits)
            got = np.array(mx.dequantize(*self.w[name][:3], group_size=GROUP, bits=bits))
            if not np.array_equal(got, dequantize(t.data, t.tensor_type)):
                raise SystemExit(f"{t.name}: MLX's values differ from those of the blocks")
        self.size = size
        self.clear()

    def clear(self):
        """Forgets all tokens."""
        shape = (1, self.kv_heads, self.size, self.dim)
        self.cache = [[mx.zeros(shape), mx.zeros(shape)] for _ in range(self.layers)]
        mx.eval(self.cache)
        self.used = 0

    def times(self, x, name):
        words, scales, biases, bits = self.w[name]
        return mx.quantized_matmul(x, words, scales, biases, transpose=True, group_size=GROUP, bits=bits)

    def embed(self, ids):
        words, scales, biases, bits = self.w["token_embd"]
        return mx.dequantize(words[ids], scales[ids], biases[ids], group_size=GROUP, bits=bits)

    def logits(self, ids):
        """Appends ids; logits [vocabulary] after the last, evaluated."""
        n, at = len(ids), self.used
        heads = lambda y: y.reshape(1, n, -1, self.dim).transpose(0, 2, 1, 3)
        turn = lambda y: mx.fast.rope(y, self.dim, traditional=True, base=self.base, scale=1.0, offset=at)
        x = self.embed(mx.array(ids))[None]
        for i, cache in enumerate(self.cache):
            b = f"blk.{i}."
            h = mx.fast.rms_norm(x, self.w[b + "attn_norm"], self.eps)
            q = turn(heads(self.times(h, b + "attn_q")))
            for store, new in zip(cache, (turn(heads(self.times(h, b + "attn_k"))), heads(self.times(h, b + "attn_v")))):
                store[:, :, at:at + n] = new
            k, v = (c[:, :, :at + n] for c in cache)
            a = mx.fast.scaled_dot_product_attention(q, k, v, scale=self.dim ** -0.5, mask="causal" if n > 1 else None)
            x = x + self.times(a.transpose(0, 2, 1, 3).reshape(1, n, -1), b + "attn_output")
            h = mx.fast.rms_norm(x, self.w[b + "ffn_norm"], self.eps)
            gate = self.times(h, b + "ffn_gate")
            x = x + self.times(gate * mx.sigmoid(gate) * self.times(h, b + "ffn_up"), b + "ffn_down")
        out = self.times(mx.fast.rms_norm(x[0, -1], self.w["output_norm"], self.eps), "token_embd")
        mx.eval(out, self.cache)
        self.used += n
        return out


def check(model, path):
    """Compares all stored logits of the oracle with the model's."""
    with open(path, encoding="utf-8") as f:
        oracle = json.load(f)
    worst = 0.0
    for run in oracle["runs"]:
        model.clear()
        feed = run["prompt_ids"]
        for step, (chosen, top) in enumerate(zip(run["ids"], run["top"], strict=True)):
            got = np.array(model.logits(feed))
            if got.argmax() != chosen:
                raise SystemExit(f"{run['name']}: step {step} chooses {got.argmax()}, want {chosen}")
            worst = max(worst, max(abs(float(got[i]) - logit) for i, logit in top))
            feed = [chosen]
    print(f"largest difference from {len(oracle['runs'])} runs of {oracle['steps']} steps: {worst:.2e}", file=sys.stderr)
    if worst > CHECK_TOLERANCE:
        raise SystemExit(f"difference {worst:.2e}, want at most {CHECK_TOLERANCE}")


def main():
    parser = arguments("measure MLX's CPU back end", rounds=5)
    parser.add_argument("--decode-only", action="store_true", help="leave out the prompt phase, more than half of the time")
    parser.add_argument("--check", metavar="ORACLE.json", help="compare with the oracle first")
    args = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    if args.threads > len(cpus):
        raise SystemExit(f"--threads {args.threads}: this process has {len(cpus)} CPUs")
    os.sched_setaffinity(0, cpus[:args.threads])

    # After the binding: threads started by an import would keep the old one.
    global mx, gguf, dequantize
    import gguf
    import mlx.core as mx
    from gguf.quants import dequantize

    mx.set_default_device(mx.cpu)
    model = Llama(args.model, 64 + max(PROMPT, args.depth + DECODE))
    if args.check:
        check(model, args.check)

    def prompt():
        model.clear()
        start = time.perf_counter()
        model.logits(tokens(PROMPT, model.vocab))
        return time.perf_counter() - start

    def decode():
        model.clear()
        if args.depth:
            model.logits(tokens(args.depth, model.vocab))
        token = 1
        start = time.perf_counter()
        for _ in range(DECODE):
            token = mx.argmax(model.logits([token])).item()
        return time.perf_counter() - start

    wall, cpu = time.perf_counter(), time.process_time()
    phases = {"decode": (DECODE, decode)}
    if not args.decode_only:
        phases["prompt"] = (PROMPT, prompt)
    report = measure(phases, args.rounds, args.seconds, warm_up=False)
    busy = (time.process_time() - cpu) / (time.perf_counter() - wall)
    version = f"mlx {importlib.metadata.version('mlx')}, {mx.default_device()}"
    print(json.dumps(report | {"version": version, "threads": args.threads, "depth": args.depth, "cpu_seconds_per_second": round(busy, 2)}))


if __name__ == "__main__":
    main()
