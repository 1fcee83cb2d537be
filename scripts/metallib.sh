#!/bin/sh
# Compiles the Metal kernels of this module to one library, with Xcode's tools, on a Mac: what
# backend/metal takes as Options.Precompiled. The options are those with which it compiles the same
# sources itself. A function of the library tells which sources it was made of.
set -eu
[ $# -eq 1 ] || { echo "usage: scripts/metallib.sh FILE.metallib" >&2; exit 2; }
case $1 in
/*) out=$1 ;;
*) out=$PWD/$1 ;;
esac
cd "$(dirname "$0")/.."
LC_ALL=C
export LC_ALL
sources="$(ls msl/*.h msl/*.metal) backend/internal/plan/moves.metal"
digest=$(cat $sources | { sha256sum 2>/dev/null || shasum -a 256; } | cut -c1-16)
tmp=$(mktemp -d "${TMPDIR:-/tmp}/metallib.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP
printf '#include <metal_stdlib>\nkernel void mlxc_sources_%s() {}\n' "$digest" >"$tmp/stamp.metal"
for source in $sources "$tmp/stamp.metal"; do
	case $source in *.h) continue ;; esac
	xcrun -sdk macosx metal -std=metal3.1 -mmacosx-version-min=14.0 -fno-fast-math -O2 -c -o "$tmp/$(basename "$source" .metal).air" "$source"
done
xcrun -sdk macosx metal -mmacosx-version-min=14.0 -o "$tmp/out.metallib" "$tmp"/*.air
mv "$tmp/out.metallib" "$out"
