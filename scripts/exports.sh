#!/bin/sh
# Makes testdata/mlxfn/host: functions that MLX's own C++ has exported for a GPU, which needs none, since tracing computes
# nothing. MLX is compiled for Linux by scripts/captures.sh, whose objects are linked here.
set -eu
cd "$(dirname "$0")/.."
here=$PWD/testdata/gen/mlxhost
root=$PWD
work=$PWD/out/mlxhost
[ -e "$work/objects/mlx_export.cpp.o" ] || scripts/captures.sh "$@"
clang=$(go run ./internal/toolchain/clang/find)
clang=${clang%% clang*}
export ZIG_GLOBAL_CACHE_DIR="$work/cache" ZIG_LOCAL_CACHE_DIR="$work/cache"
mkdir -p "$work/exports" testdata/mlxfn/host
cd "$work/mlx"
for f in runtime sources exports; do
	"$clang" c++ -target x86_64-linux-gnu -std=c++20 -fblocks -O1 -w -I. -I"$here" -I"$here/shim" -isystem "$root/out/metal-cpp" \
		-isystem "$work/debian/usr/include" -isystem "$work/debian/usr/include/nlohmann" -DFMT_HEADER_ONLY -D_METAL_ -DMLX_METAL_NO_NAX \
		-DMLX_VERSION='"0.32.2"' -DMETAL_PATH='"mlx.metallib"' -c "$here/$f.cpp" -o "$work/exports/$f.o"
done
"$clang" c++ -target x86_64-linux-gnu "$work"/exports/*.o "$work"/objects/mlx_*.o -lpthread -ldl -o "$work/exports/exports"
MLXHOST_ARCHITECTURE=applegpu_g13g "$work/exports/exports" "$root/testdata/mlxfn/host"
