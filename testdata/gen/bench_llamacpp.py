"""Measures llama.cpp on the demonstration model, as one JSON object.

    python testdata/gen/bench_llamacpp.py [--threads N] [--rounds N] [--depth N] [--seconds S] MODEL.gguf

A round processes a prompt of 128 tokens as one batch, then, from an emptied
cache with --depth tokens in it (0), generates 64 tokens one call each, greedily;
loading, filling to the depth and a first uncounted round are not timed.
llama.cpp's defaults otherwise: quantized weights as they are in the file,
float16 cache, threads that spin. The layouts for AMX stay off unless
--extra-bufts: they stop the process in virtual machines that announce AMX and
do not run it.

tokens_per_second holds medians over the rounds, min and max their range. The
figures mean something only beside others of the same machine and hour: run this
and the program to compare with in turns. No round starts after --seconds (45).
Two spinning threads on cores that others use lose most of their speed;
OMP_WAIT_POLICY=passive in the environment lets them sleep, and is reported.
Versions: requirements.txt.
"""

import argparse
import json
import os
import statistics
import sys
import time

PROMPT, DECODE = 128, 64


def arguments(description, rounds):
    """The command line of both bench scripts."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--depth", type=int, default=0, help="tokens in the cache before the first decoded one")
    parser.add_argument("--seconds", type=float, default=45, help="start no round after this time")
    parser.add_argument("model", metavar="MODEL.gguf")
    return parser


def measure(phases, rounds, seconds, warm_up):
    """Runs phases, {name: (tokens, function that returns seconds)}, in turns; the report.

    warm_up: an uncounted round first.
    """
    start = time.perf_counter()
    for _, run in phases.values() if warm_up else ():
        run()
    speeds = {name: [] for name in phases}
    done = 0
    while done < rounds:
        if done and time.perf_counter() - start > seconds:
            print(f"{done} of {rounds} rounds in {seconds:g} s: the machine is busy", file=sys.stderr)
            break
        for name, (count, run) in phases.items():
            speeds[name].append(count / run())
        done += 1
    report = {}
    for key, of in {"tokens_per_second": statistics.median, "min": min, "max": max}.items():
        report[key] = {name: round(of(values), 2) for name, values in speeds.items()}
    report["rounds"] = done
    return report


def tokens(n, vocab):
    """n ids for which only the time matters."""
    return [(17 + 131 * i) % vocab for i in range(n)]


def main():
    parser = arguments("measure llama.cpp", rounds=7)
    parser.add_argument("--extra-bufts", action="store_true", help="AMX and repacked weights where llama.cpp has them")
    args = parser.parse_args()

    import llamacpp

    model = llamacpp.Model(args.model, args.extra_bufts)
    context = llamacpp.Context(model, 64 + max(PROMPT, args.depth + DECODE), args.threads, exact=False)

    def prompt():
        context.clear()
        start = time.perf_counter()
        context.logits(tokens(PROMPT, model.vocab_size))
        return time.perf_counter() - start

    def decode():
        context.clear()
        if args.depth:
            context.logits(tokens(args.depth, model.vocab_size))
        token = 1
        start = time.perf_counter()
        for _ in range(DECODE):
            token = int(context.logits([token]).argmax())
        return time.perf_counter() - start

    report = measure({"decode": (DECODE, decode), "prompt": (PROMPT, prompt)}, args.rounds, args.seconds, warm_up=True)
    report |= {"version": llamacpp.VERSION, "threads": args.threads, "depth": args.depth, "extra_bufts": args.extra_bufts,
               "omp_wait_policy": os.environ.get("OMP_WAIT_POLICY", "")}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
