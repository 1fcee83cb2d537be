#!/bin/sh
# Runs every test with every member of every family (MLXC_LONG=1; under the checker with one in eight), in shards: each shall take at most ten
# minutes on two idle cores; all together they take two to three hours (docs/tests.md). A shard that has passed is not run again for the
# same files, so that this may be broken off. Logs lie in out/test-all.
#
#	scripts/test-all.sh          every shard that has not passed
#	scripts/test-all.sh NAME…    these alone, whether they have passed or not
#	scripts/test-all.sh -list    their names
set -eu
cd "$(dirname "$0")/.."

# name: packages and flags of go test, with the part of the members (MLXC_PART) where a shard takes not all of them. What the
# first shards do not name the last one runs.
shards='
cpu-whole: ./backend/cpu -run ^TestConformance$/^whole$
cpu-others: ./backend/cpu -run ^TestConformance$/^(generic|avx2|neon)
cpu-rest: ./backend/cpu ./backend/cpu/internal/simd -skip ^TestConformance$
softmetal-a: 0/8 ./backend/softmetal -run ^TestConformance$/^kernel$
softmetal-b: 1/8 ./backend/softmetal -run ^TestConformance$/^kernel$
softmetal-c: 2/8 ./backend/softmetal -run ^TestConformance$/^kernel$
softmetal-d: 3/8 ./backend/softmetal -run ^TestConformance$/^kernel$
softmetal-e: 4/8 ./backend/softmetal -run ^TestConformance$/^kernel$
softmetal-f: 5/8 ./backend/softmetal -run ^TestConformance$/^kernel$
softmetal-g: 6/8 ./backend/softmetal -run ^TestConformance$/^kernel$
softmetal-h: 7/8 ./backend/softmetal -run ^TestConformance$/^kernel$
softmetal-terms: ./backend/softmetal -run ^TestConformance$/^term$
softmetal-checked-a: 0/2 ./internal/testing/kernelcases -run ^TestCheckedKernels$
softmetal-checked-b: 1/2 ./internal/testing/kernelcases -run ^TestCheckedKernels$
softmetal-compiled-a: 0/2 ./internal/testing/kernelcases -run ^TestCheckedKernelsOfMLX$
softmetal-compiled-b: 1/2 ./internal/testing/kernelcases -run ^TestCheckedKernelsOfMLX$
softmetal-cases: ./internal/testing/kernelcases -skip ^TestChecked
softmetal-checked-cases: ./internal/testing/kernelcases -run ^(TestCheckedKernelCases|TestCheckedGGML)$
softmetal-rest: ./backend/softmetal -skip ^TestConformance$/^(kernel|term)$
metal-emissions: ./backend/metal -run ^(TestWrong|TestOrderEdges|TestWorkload)
metal-rest: ./backend/metal/... -skip ^(TestWrong|TestOrderEdges|TestWorkload)
cuda: ./backend/cuda ./backend/internal/... ./internal/testing/fakecuda -skip ^TestFits$
cuda-fits-a: 0/4 ./backend/cuda -run ^TestFits$
cuda-fits-b: 1/4 ./backend/cuda -run ^TestFits$
cuda-fits-c: 2/4 ./backend/cuda -run ^TestFits$
cuda-fits-d: 3/4 ./backend/cuda -run ^TestFits$
declarations: ./backend/conformance/... ./internal/testing/testdevice
infer-a: 0/3 ./internal/infer -run ^TestLibraryProposals$
infer-b: 1/3 ./internal/infer -run ^TestLibraryProposals$
infer-c: 2/3 ./internal/infer -run ^TestLibraryProposals$
infer-library-a: 0/2 ./internal/infer -run ^TestLibraryKernels$
infer-library-b: 1/2 ./internal/infer -run ^TestLibraryKernels$
infer-ggml-a: 0/2 ./internal/infer -run ^TestGGMLKernels$
infer-ggml-b: 1/2 ./internal/infer -run ^TestGGMLKernels$
infer-mlx: ./internal/infer -run ^TestMLXKernels$
infer-rest: ./internal/infer -skip ^(TestLibrary|TestGGMLKernels|TestMLXKernels)
commands-mlxc: ./cmd -run ^TestInterruptEndsEveryCommand$/^mlxc_
commands-mlxreplay: ./cmd -run ^TestInterruptEndsEveryCommand$/^mlxreplay_
commands-getting: ./cmd -run ^(TestWheelInstalled|TestInstallFromProxy|TestStartPages|TestCompatibility)$
commands-rest: ./cmd/... -skip ^(TestInterruptEndsEveryCommand|TestWheelInstalled|TestInstallFromProxy|TestStartPages|TestCompatibility)$
toolchain: ./internal/toolchain/... ./internal/air/... ./internal/testing/coverage ./internal/testing/fakemetal
proofs: ./prove/... ./passes/... ./optimize/... ./internal/testing/judge ./internal/testing/caches
rest:
'
key=$({ git rev-parse HEAD && git diff HEAD; } | { sha256sum 2>/dev/null || shasum -a 256; } | cut -c1-16)
mkdir -p out/test-all
chosen=''
case "${1:-}" in
-list) echo "$shards" | sed -n 's/:.*//p' && exit 0 ;;
*) chosen=" $* " ;;
esac
MLXC_LONG=1 GOGC=off GOMEMLIMIT=3GiB PYTHON="$(scripts/python.sh)"
MODEL="${MODEL:-$PWD/testdata/model/SmolLM2-135M-Instruct.Q4_1.gguf}"
export MLXC_LONG GOGC GOMEMLIMIT PYTHON MODEL
failed=''
IFS='
'
for line in $shards; do
	name=${line%%:*} args=${line#*:}
	mark=out/test-all/$name-$key.passed
	case "$chosen" in
	'  ') [ ! -f "$mark" ] || continue ;;
	*" $name "*) ;;
	*) continue ;;
	esac
	unset IFS
	if [ "$name" = rest ]; then
		args=$(go list ./... | grep -vE '/(backend/(cpu|softmetal|metal|cuda|internal|conformance)|internal/(infer|toolchain|air|testing/(testdevice|fakecuda|fakemetal|coverage|kernelcases|judge|caches))|cmd|prove|passes|optimize)(/|$)' | tr '\n' ' ')
	fi
	start=$(date +%s) part=''
	case "$args" in \ [0-9]*/[0-9]*) part=${args# } && part=${part%% *} && args=${args#*/* } ;; esac
	set -f
	# shellcheck disable=SC2086 # words of a list
	if MLXC_PART=$part go test -vet=off -ldflags=-w -timeout 50m $args >"out/test-all/$name.log" 2>&1; then
		echo "$name: passed, $(($(date +%s) - start)) s"
		rm -f out/test-all/"$name"-*.passed
		touch "$mark"
	else
		echo "$name: FAILED, $(($(date +%s) - start)) s: out/test-all/$name.log"
		failed="$failed $name"
	fi
	set +f
	IFS='
'
done
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
