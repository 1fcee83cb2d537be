"""Times mlxreplay on a GPU with a model file in llama.cpp's own mix of formats, for the table of its peer.

    scripts/gpu-bench.sh build
    python testdata/gen/bench_gpu_mix.py --out FIGURES.json [--type q4_k_m] [--device cuda] [--shape 8B] [--rounds 5]

Writes a model of made-up weights (synthetic_gguf.py), records it with activations of f16, optimizes it, and measures 64 tokens from some positions on and prompts. FIGURES.json is what
bench_gpu_llamacpp.py --type q4_k_m --ours takes. Needs nothing but Python and out/mlxc and out/mlxreplay.
"""

import argparse
import json
import os
import subprocess

import bench_gpu_llamacpp
import synthetic_gguf

PROGRAMS = os.path.join(os.path.dirname(__file__), "..", "..", "out")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--type", default="q4_k_m", choices=sorted(synthetic_gguf.FILE_TYPES))
    p.add_argument("--shape", default="8B", choices=sorted(synthetic_gguf.SHAPES))
    p.add_argument("--device", default="cuda")
    p.add_argument("--programs", default=PROGRAMS, help="folder with mlxc and mlxreplay")
    p.add_argument("--out", help="a file for the figures")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--tiny", action="store_true", help="a model of two layers, to try the program on a CPU")
    o = p.parse_args()
    tokens, depths, prompts, context = (4, [0, 8], [8, 16], 64) if o.tiny else (64, [0, 512, 4096], [512, 4096], 8192)
    rows = []
    with bench_gpu_llamacpp.folder(1 << 20 if o.tiny else 6 << 30) as where:

        def run(program, *args):
            done = subprocess.run([os.path.join(o.programs, program), *args], cwd=where, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if done.returncode:
                raise SystemExit(f"{program} {' '.join(args)}: exit code {done.returncode}: {done.stderr[-300:]}")
            return done.stdout

        synthetic_gguf.write(o.shape, os.path.join(where, "model.gguf"), o.type, o.tiny)
        run("mlxc", "record", "model.gguf", "--type", "f16", "--context", str(context), "--prefill", str(max(prompts)), "--external", "-o", "recorded.mlxg")
        run("mlxc", "optimize", "recorded.mlxg", "-o", "model.mlxg")
        print(f"\n| mlxreplay, {o.shape}, {o.type}, f16 | tokens/s | µs a token |\n|---|---|---|")

        def row(title, speeds, n, **values):
            took = 1e6 * n / speeds["median"]
            print(f"| {title} | {speeds['median']:.0f} [{speeds['min']:.0f}–{speeds['max']:.0f}] | {took / n:.1f} |", flush=True)
            rows.append(dict(shape=o.shape, **values))

        measured = set()
        for depth, prompt in zip(depths, [*prompts, prompts[0]]):
            text = run("mlxreplay", "bench", "model.mlxg", "--device", o.device, "--json", "--rounds", str(o.rounds), "--tokens", str(tokens), "--depth", str(depth), "--prompt", str(prompt))
            figures = json.loads(text)
            speeds = figures["decode_tokens_per_second"]
            row(f"{tokens} tokens from position {depth}", speeds, tokens, what=f"{tokens} tokens from position {depth}", microseconds=1e6 / speeds["median"])
            if prompt not in measured:
                measured.add(prompt)
                speeds = figures["prompt_tokens_per_second"]
                row(f"a prompt of {prompt} tokens", speeds, prompt, what="prompt", tokens=prompt, microseconds=1e6 * prompt / speeds["median"])
    if o.out:
        with open(o.out, "w") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
