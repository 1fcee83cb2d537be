#!/bin/sh
# Builds the programs of a release twice, in two folders and with two empty build caches, and compares them byte for byte. It takes
# the commit that is checked out, without what has been changed since. Digests of the programs are printed.
#
#	scripts/reproducible.sh              for this machine
#	scripts/reproducible.sh GOOS/GOARCH… for these
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- "$(go env GOOS)/$(go env GOARCH)"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP
for side in one another/longer; do
	mkdir -p "$tmp/$side"
	git clone --quiet --no-checkout --shared . "$tmp/$side/tree"
	git -C "$tmp/$side/tree" checkout --quiet --detach "$(git rev-parse HEAD)"
	for target; do
		echo "building for $target in $side" >&2
		(
			cd "$tmp/$side/tree"
			export GOOS="${target%/*}" GOARCH="${target#*/}" CGO_ENABLED=0 GOFLAGS=-buildvcs=true GOCACHE="$tmp/$side/cache"
			go build -trimpath -ldflags='-s -w -buildid=' -o "$tmp/$side/out/$target/" ./cmd/mlxc ./cmd/mlxreplay
			[ "$GOOS" != linux ] || go build -trimpath -ldflags='-s -w -buildid=' -tags static -o "$tmp/$side/out/$target/static/" ./cmd/mlxreplay
		)
	done
done
diff -r "$tmp/one/out" "$tmp/another/longer/out" || { echo "two builds of one commit differ" >&2; exit 1; }
cd "$tmp/one/out"
find . -type f | sort | while read -r f; do sha256sum "$f" 2>/dev/null || shasum -a 256 "$f"; done
