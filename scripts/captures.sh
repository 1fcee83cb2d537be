#!/bin/sh
# Makes testdata/mlxhost/captures.jsonl.gz: what MLX's own host code sends to Metal for a table of operations and
# shapes, on six chips of five generations. MLX's C++ is compiled unmodified for Linux, with an Objective-C runtime
# that records messages in place of Apple's (testdata/gen/mlxhost). Ten minutes of a core the first time.
#
#	scripts/captures.sh          the source of MLX from where git fetches it (a mirror: git config url.MIRROR.insteadOf)
#	scripts/captures.sh FOLDER   from a clone of MLX that has the commit
#
# Needs what scripts/fetch-clang.sh and scripts/fetch-metallib.sh fetch, git, and Debian's libfmt-dev and
# nlohmann-json3-dev, which apt-get downloads (no root).
set -eu
cd "$(dirname "$0")/.."
commit=846d176227a0ac13d2667e58d2bb68b322109ab0 # 0.32.2 in development, 2026-08-22
from=${1:-https://github.com/ml-explore/mlx.git}
here=$PWD/testdata/gen/mlxhost
work=$PWD/out/mlxhost
scripts/fetch-clang.sh
scripts/fetch-metallib.sh
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
compile() { # a source, an object
	[ "$2" -nt "$1" ] && return
	"$clang" c++ -target x86_64-linux-gnu -std=c++20 -fblocks -O1 -w -I. -I"$here" -I"$here/shim" -isystem "$OLDPWD/out/metal-cpp" \
		-isystem "$work/debian/usr/include" -isystem "$work/debian/usr/include/nlohmann" -DFMT_HEADER_ONLY -D_METAL_ -DMLX_METAL_NO_NAX \
		-DMLX_VERSION='"0.32.2"' -DMETAL_PATH='"mlx.metallib"' -c "$1" -o "$2"
}
cd "$work/mlx"
for f in runtime cases sources; do
	[ "$work/objects/$f.o" -nt "$here/runtime.h" ] || rm -f "$work/objects/$f.o"
	compile "$here/$f.cpp" "$work/objects/$f.o"
done
while read -r f; do
	compile "$f" "$work/objects/$(echo "$f" | tr / _).o"
done <"$here/sources.txt"
"$clang" c++ -target x86_64-linux-gnu "$work"/objects/*.o -lpthread -ldl -o "$work/cases"
cd "$OLDPWD"
files=''
# No phone's (p): its command buffers end so often that MLX's cache hands out buffers too long to be written in place.
for chip in g12g g13g g14d g15s g17d g17s; do
	# Addresses decide which buffers MLX's cache gives out again.
	MLXHOST_ARCHITECTURE=applegpu_$chip setarch -R "$work/cases" >"$work/$chip.jsonl"
	files="$files $chip=$work/$chip.jsonl"
done
# shellcheck disable=SC2086 # words of a list
python3 testdata/gen/mlxhost/pack.py testdata/mlxhost/captures.jsonl.gz $files
