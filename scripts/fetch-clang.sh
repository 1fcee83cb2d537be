#!/bin/sh
# Makes sure that there is a clang, version 19 or later: does nothing if
# internal/toolchain/clang finds one, else fetches the Python package ziglang (100 MB, no
# root) to out/ziglang, whose `zig clang` is clang 22.
set -eu
cd "$(dirname "$0")/.."
if [ -n "${MLXC_CLANG:-}" ] || go run ./internal/toolchain/clang/find >/dev/null 2>&1; then
	exit 0
fi
mkdir -p out
tmp=$(mktemp -d out/.ziglang.XXXXXX)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP
echo "fetching clang (ziglang 0.17.1, 100 MB) to out/ziglang" >&2
scripts/pip.sh install --quiet --no-deps --no-compile --only-binary=:all: --require-hashes --target "$tmp" --requirement scripts/ziglang.txt >&2
rm -rf out/ziglang
mv "$tmp/ziglang" out/ziglang
go run ./internal/toolchain/clang/find >&2
