#!/bin/sh
# Runs the tests that need a GPU of NVIDIA's, on a machine that has one and neither Go nor a clang.
#
#   scripts/gpu-check.sh build           makes the test programs, and compiles the Metal that the tests bring of their
#                                        own, in out/gpucheck
#   scripts/gpu-check.sh run [PART …]    runs parts one after another, by default all of them:
#       driver       what is relied on of CUDA's graphs
#       conformance  the suite by every plan, in several processes: the driver compiles most of the time
#       kernels      prebuilt and generated PTX, threads that part
#       orders       replays equal, edges and waits needed, with blocks that are late
#       model        tokens, logits and sampling of the demonstration model, whose file MODEL names
#       matrices     what package ptxmatrix's tests run on the interpreter of PTX, on the GPU
#       sanitizer    the same, those tests that MATRICES names (a pattern; default: all), under each of compute-sanitizer's TOOLS (memcheck racecheck synccheck)
#                                        Kernels that are not compiled beforehand need a clang there, which MLXC_CLANG
#                                        names; they fail without one. LIMIT is how many seconds a part may take (240;
#                                        conformance with a clang needs 540 on 16 cores). Logs go to the folder $OUT
#                                        (out/gpucheck-results); the exit code is 1 if a part failed.
#                                        What was left out is listed at the end, with the reason.
set -eu
cd "$(dirname "$0")/.."
# Programs have the kernels of today where make ptx has compiled them, else those of the last release.
overlay() { [ ! -f out/prebuilt/overlay.json ] || echo "-overlay=$PWD/out/prebuilt/overlay.json"; }
root=$PWD
case "${1:-}" in
build)
	mkdir -p out/gpucheck
	for of in driver:internal/cuda cuda:backend/cuda textgen:cmd/internal/textgen matrix:backend/internal/ptxmatrix; do
		CGO_ENABLED=0 go test -c $(overlay) -tags gpu -trimpath -ldflags '-s -w' -o "out/gpucheck/${of%%:*}.test" "./${of#*:}"
	done
	cd backend/cuda # so that the tests find testdata
	../../out/gpucheck/cuda.test -compile ../../out/gpucheck/kernels.bin
	../../out/gpucheck/cuda.test -kernels ../../out/gpucheck/kernels.bin -test.run '^TestBrought$'
	exit
	;;
run)
	shift
	;;
*)
	echo "usage: scripts/gpu-check.sh build | run [PART …]" >&2
	exit 2
	;;
esac
logs=${OUT:-$root/out/gpucheck-results}
limit=${LIMIT:-240}
mkdir -p "$logs"
: >"$logs/left-out.txt"
failed=0

# testing NAME FOLDER PROGRAM FLAG … runs a test program in a package's folder.
testing() {
	name=$1 folder=$2 program=$3
	shift 3
	if [ "$program" = cuda ]; then
		set -- -kernels "$root/out/gpucheck/kernels.bin" "$@"
	fi
	code=0
	(cd "$root/$folder" && timeout "$limit" ${WRAP:-} "$root/out/gpucheck/$program.test" -test.v -test.timeout 0 "$@") >"$logs/$name.log" 2>&1 || code=$?
	passed=$(grep -c '^ *--- PASS' "$logs/$name.log" || :)
	wrong=$(grep -c '^ *--- FAIL' "$logs/$name.log" || :)
	sed -n -e 's/^ *--- SKIP: \([^ ]*\).*/\1 (the log says why)/p' -e 's/^ *[a-z_]*\.go:[0-9]*: \(.*\) is not supported by cuda: /\1: /p' "$logs/$name.log" >>"$logs/left-out.txt"
	echo "$name: exit code $code, $passed passed, $wrong failed"
	[ "$code" = 0 ] && return
	if [ "$wrong" -gt 0 ]; then
		grep -A 8 '^ *--- FAIL' "$logs/$name.log" | head -n 60
	else # it crashed, or its time was over
		tail -n 20 "$logs/$name.log"
	fi
	return 1
}

# suite NAME PATTERN runs tests of the suite.
suite() { testing "conformance-$1" backend/cuda cuda -test.run "^TestConformance\$/$2"; }

# matrices NAME WRAP starts the tests of package ptxmatrix with all of their members, in eight processes, whose numbers are added to jobs.
matrices() {
	all=$("$root/out/gpucheck/matrix.test" -test.list "${MATRICES:-.}" | grep '^Test' || :)
	[ -n "$all" ] || { echo "$1: package ptxmatrix has no test ${MATRICES:-}" && failed=1 && return; }
	for i in 0 1 2 3 4 5 6 7; do
		tests=$(echo "$all" | awk "NR % 8 == $i" | paste -s -d '|')
		[ -z "$tests" ] || MLXC_LONG=1 MLXC_PTXRUN=gpu WRAP=${2:-} testing "$1-$i" backend/internal/ptxmatrix matrix -test.run "^($tests)\$" &
		jobs="$jobs $!"
	done
}

part() {
	begin=$(date +%s)
	case $1 in
	driver) testing driver internal/cuda driver -test.run TestEdges || failed=1 ;;
	conformance)
		jobs=
		for plan in graph full; do
			for i in 0 1 2 3 4 5 6 7; do
				MLXC_PART=$i/8 suite "$plan-kernels-$i" "$plan/^kernel\$/" &
				jobs="$jobs $!"
			done
		done
		for plan in graph full chain stream; do
			suite "$plan-semantics" "$plan/^([^k]|k[^e])" &
			jobs="$jobs $!"
		done
		for j in $jobs; do
			wait "$j" || failed=1
		done
		;;
	kernels)
		testing kernels backend/cuda cuda -test.run '^(TestGenerated|TestDivergence)$' || failed=1
		jobs=
		for i in 0 1 2 3 4 5 6 7; do
			MLXC_PART=$i/8 testing "prebuilt-$i" backend/cuda cuda -test.run '^TestPrebuilt$' &
			jobs="$jobs $!"
		done
		for j in $jobs; do
			wait "$j" || failed=1
		done
		;;
	orders) testing orders backend/cuda cuda -test.run '^(TestReplaysEqual|TestEdgesNeeded|TestWaitsNeeded)$' || failed=1 ;;
	model) testing model cmd/internal/textgen textgen -test.run '^(TestCUDA|TestCUDASampling)$' || failed=1 ;;
	matrices)
		jobs=
		matrices matrices
		for j in $jobs; do
			wait "$j" || failed=1
		done
		;;
	sanitizer)
		if ! command -v compute-sanitizer >/dev/null; then
			echo "sanitizer: there is no compute-sanitizer here" && failed=1 && return
		fi
		jobs=
		for tool in ${TOOLS:-memcheck racecheck synccheck}; do
			matrices "$tool" "compute-sanitizer --tool $tool --error-exitcode 9 --launch-timeout 0"
		done
		for j in $jobs; do
			wait "$j" || failed=1
		done
		grep -hE '=+ (Invalid|Error|Warning|Race|Barrier error)|=+ .*hazard' "$logs"/*check-*.log | sort | uniq -c | head -n 20
		;;
	*)
		echo "scripts/gpu-check.sh: there is no part $1" >&2
		exit 2
		;;
	esac
	echo "($1 took $(($(date +%s) - begin)) s)"
}

[ $# -gt 0 ] || set -- driver conformance kernels orders model matrices sanitizer
for p in "$@"; do
	part "$p"
done
sort -u "$logs/left-out.txt" | sed 's/^/left out: /'
exit $failed
