"""Times llama.cpp's CUDA backend on the shapes that internal/testing/gpubench measures.

    scripts/fetch-llama-cuda.sh
    python testdata/gen/bench_gpu_llamacpp.py [--ours FIGURES.json] [--out FILE] [--limit 120] [--rounds 5]

Runs out/llama-cuda/llama-peer on models of made-up weights, which synthetic_gguf.py writes first (0.1 GB,
and 5 GB for the shapes of 8 billion parameters): q4_1, of SmolLM2-135M the embedding in q8_0, float16 cache,
flash attention; --type q4_k_m is llama.cpp's own mix. Decoding from an empty context and from one of 512 tokens, and a prompt of 512 tokens. --ours
names the figures of gpubench of the same run: its tests are taken over (steps of several rows as prompts of so many tokens, of which llama.cpp makes one row of logits) and a row says both speeds and
their ratio. What cannot be had, or does not fit in --limit seconds, is a row that says why. Needs nothing but
Python; cuBLAS, which llama-peer is linked with, is taken from CUDA's folder or PyTorch's.
"""

import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time

import gpu_ours
import synthetic_gguf

PROGRAM = os.path.join(os.path.dirname(__file__), "..", "..", "out", "llama-cuda", "llama-peer")
NAME = "llama.cpp 0c1e570 (ggml 0.25.3)"
ABOUT = {"SmolLM2-135M": "{}, embedding and head q8_0", "8B": "{}"}


def libraries():
    """Folders that may have cuBLAS."""
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    if compiler := shutil.which("nvcc"):
        roots.append(os.path.dirname(os.path.dirname(os.path.realpath(compiler))))
    found = [os.path.join(r, d) for r in roots if r for d in ("lib64", "lib")]
    for where in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path}:
        found += sorted(glob.glob(os.path.join(where, "nvidia", "*", "lib")))
    return [d for d in found if glob.glob(os.path.join(d, "libcublas.so*"))]


def folder(need):
    """A temporary folder with space for the model, in memory if it fits."""
    for where in ("/dev/shm", None):
        if where is None or os.path.isdir(where) and shutil.disk_usage(where).free > 2 * need:
            return tempfile.TemporaryDirectory(dir=where)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--program", default=PROGRAM)
    p.add_argument("--ours", help="figures.json of gpubench, of the same run")
    p.add_argument("--out", help="a file for the figures")
    p.add_argument("--type", default="q4_1", choices=sorted(synthetic_gguf.FILE_TYPES))
    p.add_argument("--shapes", nargs="*", default=list(ABOUT))
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--limit", type=float, default=120, help="seconds for everything")
    p.add_argument("--tiny", action="store_true", help="models of two layers, on the CPU, to try the program")
    o = p.parse_args()
    end = time.monotonic() + o.limit
    ours = gpu_ours.figures(o.ours)
    rows = []

    def fail(shape, why):
        rows.append(dict(peer=NAME, shape=shape, failed=why))
        print(f"| not run: {why} |", flush=True)

    environment = dict(os.environ)
    environment["LD_LIBRARY_PATH"] = os.pathsep.join([*libraries(), *filter(None, [environment.get("LD_LIBRARY_PATH")])])
    for shape in o.shapes:
        about = ABOUT[shape].format(o.type)
        print(f"\n| {NAME}, {shape}, {about}, f16 cache, flash attention | tokens/s | µs a token | µs, min–max | ours, tokens/s | ours / llama.cpp's |\n|---|---|---|---|---|---|", flush=True)
        if not os.path.exists(o.program):
            fail(shape, "there is no out/llama-cuda/llama-peer (scripts/fetch-llama-cuda.sh makes it)")
            continue
        known = sorted({test for s, test in ours if s == shape}, key=lambda t: (t[0], [int(n) for n in t[1:].split("@")]))
        usual = ["n64@0", "n64@512", "p512"] if shape == "8B" else ["n128@0", "n512@0", "p512"]
        tests = [*known, *(t for t in usual if t not in known and (shape != "8B" or not known))]
        if o.tiny:
            tests = ["n4@0", "n4@8", "p16"]
        left = end - time.monotonic()
        if left < (40 if shape == "8B" and not o.tiny else 5):
            fail(shape, f"{left:.0f} seconds are left")
            continue
        with folder(1 << 20 if o.tiny else 6 << 30 if shape == "8B" else 1 << 28) as where:
            begin = time.monotonic()
            model = os.path.join(where, "model.gguf")
            try:
                synthetic_gguf.write(shape, model, o.type, o.tiny)
                wrote = time.monotonic() - begin
                command = [o.program, model, str(o.rounds), str(max(1, end - time.monotonic() - 5)), *tests, *(["cpu"] if o.tiny else [])]
                # The output is read as it comes, so that a run that is stopped keeps what it has.
                with open(os.path.join(where, "lines"), "w+") as lines, open(os.path.join(where, "errors"), "w+") as errors:
                    try:
                        code = subprocess.run(command, stdout=lines, stderr=errors, env=environment, timeout=max(1, end - time.monotonic())).returncode
                        why = f"exit code {code}" if code else ""
                    except subprocess.TimeoutExpired:
                        why = f"stopped after {o.limit:.0f} seconds"
                    lines.seek(0)
                    errors.seek(0)
                    answers = [json.loads(line) for line in lines if line.endswith("}\n")]
                    said = " ".join(errors.read().split())[-300:]
            except OSError as e:
                fail(shape, str(e))
                continue
        for a in answers:
            if "device" in a:
                rows.append(dict(peer=NAME, shape=shape, write_seconds=wrote, **a))
                continue
            if "failed" in a:
                fail(shape, f"{a['test']}: {a['failed']}")
                continue
            n, took = a["tokens"], statistics.median(a["microseconds"])
            rows.append(dict(peer=NAME, shape=shape, quantization=about, **a))
            what = f"a prompt of {n} tokens" if a["test"][0] == "p" else f"{n} tokens from position {a['depth']}"
            print(f"| {what} | {1e6 * n / took:.0f} | {took / n:.1f} | {min(a['microseconds']) / n:.1f}–{max(a['microseconds']) / n:.1f} | {gpu_ours.beside(ours, shape, a['test'], n, took)} |", flush=True)
        if why:
            fail(shape, f"{why}: {said}")
        print(f"\n(llama.cpp with {shape} took {time.monotonic() - begin:.1f} s, {wrote:.1f} of them to write the model)", flush=True)
    if o.out:
        with open(o.out, "w") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
