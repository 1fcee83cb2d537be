#!/bin/sh
# Makes sure that there is a clang, version 19 or later: does nothing if
# internal/toolchain/clang finds one, else fetches the Python package ziglang (100 MB, no
# root) to out/ziglang, whose `zig clang` is clang 22. With the argument oldest it is clang
# 19, the oldest that will do, which tests hold against the other, in out/ziglang-19.
set -eu
cd "$(dirname "$0")/.."
case "${1:-}" in
"") flag='' named="${MLXC_CLANG:-}" to=out/ziglang package=scripts/ziglang.txt ;;
oldest) flag=-oldest named="${MLXC_CLANG_OLDEST:-}" to=out/ziglang-19 package=scripts/ziglang-19.txt ;;
*)
	echo "usage: scripts/fetch-clang.sh [oldest]" >&2
	exit 2
	;;
esac
if [ -n "$named" ] || go run ./internal/toolchain/clang/find $flag >/dev/null 2>&1; then
	exit 0
fi
mkdir -p out
tmp=$(mktemp -d out/.ziglang.XXXXXX)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP
echo "fetching clang ($(grep -o '^ziglang[^ ]*' $package), 100 MB) to $to" >&2
scripts/pip.sh install --quiet --no-deps --no-compile --only-binary=:all: --require-hashes --target "$tmp" --requirement $package >&2
rm -rf "$to"
mv "$tmp/ziglang" "$to"
go run ./internal/toolchain/clang/find $flag >&2
