"""Times reorder{lookahead=64} and the reorder of ggml's Metal backend in turns.

    python testdata/gen/bench_reorder_peer.py CHECKOUT [--turns 3] [--commands N ...]

CHECKOUT is a tree of llama.cpp or of ggml. ggml_graph_optimize is plain C++ and
is compiled here, with ggml's core, by $CC and $CXX (cc, c++), -O3, into a
temporary directory. The graphs are those of internal/testing/benchgraphs, command for
command and byte for byte (wiring, reorder_peer.cpp). A turn runs all of ours
(BenchmarkOrder, GOMAXPROCS=1), then all of theirs; each figure of a turn is the
fastest run. Printed are medians over the turns and the median of the turns'
ratios, theirs over ours, with the min and the max, and how many sets of
concurrent commands each leaves.
"""

import argparse
import hashlib
import os
import re
import statistics
import subprocess
import sys
import tempfile

# ggml d99724f2b141fed9e1a9f402213506c081433465, synchronized with llama.cpp
# d3cf1f14a2e16fbd7ebad34b12cb71b8af345c43.
OPTIMIZER = "59977f06933b580c87b0652aa9f0ea9fdfc8a9b02a843079ed9bbbd45feca38d"

# ggml's operation for norm, matvec, rope, attention, zip. Attention is one that
# its optimizer does not look beyond; MUL_MAT_ID in its place, one that it does.
# MUL, so that packing nodes for fusion, which ADD and RMS_NORM begin, is no part
# of the figure.
DECODE = ["RMS_NORM", "MUL_MAT", "ROPE", "FLASH_ATTN_EXT", "ADD"]
CROSSED = ["RMS_NORM", "MUL_MAT", "ROPE", "MUL_MAT_ID", "ADD"]
PLAIN = ["MUL"] * 5
VARIANTS = [  # family, what is said of it, mode, operations
    ("decode", "", "addresses", DECODE),
    ("decode", "", "names", DECODE),
    ("decode", ", attention crossed", "addresses", CROSSED),
    ("arena", "", "addresses", PLAIN),
    ("arena", "", "names", PLAIN),
    ("pingpong", "", "addresses", PLAIN),
]

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--turns", type=int, default=3)
parser.add_argument("--commands", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], choices=[10_000, 100_000, 1_000_000], metavar="N")
parser.add_argument("--any-version", action="store_true", help="measure another version of the optimizer than the one in docs/benchmarks.md")
parser.add_argument("checkout")
a = parser.parse_args()

ggml = os.path.join(a.checkout, "ggml")
if not os.path.isdir(os.path.join(ggml, "src")):
    ggml = a.checkout
source = os.path.join(ggml, "src")
optimizer = os.path.join(source, "ggml-metal", "ggml-metal-common.cpp")
if not os.path.exists(optimizer):
    sys.exit(f"{optimizer} is not there: give the root of a checkout of llama.cpp or ggml")
with open(optimizer, "rb") as f:
    if hashlib.sha256(f.read()).hexdigest() != OPTIMIZER and not a.any_version:
        sys.exit(f"{optimizer} is not that of ggml d99724f2: check that out, or say --any-version")


def out(*command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **more).stdout


go = dict(cwd=root, env={**os.environ, "CGO_ENABLED": "0"})
with tempfile.TemporaryDirectory() as tmp:

    def compile_peer():
        include = [f"-I{p}" for p in (os.path.join(ggml, "include"), source, os.path.dirname(optimizer))]
        flags = ["-O3", "-DNDEBUG", "-w", "-D_GNU_SOURCE", '-DGGML_VERSION="bench"', '-DGGML_COMMIT="bench"', *include]
        cc, cxx = os.environ.get("CC", "cc"), os.environ.get("CXX", "c++")
        objects = []
        for name in ("ggml.c", "ggml-alloc.c", "ggml-quants.c", "ggml-backend.cpp", "ggml-backend-meta.cpp", "ggml-threading.cpp", optimizer, os.path.join(here, "reorder_peer.cpp")):
            o = os.path.join(tmp, os.path.basename(name) + ".o")
            compiler = [cc, "-std=c11"] if name.endswith(".c") else [cxx, "-std=c++17"]
            out(*compiler, *flags, "-c", os.path.join(source, name), "-o", o)
            objects.append(o)
        program = os.path.join(tmp, "reorder_peer")
        out(cxx, *objects, "-o", program, "-lm", "-lpthread")
        print(out(cxx, "--version").splitlines()[0], file=sys.stderr)
        return program

    peer = compile_peer()
    wiring, bench = os.path.join(tmp, "wiring"), os.path.join(tmp, "passes.test")
    out("go", "build", "-o", wiring, "./testdata/gen/wiring", **go)
    out("go", "test", "-c", "-o", bench, "./passes", **go)

    def path(family, n):
        return os.path.join(tmp, f"{family}.{n}")

    graphs = dict.fromkeys((v[0], n) for v in VARIANTS for n in a.commands)
    for family, n in graphs:
        graphs[family, n] = int(out(wiring, family, str(n), path(family, n)))

    rows = {}
    for turn in range(a.turns):
        ours = {}
        wanted = "|".join(str(n) for n in a.commands)
        report = out(bench, "-test.run", "xxx", "-test.bench", f"Order/reorder/.*/^({wanted})$", cwd=os.path.join(root, "passes"), env={**os.environ, "GOMAXPROCS": "1"})
        for family, n, ns in re.findall(r"^BenchmarkOrder/reorder/(\w+)/(\d+)\s.*?([\d.]+) min-ns/command", report, re.M):
            ours[family, int(n)] = float(ns)
        for family, said, mode, ops in VARIANTS:
            for n in a.commands:
                nodes, ns, _, before, after, moved = out(peer, path(family, n), mode, "1", *ops).split()
                assert int(nodes) == n
                rows.setdefault((family + said, mode, n), []).append((ours[family, n], float(ns), graphs[family, n], before, after, moved))
        print(f"turn {turn + 1} of {a.turns}", file=sys.stderr)

print("| graph | ggml's tensors | commands | reorder, ns | ggml, ns | ggml/reorder | sets: reorder | recorded | ggml |\n|---|---|---|---|---|---|---|---|---|")
for (graph, mode, n), v in rows.items():
    ratios = [theirs / mine for mine, theirs, *_ in v]
    mine, theirs = (statistics.median(x[i] for x in v) for i in (0, 1))
    _, _, sets, before, after, _ = v[0]
    print(f"| {graph} | {mode} | {n:.0e} | {mine:.0f} | {theirs:.0f} | {statistics.median(ratios):.2f} [{min(ratios):.2f}–{max(ratios):.2f}] | {sets} | {before} | {after} |".replace("e+0", "e"))
