#!/bin/sh
# Fetches compiled Metal libraries of MLX, which no toolchain but Apple's can make, to
# out/metallib/mlx-VERSION.metallib: with the arguments 0.32.4 (45 MB to fetch) and 0.16.3
# (18 MB) these versions, without arguments both. What is there is left alone. With 0.32.4 come the
# headers that Apple publishes for C++ (metal-cpp, Apache License 2.0), to out/metal-cpp, and those
# of MLX's kernels, to out/metallib/mlx-0.32.4-include.
set -eu
cd "$(dirname "$0")/.."
fetch() {
	version=$1 package=$2 size=$3 sum=$4
	to=out/metallib/mlx-$version.metallib
	headers=mlx/include/metal_cpp
	kernels=mlx/backend/metal/kernels
	if [ -f "$to" ] && { [ "$version" != 0.32.4 ] || [ -d out/metal-cpp ] && [ -d "out/metallib/mlx-$version-include" ]; }; then
		return
	fi
	mkdir -p out/metallib
	tmp=$(mktemp -d out/metallib/.fetch.XXXXXX)
	trap 'rm -rf "$tmp"' EXIT
	trap 'exit 1' INT TERM HUP
	echo "fetching the Metal library of MLX $version ($package, $size MB) to $to" >&2
	grep -A 1 "^$package==$version " scripts/mlx-metallib.txt >"$tmp/wheel.txt"
	# The wheel is for another system, and for one version of Python, whatever runs pip.
	scripts/pip.sh download --quiet --no-deps --only-binary=:all: --platform macosx_14_0_arm64 \
		--implementation cp --python-version 3.11 --require-hashes --dest "$tmp" --requirement "$tmp/wheel.txt" >&2 ||
		{ echo "the Metal library of MLX $version cannot be fetched: tests of compiled kernels need it in $to" >&2; exit 1; }
	python3 -m zipfile -e "$tmp"/*.whl "$tmp/wheel"
	{ sha256sum "$tmp/wheel/mlx/lib/mlx.metallib" 2>/dev/null || shasum -a 256 "$tmp/wheel/mlx/lib/mlx.metallib"; } | grep -q "^$sum" ||
		{ echo "the fetched library has the wrong sha256" >&2; exit 1; }
	mv "$tmp/wheel/mlx/lib/mlx.metallib" "$to"
	if [ "$version" = 0.32.4 ] && [ ! -d out/metal-cpp ]; then
		mv "$tmp/wheel/$headers" out/metal-cpp
	fi
	if [ "$version" = 0.32.4 ] && [ ! -d "out/metallib/mlx-$version-include" ]; then
		mkdir -p "$tmp/include/$(dirname "$kernels")"
		mv "$tmp/wheel/mlx/include/$kernels" "$tmp/include/$kernels"
		mv "$tmp/include" "out/metallib/mlx-$version-include"
	fi
	rm -rf "$tmp"
}
[ $# -gt 0 ] || set -- 0.32.4 0.16.3
for version; do
	case $version in
	0.32.4) fetch 0.32.4 mlx-metal 45 d70ab213d4cfa9f2673e4db2c2a4474c86ad9cc7674564bec4dd4ac9409da675 ;;
	0.16.3) fetch 0.16.3 mlx 18 3edc9ca889579acf085c9980cbbd1772fe117021143095590c9bcfeb92e17c01 ;;
	*) echo "usage: fetch-metallib.sh [0.32.4] [0.16.3]" >&2; exit 2 ;;
	esac
done
