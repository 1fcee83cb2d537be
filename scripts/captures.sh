#!/bin/sh
# Makes testdata/mlxhost/captures.jsonl.gz: what MLX's own host code sends to Metal for a table of operations and
# shapes, on six chips of five generations. MLX's C++ is compiled unmodified for Linux, with an Objective-C runtime
# that records messages in place of Apple's (testdata/gen/mlxhost). Ten minutes of a core the first time.
#
#	scripts/captures.sh          the source of MLX from where git fetches it (a mirror: git config url.MIRROR.insteadOf)
#	scripts/captures.sh FOLDER   from a clone of MLX that has the commit
#
# With the word programs before the folder it makes the captures of programs instead (testdata/gen/mlxhost/programs.cpp), which run on the stand-in
# for Metal of the tests, with those compiled kernels of MLX 0.32.4 that this commit has too: testdata/mlxhost/*.mlxtrace.gz
# and what stands beside it. A minute more.
#
# Needs what scripts/fetch-clang.sh and scripts/fetch-metallib.sh fetch, git, and Debian's libfmt-dev and
# nlohmann-json3-dev, which apt-get downloads (no root).
set -eu
cd "$(dirname "$0")/.."
commit=846d176227a0ac13d2667e58d2bb68b322109ab0 # 0.32.2 in development, 2026-08-22
mode=cases
if [ "${1:-}" = programs ]; then
	mode=programs
	shift
fi
from=${1:-https://github.com/ml-explore/mlx.git}
root=$PWD
here=$PWD/testdata/gen/mlxhost
work=$PWD/out/mlxhost
scripts/fetch-clang.sh
scripts/fetch-metallib.sh 0.32.4
mkdir -p "$work/objects" testdata/mlxhost
if [ "$(cat "$work/commit" 2>/dev/null)" != $commit ]; then
	rm -rf "$work/git" "$work/mlx"
	git init --quiet "$work/git"
	git -C "$work/git" fetch --quiet --depth 1 "$from" $commit
	mkdir "$work/mlx"
	git -C "$work/git" archive $commit mlx LICENSE | tar -x -C "$work/mlx"
	rm -rf "$work/git"
	echo $commit >"$work/commit"
fi
for package in libfmt-dev nlohmann-json3-dev; do
	if [ ! -e "$work/debian/usr/share/doc/$package" ]; then
		(cd "$work" && apt-get download $package >&2 && dpkg -x $package*.deb debian && rm $package*.deb)
	fi
done
clang=$(go run ./internal/toolchain/clang/find)
clang=${clang%% clang*} # zig clang → zig c++, which has a C++ library
export ZIG_GLOBAL_CACHE_DIR="$work/cache" ZIG_LOCAL_CACHE_DIR="$work/cache"
compile() { # a source, an object, further options
	[ "$2" -nt "$1" ] && return
	source=$1 object=$2
	shift 2
	"$clang" c++ -target x86_64-linux-gnu -std=c++20 -fblocks -O1 -w -I. -I"$here" -I"$here/shim" -isystem "$root/out/metal-cpp" \
		-isystem "$work/debian/usr/include" -isystem "$work/debian/usr/include/nlohmann" -DFMT_HEADER_ONLY -D_METAL_ -DMLX_METAL_NO_NAX \
		-DMLX_VERSION='"0.32.2"' -DMETAL_PATH='"mlx.metallib"' "$@" -c "$source" -o "$object"
}
standin() { # Programs on the stand-in for Metal: what asks for the system's version is compiled once more.
	mkdir -p "$work/standin"
	python3 "$here/preambles.py" . "$work/preambles.cpp"
	list=''
	while read -r f; do
		o=$(echo "$f" | tr / _).o
		if grep -q __builtin_available "$f"; then
			compile "$f" "$work/standin/$o" -include "$here/available.h"
		else
			list="$list $work/objects/$o"
		fi
	done <"$here/sources.txt"
	for f in "$here/standin.cpp" "$here/programs.cpp" "$work/preambles.cpp"; do
		compile "$f" "$work/standin/$(basename "$f" .cpp).o"
	done
	# shellcheck disable=SC2086 # words of a list
	"$clang" c++ -target x86_64-linux-gnu -shared "$work"/standin/*.o $list -lpthread -ldl -o "$work/mlxhost.so"
}
capture() { # a program, the name of its files
	log=$work/$2.mlxtrace
	MLXHOST_PROGRAM=$1 MLXHOST_LOG=$log go test -C "$root/internal/testing/fakemetal" -count=1 -run 'TestMLXHost$' .
	python3 "$here/strip.py" "$log" "$root/testdata/mlxhost/$2.mlxtrace.gz"
	gzip -9nc "$log.outputs" >"$root/testdata/mlxhost/$2.outputs.gz"
}
cd "$work/mlx"
if [ $mode = programs ]; then
	while read -r f; do
		compile "$f" "$work/objects/$(echo "$f" | tr / _).o"
	done <"$here/sources.txt"
	standin
	capture 'decode 200' decode
	capture 'decode-copies 16' copies
	capture 'decode-deep 16' deep
	capture 'decode-ahead 24' ahead
	capture operations operations
	cp LICENSE "$root/testdata/mlxhost/LICENSE" # of the Metal sources in the logs
	# What the kernels touch, found by running them.
	go build -C "$root" -o "$work/mlxc" ./cmd/mlxc
	cd "$work"
	./mlxc import copies.mlxtrace -o copies.mlxg # it has the kernels of decode and one more
	./mlxc effects copies.mlxg --infer -o "$root/testdata/mlxhost/decode.effects"
	exit 0
fi
for f in runtime cases sources; do
	[ "$work/objects/$f.o" -nt "$here/runtime.h" ] || rm -f "$work/objects/$f.o"
	compile "$here/$f.cpp" "$work/objects/$f.o"
done
while read -r f; do
	compile "$f" "$work/objects/$(echo "$f" | tr / _).o"
done <"$here/sources.txt"
"$clang" c++ -target x86_64-linux-gnu "$work"/objects/*.o -lpthread -ldl -o "$work/cases"
cd "$root"
files=''
# No phone's (p): its command buffers end so often that MLX's cache hands out buffers too long to be written in place.
for chip in g12g g13g g14d g15s g17d g17s; do
	# Addresses decide which buffers MLX's cache gives out again.
	MLXHOST_ARCHITECTURE=applegpu_$chip setarch -R "$work/cases" >"$work/$chip.jsonl"
	files="$files $chip=$work/$chip.jsonl"
done
# shellcheck disable=SC2086 # words of a list
python3 testdata/gen/mlxhost/pack.py testdata/mlxhost/captures.jsonl.gz $files
