#!/bin/sh
# Measures a GPU of NVIDIA's for docs/benchmarks.md.
#
#   scripts/gpu-bench.sh build           makes out/gpubench, which needs nothing but the driver
#   scripts/gpu-bench.sh run [FLAG …]    runs it, with flags of its own (gpubench --help), then PyTorch
#                                        where Python has it (PEERS=no: not; PEERS_SKIP: forms to leave
#                                        out); tables go to standard output and, with all figures and
#                                        the profile, to the folder $OUT (out/gpubench-results)
#
# Kernels that no prebuilt code is of (make ptx) are compiled, which needs a clang.
set -eu
cd "$(dirname "$0")/.."
case "${1:-}" in
build)
	CGO_ENABLED=0 exec go build -trimpath -ldflags '-s -w' -o out/gpubench ./internal/testkit/gpubench
	;;
run)
	shift
	to=${OUT:-out/gpubench-results}
	mkdir -p "$to"
	code=0
	out/gpubench --device cuda --out "$to" --write-profile "$to/gpu.json" "$@" >"$to/tables.md" 2>"$to/errors.txt" || code=$?
	cat "$to/tables.md"
	tail -c 2000 "$to/errors.txt" >&2
	if [ "${PEERS:-yes}" = yes ] && python3 -c 'import torch' 2>/dev/null; then
		# shellcheck disable=SC2086 # forms are words
		python3 testdata/gen/bench_gpu_peers.py --out "$to/peers.json" --skip ${PEERS_SKIP:-none} 2>"$to/peers-errors.txt" | tee "$to/peers.md"
		python3 testdata/gen/bench_gpu_peers.py --large --tokens 32 --rounds 3 --skip max-autotune reduce-overhead --out "$to/peers-large.json" 2>>"$to/peers-errors.txt" | tee -a "$to/peers.md"
	fi
	exit $code
	;;
*)
	echo "usage: scripts/gpu-bench.sh build | run [FLAG …]" >&2
	exit 2
	;;
esac
