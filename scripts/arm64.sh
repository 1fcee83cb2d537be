#!/bin/sh
# Prints what MLXC_EMULATE says to the tests: how to run Linux programs of arm64. It is an
# emulator and a C library; what this machine lacks of both is fetched from Debian to
# out/arm64 (66 MB, no root), or an error.
set -eu
cd "$(dirname "$0")/.."
dir=$PWD/out/arm64
fetch() { # a package, and what it has
	[ -e "$dir/$2" ] && return
	command -v apt-get >/dev/null && command -v dpkg >/dev/null || { echo "$1 is missing, and this machine has no apt-get to fetch it with" >&2; exit 1; }
	mkdir -p "$dir"
	tmp=$(mktemp -d "$dir/.XXXXXX")
	echo "fetching $1 to out/arm64" >&2
	if (cd "$tmp" && apt-get download "$1" >&2) && dpkg -x "$tmp"/*.deb "$dir" && [ -e "$dir/$2" ]; then
		rm -rf "$tmp"
	else
		rm -rf "$tmp"
		echo "$1 could not be fetched (apt-get update may be due)" >&2
		exit 1
	fi
}
if [ "$(uname -s)" != Linux ]; then
	echo "programs of Linux run on Linux alone" >&2
	exit 1
fi
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64 || true)
if [ -z "$qemu" ]; then
	fetch qemu-user-static usr/bin/qemu-aarch64-static
	qemu=$dir/usr/bin/qemu-aarch64-static
fi
lib=/usr/aarch64-linux-gnu
if [ ! -e $lib/lib/ld-linux-aarch64.so.1 ]; then
	fetch libc6-arm64-cross usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1
	lib=$dir/usr/aarch64-linux-gnu
fi
echo "aarch64-linux-gnu $qemu -L $lib"
