#!/bin/sh
# What a user of an NVIDIA GPU gets of the demonstration model without a flag, beside what gpubench measures, in one run.
#
#   scripts/gpu-use.sh build   makes out/gpuuse: both commands and gpubench
#   scripts/gpu-use.sh run     records MODEL, optimizes it, and decodes by gpubench, bench, generate and chat; the table says
#                              which share of gpubench's speed each reaches, compile time apart. Prompts are
#                              short, so that positions, with which attention grows, are those of gpubench
set -eu
cd "$(dirname "$0")/.."
# Programs have the kernels of today where make ptx has compiled them, else those of the last release.
overlay() { [ ! -f out/prebuilt/overlay.json ] || echo "-overlay=$PWD/out/prebuilt/overlay.json"; }
bin=out/gpuuse
case "${1:-}" in
build)
	for of in cmd/mlxc cmd/mlxreplay internal/testing/gpubench; do
		CGO_ENABLED=0 go build $(overlay) -trimpath -ldflags '-s -w' -o "$bin/${of##*/}" "./$of"
	done
	exit
	;;
run) ;;
*)
	echo "usage: scripts/gpu-use.sh build | run" >&2
	exit 2
	;;
esac
model=${MODEL:-testdata/model/SmolLM2-135M-Instruct.Q4_1.gguf}
to=${OUT:-out/gpuuse-results}
device=${DEVICE:-cuda}
tokens=${TOKENS:-128}
mkdir -p "$to"
$bin/mlxc record "$model" -o "$to/g.mlxg"
$bin/mlxc optimize "$to/g.mlxg" -o "$to/o.mlxg" >"$to/optimize.txt"
grep '^graph' "$to/optimize.txt"
rm "$to/g.mlxg"
[ "$device" = cpu ] || $bin/gpubench --device "$device" --parts costs,decode --tokens "$tokens" --out "$to/gpubench" --limit "${LIMIT:-120}s" >"$to/gpubench.md" 2>"$to/errors.txt" || tail -n 5 "$to/errors.txt"
$bin/mlxreplay bench "$to/o.mlxg" --device "$device" --tokens "$tokens" --json >"$to/bench.json" 2>>"$to/errors.txt"
say() {
	echo "Write a story."
}
for n in 1 2 3; do
	$bin/mlxreplay generate "$to/o.mlxg" --device "$device" --prompt Once -n $((tokens + 1)) --ignore-eos --json >"$to/generate-$n.json" 2>>"$to/errors.txt"
	$bin/mlxreplay generate "$model" --device "$device" --prompt Once -n $((tokens + 1)) --ignore-eos --json >"$to/generate-gguf-$n.json" 2>>"$to/errors.txt"
	say | $bin/mlxreplay chat "$to/o.mlxg" --device "$device" -n $((tokens + 1)) --time >/dev/null 2>"$to/chat-$n.txt"
done
rm "$to/o.mlxg"
python3 - "$to" <<'PY'
import glob, json, re, sys
to = sys.argv[1]
best = None
rows = []
try:
    figures = json.load(open(to + "/gpubench/figures.json"))
    rows_of = figures["rows"] if isinstance(figures, dict) else figures
    took = [r["microseconds"] for r in rows_of if str(r.get("what", "")).startswith("passes to ") and "microseconds" in r]
    best = 1e6 / took[-1]
    rows.append(("gpubench, all passes", [best]))
except Exception as e:
    print("gpubench: no figure:", repr(e))
rows.append(("bench", [json.load(open(to + "/bench.json"))["decode_tokens_per_second"]["median"]]))
for name, files in ("generate", "generate-?.json"), ("generate, of the GGUF model", "generate-gguf-?.json"):
    rows.append((name, sorted(json.loads(open(f).read().splitlines()[-1])["tokens_per_second"] for f in glob.glob(to + "/" + files))))
chat = sorted(float(x) for f in glob.glob(to + "/chat-?.txt") for x in re.findall(r"tokens at ([0-9.]+) tokens/s", open(f).read()))
rows.append(("chat", chat))
print("| what | tokens/s, median [least-greatest] | of gpubench's |\n|---|---|---|")
for name, v in rows:
    m = v[len(v) // 2] if v else float("nan")
    print("| %s | %.0f [%.0f-%.0f] | %s |" % (name, m, min(v, default=0), max(v, default=0), "%.2f" % (m / best) if best else ""))
PY
