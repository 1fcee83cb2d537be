"""Measures mlxreplay and llama.cpp in turns on one machine and prints the ratios.

    python testdata/gen/bench_ratio.py [--threads 1 2] [--turns 4] [--mlx] MODEL.gguf GRAPH.mlxg

Each turn runs bench_llamacpp.py (and bench_mlx.py), then `mlxreplay bench`, for
each number of threads. The ratio of a turn is ours over theirs; printed are the
medians over the turns, with the min and the max, as a Markdown table.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
parser.add_argument("--turns", type=int, default=4)
parser.add_argument("--mlx", action="store_true", help="measure MLX's CPU backend too")
parser.add_argument("--mlxreplay", default=os.path.join(here, "..", "..", "out", "mlxreplay"))
parser.add_argument("model")
parser.add_argument("graph")
a = parser.parse_args()


def run(*command):
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def peer(script, threads):
    r = run(sys.executable, os.path.join(here, script), "--threads", str(threads), "--rounds", "3", a.model)
    return r["tokens_per_second"]


peers = {"llama.cpp": "bench_llamacpp.py"}
if a.mlx:
    peers["MLX (CPU)"] = "bench_mlx.py"
print("| threads | phase | mlxreplay | peer | its tokens/s | ratio |\n|---|---|---|---|---|---|")
for threads in a.threads:
    rows = {}
    for _ in range(a.turns):
        theirs = {name: peer(script, threads) for name, script in peers.items()}
        o = run(a.mlxreplay, "bench", a.graph, "--threads", str(threads), "--rounds", "3", "--json")
        ours = {"decode": o["decode_tokens_per_second"]["median"], "prompt": o["prompt_tokens_per_second"]["median"]}
        for name, t in theirs.items():
            for phase in ("decode", "prompt"):
                rows.setdefault((phase, name), []).append((ours[phase], t[phase]))
    for (phase, name), v in rows.items():
        ratios = [x / y for x, y in v]
        mine, other = (statistics.median(p[i] for p in v) for i in (0, 1))
        print(f"| {threads} | {phase} | {mine:.0f} | {name} | {other:.0f} | {statistics.median(ratios):.2f} [{min(ratios):.2f}–{max(ratios):.2f}] |", flush=True)
