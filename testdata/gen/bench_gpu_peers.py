"""Decodes a model of SmolLM2-135M's shapes, or one with those of 8 billion parameters, with PyTorch on a
GPU: peers for internal/testkit/gpubench.

    python testdata/gen/bench_gpu_peers.py [--tokens 128] [--skip max-autotune] [--large] [--out FILE]

Weights are random, in float16, as are activations: 2 bytes a weight, where ours has 6 bits. One token
at a time from position 0, its id found by argmax and carried on the GPU. The KV cache is written in
place and as short as the measurement allows, since all of it is read for each token. Forms: eager; the same operations in a CUDA graph; torch.compile with its CUDA graphs
("reduce-overhead"), and with "max-autotune". Prints a row of a table for each; what fails is a row that
says why.
"""

import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F

SMALL = dict(name="SmolLM2-135M", layers=30, width=576, ffn=1536, heads=9, kv=3, dim=64, vocab=49152, context=256, theta=100000.0)
LARGE = dict(name="8B", layers=32, width=4096, ffn=14336, heads=32, kv=8, dim=128, vocab=128256, context=1024, theta=500000.0)
TINY = dict(name="tiny", layers=2, width=64, ffn=128, heads=2, kv=1, dim=32, vocab=256, context=64, theta=10000.0)


class Model(torch.nn.Module):
    def __init__(self, c, device, dtype):
        super().__init__()
        self.c = c

        def matrix(n, k):
            return torch.nn.Parameter(torch.randn(n, k, device=device, dtype=dtype) * k**-0.5, requires_grad=False)

        def ones():
            return torch.nn.Parameter(torch.ones(c["width"], device=device, dtype=dtype), requires_grad=False)

        h, kv, d = c["heads"], c["kv"], c["dim"]
        self.embedding = matrix(c["vocab"], c["width"])
        self.layers = torch.nn.ModuleList()
        for _ in range(c["layers"]):
            l = torch.nn.Module()
            l.qkv, l.o = matrix((h + 2 * kv) * d, c["width"]), matrix(c["width"], h * d)
            l.gate_up, l.down = matrix(2 * c["ffn"], c["width"]), matrix(c["width"], c["ffn"])
            l.first, l.second = ones(), ones()
            l.register_buffer("k", torch.zeros(1, kv, c["context"], d, device=device, dtype=dtype))
            l.register_buffer("v", torch.zeros(1, kv, c["context"], d, device=device, dtype=dtype))
            self.layers.append(l)
        self.last = ones()
        frequency = c["theta"] ** (-torch.arange(0, d, 2, device=device, dtype=torch.float32) / d)
        angle = torch.arange(c["context"], device=device, dtype=torch.float32)[:, None] * frequency
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())
        self.register_buffer("places", torch.arange(c["context"], device=device))

    def turned(self, x, pos):
        cos, sin = self.cos[pos], self.sin[pos]
        a, b = x.float().chunk(2, -1)
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1).to(x.dtype)

    def forward(self, tokens, pos):
        """tokens [n], pos [n]: returns the id that follows the last of them."""
        c, n = self.c, tokens.shape[0]
        h, kv, d = c["heads"], c["kv"], c["dim"]
        x = self.embedding[tokens]
        visible = (self.places[None, :] <= pos[:, None])[None, None]
        for l in self.layers:
            q, k, v = F.linear(F.rms_norm(x, x.shape[-1:], l.first, 1e-5), l.qkv).view(n, h + 2 * kv, d).transpose(0, 1).split((h, kv, kv))
            l.k[0].index_copy_(1, pos, self.turned(k, pos))
            l.v[0].index_copy_(1, pos, v)
            a = F.scaled_dot_product_attention(self.turned(q, pos)[None], l.k, l.v, attn_mask=visible, enable_gqa=True)
            x = x + F.linear(a[0].transpose(0, 1).reshape(n, h * d), l.o)
            gate, up = F.linear(F.rms_norm(x, x.shape[-1:], l.second, 1e-5), l.gate_up).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, l.down)
        logits = F.linear(F.rms_norm(x[-1:], x.shape[-1:], self.last, 1e-5), self.embedding)
        return logits.argmax(-1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tokens", type=int, default=128)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--skip", nargs="*", default=[])
    p.add_argument("--large", action="store_true", help="the shapes of 8 billion parameters, and a prompt of 512 tokens")
    p.add_argument("--tiny", action="store_true", help="to try the program on a CPU")
    p.add_argument("--out", help="a file for the figures")
    o = p.parse_args()
    device = "cpu" if o.tiny else "cuda"
    shape = TINY if o.tiny else LARGE if o.large else SMALL
    tokens = min(o.tokens, shape["context"] // 2)
    torch.manual_seed(1)
    model = Model(shape, device, torch.float32 if o.tiny else torch.float16).eval()
    token = torch.zeros(1, dtype=torch.long, device=device)
    pos = torch.zeros(1, dtype=torch.long, device=device)

    def wait():
        if device == "cuda":
            torch.cuda.synchronize()

    def advancing(f):
        def step():
            token.copy_(f(token, pos))
            pos.add_(1)

        return step

    def graphed():
        step = advancing(model)
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            step()
        return g.replay

    def compiled(mode):
        f = torch.compile(model, mode=mode, fullgraph=True)

        def step():
            torch.compiler.cudagraph_mark_step_begin()
            token.copy_(f(token, pos))
            pos.add_(1)

        return step

    forms = {"eager": lambda: advancing(model), "CUDA graph": graphed, "reduce-overhead": lambda: compiled("reduce-overhead"), "max-autotune": lambda: compiled("max-autotune")}
    rows = []
    print(f"\n| PyTorch {torch.__version__}, {shape['name']}, float16 | tokens/s | µs a token | µs, least–greatest |\n|---|---|---|---|")
    for name, make in forms.items():
        if name in o.skip or o.tiny and name != "eager":
            continue
        try:
            with torch.no_grad():
                begin = time.perf_counter()
                step = make()
                for _ in range(4):
                    step()
                wait()
                setup = time.perf_counter() - begin
                took = []
                for _ in range(o.rounds):
                    token.zero_()
                    pos.zero_()
                    wait()
                    begin = time.perf_counter()
                    for _ in range(tokens):
                        step()
                    wait()
                    took.append((time.perf_counter() - begin) / tokens * 1e6)
            each = statistics.median(took)
            rows.append(dict(form=name, shape=shape["name"], microseconds=each, setup_seconds=setup))
            print(f"| {name} | {1e6 / each:.0f} | {each:.1f} | {min(took):.1f}–{max(took):.1f} |", flush=True)
        except Exception as e:  # the others are to be had all the same
            text = " ".join(str(e).split())[:200]
            rows.append(dict(form=name, shape=shape["name"], failed=text))
            print(f"| {name} | failed: {text} |", flush=True)
    if o.large or o.tiny:
        n = 8 if o.tiny else 512
        with torch.no_grad():
            took = []
            for _ in range(o.rounds + 1):
                wait()
                begin = time.perf_counter()
                model(torch.arange(n, device=device) % shape["vocab"], torch.arange(n, device=device))
                wait()
                took.append((time.perf_counter() - begin) * 1e6)
        each = statistics.median(took[1:])
        rows.append(dict(form=f"prompt of {n}", shape=shape["name"], microseconds=each))
        print(f"| a prompt of {n} tokens, eager | {n / each * 1e6:.0f} | {each / n:.1f} | {min(took[1:]):.0f}–{max(took[1:]):.0f}, all |", flush=True)
    if o.out:
        with open(o.out, "w") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
