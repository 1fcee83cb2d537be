#!/bin/sh
# Measures a GPU of NVIDIA's for docs/benchmarks.md.
#
#   scripts/gpu-bench.sh build           makes out/gpubench, out/mlxc and out/mlxreplay, which need nothing but the driver
#   scripts/gpu-bench.sh run [FLAG …]    runs it, with flags of its own (gpubench --help), then the peers;
#                                        tables go to standard output and, with all figures and the
#                                        profile, to the folder $OUT (out/gpubench-results)
#   scripts/gpu-bench.sh peers           the peers alone, beside the figures.json that is in that folder
#   scripts/gpu-bench.sh mix             a model file of 8 billion parameters in llama.cpp's own mix Q4_K_M, by mlxreplay and by llama.cpp
#
# Peers are llama.cpp, of out/llama-cuda (scripts/fetch-llama-cuda.sh, anywhere), and PyTorch, where Python
# has it. PEERS names those to run ("llama.cpp PyTorch", or "no"). LIMIT is the seconds that all may take
# (570): gpubench begins no figure that would leave the peers less than PEERS_LIMIT (230), and a peer that
# does not fit says so. mix takes LIMIT for itself. PEERS_FORMS: forms of PyTorch ("graph max-autotune"; also eager and compiled).
#
# Kernels that no prebuilt code is of (make ptx) are compiled, which needs a clang.
set -eu
cd "$(dirname "$0")/.."
# Programs have the kernels of today where make ptx has compiled them, else those of the last release.
overlay() { [ ! -f out/prebuilt/overlay.json ] || echo "-overlay=$PWD/out/prebuilt/overlay.json"; }
begin=$(date +%s)
to=${OUT:-out/gpubench-results}
peers=${PEERS:-llama.cpp PyTorch}
limit=${LIMIT:-570}
left() {
	echo $((limit - $(date +%s) + begin))
}
run_peers() {
	rm -f "$to/peers.md"
	for peer in $peers; do
		left=$(left)
		case $peer in
		llama.cpp) need=60 ;;
		PyTorch) need=60 ;;
		no) continue ;;
		*)
			echo "there is no peer $peer (there are llama.cpp and PyTorch)" >&2
			return 2
			;;
		esac
		if [ "$left" -lt $need ]; then
			echo "$peer: not run: $left seconds are left, and it takes $need" | tee -a "$to/peers.md"
			continue
		fi
		case $peer in
		llama.cpp)
			python3 testdata/gen/bench_gpu_llamacpp.py --ours "$to/figures.json" --out "$to/peers-llamacpp.json" --limit "$left" 2>>"$to/errors.txt" ||
				echo "llama.cpp: not run: exit code $? (errors.txt says more)"
			;;
		PyTorch)
			if python3 -c 'import torch' 2>/dev/null; then
				# Compiling takes what it takes: what was printed by then stays.
				# shellcheck disable=SC2086 # forms are words
				timeout "$left" python3 testdata/gen/bench_gpu_peers.py --ours "$to/figures.json" --out "$to/peers-pytorch.json" --limit $((left - 60)) \
					--forms ${PEERS_FORMS:-graph max-autotune} 2>>"$to/errors.txt" ||
					echo "PyTorch: not run to its end: exit code $? (124: after $left seconds; errors.txt says more)"
			else
				echo "PyTorch: not run: python3 has no torch"
			fi
			;;
		esac | tee -a "$to/peers.md"
	done
}
case "${1:-}" in
build)
	CGO_ENABLED=0 go build $(overlay) -trimpath -ldflags '-s -w' -o out/ ./internal/testing/gpubench ./cmd/mlxc ./cmd/mlxreplay
	;;
run)
	shift
	mkdir -p "$to"
	code=0
	ours=$limit
	if [ "$peers" != no ]; then
		ours=$((limit - ${PEERS_LIMIT:-230}))
	fi
	out/gpubench --device cuda --out "$to" --write-profile "$to/gpu.json" --limit "${ours}s" "$@" >"$to/tables.md" 2>"$to/errors.txt" || code=$?
	cat "$to/tables.md"
	tail -c 2000 "$to/errors.txt" >&2
	run_peers
	exit $code
	;;
peers)
	mkdir -p "$to"
	run_peers
	;;
mix)
	mkdir -p "$to"
	python3 testdata/gen/bench_gpu_mix.py --out "$to/mix.json" | tee "$to/mix.md"
	python3 testdata/gen/bench_gpu_llamacpp.py --type q4_k_m --shapes 8B --ours "$to/mix.json" --out "$to/mix-llamacpp.json" --limit "$(left)" | tee -a "$to/mix.md"
	;;
*)
	echo "usage: scripts/gpu-bench.sh build | run [FLAG …] | peers | mix" >&2
	exit 2
	;;
esac
