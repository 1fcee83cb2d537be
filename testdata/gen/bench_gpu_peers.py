"""Decodes models of SmolLM2-135M's shapes and of those of 8 billion parameters with PyTorch on a GPU: peers
for internal/testing/gpubench.

    python testdata/gen/bench_gpu_peers.py [--tokens N] [--forms graph max-autotune] [--shapes 8B SmolLM2-135M]
        [--ours FIGURES.json] [--out FILE] [--limit 240]

Weights are random, in float16, as are activations: 2 bytes a weight, where ours has 6 bits. One token at a
time, its id found by argmax and carried on the GPU, so that the host only starts graphs. The KV cache is
written in place and as long as the measurement needs, since all of it is read for each token; query heads
that share a key are rows of one product. Forms: "eager"; "graph", the same operations in a CUDA graph;
"compiled" and "max-autotune", what torch.compile makes of them, in a CUDA graph too. For 8 billion parameters
only "eager" and "graph", as weights take the time there. Then a prompt of 512 tokens, eager, with flash
attention. --ours names the figures of gpubench of the same run, and a row says both speeds and their ratio. A
row is printed for each; what fails, or is not begun after --limit seconds, is a row that says why.
"""

import argparse
import json
import statistics
import time

import gpu_ours
import synthetic_gguf
import torch
import torch.nn.functional as F

# Positions of the first token, and whether it pays to compile.
SHAPES = {
    "SmolLM2-135M": synthetic_gguf.SHAPES["SmolLM2-135M"] | dict(positions=[0], compile=True),
    "8B": synthetic_gguf.SHAPES["8B"] | dict(positions=[0, 512], compile=False),
    "tiny": dict(layers=2, width=64, ffn=128, heads=6, kv=2, dim=32, vocab=256, theta=10000.0, tied=True, positions=[0, 8], compile=True),
}
LONGEST_LARGE = 64  # tokens that gpubench decodes with the shapes of 8 billion parameters


class Model(torch.nn.Module):
    def __init__(self, c, context, device, dtype):
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
            l.register_buffer("k", torch.zeros(kv, context, d, device=device, dtype=dtype))
            l.register_buffer("v", torch.zeros(kv, context, d, device=device, dtype=dtype))
            self.layers.append(l)
        self.last = ones()
        self.head = self.embedding if c["tied"] else matrix(c["vocab"], c["width"])
        frequency = c["theta"] ** (-torch.arange(0, d, 2, device=device, dtype=torch.float32) / d)
        angle = torch.arange(context, device=device, dtype=torch.float32)[:, None] * frequency
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())
        self.register_buffer("places", torch.arange(context, device=device))

    def turned(self, x, pos):
        cos, sin = self.cos[pos], self.sin[pos]
        a, b = x.float().chunk(2, -1)
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1).to(x.dtype)

    def attention(self, l, q, k, v, pos):
        """Of one token, with what is in the cache, or of a prompt from position 0."""
        c, n = self.c, q.shape[1]
        if n > 1:
            return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True, enable_gqa=True)[0]
        grouped = q.view(c["kv"], c["heads"] // c["kv"], c["dim"])
        scores = torch.matmul(grouped, l.k.transpose(1, 2)).float() * c["dim"] ** -0.5
        scores = scores.masked_fill(self.places > pos, float("-inf")).softmax(-1).to(q.dtype)
        return torch.matmul(scores, l.v).view(c["heads"], 1, c["dim"])

    def forward(self, tokens, pos):
        """tokens [n], pos [n]: returns the id that follows the last of them."""
        c, n = self.c, tokens.shape[0]
        h, kv, d = c["heads"], c["kv"], c["dim"]
        x = self.embedding[tokens]
        for l in self.layers:
            q, k, v = F.linear(F.rms_norm(x, x.shape[-1:], l.first, 1e-5), l.qkv).view(n, h + 2 * kv, d).transpose(0, 1).split((h, kv, kv))
            q, k = self.turned(q, pos), self.turned(k, pos)
            l.k.index_copy_(1, pos, k)
            l.v.index_copy_(1, pos, v)
            a = self.attention(l, q, k, v, pos)
            x = x + F.linear(a.transpose(0, 1).reshape(n, h * d), l.o)
            gate, up = F.linear(F.rms_norm(x, x.shape[-1:], l.second, 1e-5), l.gate_up).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, l.down)
        logits = F.linear(F.rms_norm(x[-1:], x.shape[-1:], self.last, 1e-5), self.head)
        return logits.argmax(-1)


class Peer:
    """The model of one shape, and its rows."""

    def __init__(self, o, name, rows, ours):
        self.o, self.name, self.rows, self.ours, self.c = o, name, rows, ours, SHAPES[name]
        self.device = "cpu" if o.tiny else "cuda"
        self.tokens = min(o.tokens, 8 if o.tiny else LONGEST_LARGE if name == "8B" else o.tokens)
        # With --ours, the positions and prompts of that run.
        here = [test for shape, test in ours if shape == name]
        self.positions = sorted({int(t.split("@")[1]) for t in here if "@" in t}) or self.c["positions"]
        self.prompts = sorted({int(t[1:]) for t in here if t[0] == "p"}) or [8 if o.tiny else 512]
        context = max([*self.prompts, self.tokens + max(self.positions)])
        torch.manual_seed(1)
        self.model = Model(self.c, -(-context // 128) * 128, self.device, torch.float32 if o.tiny else torch.float16).eval()
        self.token = torch.zeros(1, dtype=torch.long, device=self.device)
        self.pos = torch.zeros(1, dtype=torch.long, device=self.device)

    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def advancing(self, f):
        def step():
            self.token.copy_(f(self.token, self.pos))
            self.pos.add_(1)

        return step

    def graphed(self, f):
        step = self.advancing(f)
        if self.device == "cpu":
            return step
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):  # compiles and tunes, where there is something to
                step()
        torch.cuda.current_stream().wait_stream(side)
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            step()
        return g.replay

    def form(self, name):
        if name == "eager":
            return self.advancing(self.model)
        if name == "graph":
            return self.graphed(self.model)
        mode = "default" if name == "compiled" else "max-autotune-no-cudagraphs"
        return self.graphed(torch.compile(self.model, mode=mode, fullgraph=True))

    def timed(self, test, what, tokens, run, before=lambda: None, setup=0.0):
        took = []
        for i in range(self.o.rounds + 1):
            before()
            self.wait()
            begin = time.perf_counter()
            run()
            self.wait()
            if i > 0:
                took.append((time.perf_counter() - begin) * 1e6)
        each = statistics.median(took)
        self.rows.append(dict(peer=f"PyTorch {torch.__version__}", form=what, shape=self.name, test=test, tokens=tokens, microseconds=took, setup_seconds=setup))
        print(f"| {what} | {1e6 * tokens / each:.0f} | {each / tokens:.1f} | {min(took) / tokens:.1f}–{max(took) / tokens:.1f} | {setup:.0f} | {gpu_ours.beside(self.ours, self.name, test, tokens, each)} |", flush=True)

    def fail(self, what, why):
        why = " ".join(str(why).split())[:200]
        self.rows.append(dict(form=what, shape=self.name, failed=why))
        print(f"| {what} | not run: {why} |", flush=True)

    def measure(self, end):
        """What compiles comes last, so that a run that is stopped then has the rest."""
        compiled = [name for name in self.o.forms if name not in ("eager", "graph")]
        for name in self.o.forms:
            if name not in compiled:
                self.decode(name, end)
        for n in self.prompts:
            ids = torch.arange(n, device=self.device)
            try:
                self.timed(f"p{n}", f"eager, a prompt of {n} tokens", n, lambda ids=ids: self.model(ids % self.c["vocab"], ids))
            except Exception as e:  # the others are to be had all the same
                self.fail("prompt", e)
        for name in compiled if self.c["compile"] else []:
            self.decode(name, end)

    def decode(self, name, end):
        if time.monotonic() > end:
            self.fail(name, "the time is over")
            return
        try:
            self.token.zero_()
            self.pos.zero_()
            begin = time.perf_counter()
            step = self.form(name)
            step()
            self.wait()
            setup = time.perf_counter() - begin

            def run():
                for _ in range(self.tokens):
                    step()

            for at in self.positions:

                def before(at=at):
                    self.token.zero_()
                    self.pos.fill_(at)

                self.timed(f"n{self.tokens}@{at}", f"{name}, {self.tokens} tokens from position {at}", self.tokens, run, before, setup)
        except Exception as e:
            self.fail(name, e)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tokens", type=int, help="tokens in a row (default: as many as in --ours, or 128)")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--forms", nargs="*", default=["graph", "max-autotune"], choices=["eager", "graph", "compiled", "max-autotune"])
    p.add_argument("--shapes", nargs="*", default=["8B", "SmolLM2-135M"], choices=sorted(SHAPES))
    p.add_argument("--ours", help="figures.json of gpubench, of the same run")
    p.add_argument("--tiny", action="store_true", help="to try the program on a CPU")
    p.add_argument("--limit", type=float, default=240, help="seconds after which nothing is begun")
    p.add_argument("--out", help="a file for the figures")
    o = p.parse_args()
    end, begin = time.monotonic() + o.limit, time.monotonic()
    ours, rows = gpu_ours.figures(o.ours), []
    if o.tokens is None:
        o.tokens = max((int(test[1:].split("@")[0]) for shape, test in ours if shape == "SmolLM2-135M"), default=128)
    for name in ["tiny"] if o.tiny else o.shapes:
        print(f"\n| PyTorch {torch.__version__}, {name}, float16 | tokens/s | µs a token | µs, min–max | set up in, s | ours, tokens/s | ours / PyTorch's |\n|---|---|---|---|---|---|---|", flush=True)
        if time.monotonic() > end:
            print("| not run: the time is over |", flush=True)
            continue
        with torch.no_grad():
            Peer(o, name, rows, ours).measure(end)
        if o.out:
            with open(o.out, "w") as f:
                json.dump(rows, f, indent=1)
    print(f"\n(PyTorch took {time.monotonic() - begin:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
