#!/bin/sh
# Fetches Metal sources that tests compile: the kernels of MLX (MIT licensed), from one commit, whose
# digest git checks, to out/metal-sources/mlx. What is there is left alone.
# Needs git. A mirror can stand in for github.com (git config url.MIRROR.insteadOf).
set -eu
cd "$(dirname "$0")/.."
fetch() {
	name=$1 commit=$2 repository=$3
	shift 3
	to=out/metal-sources/$name
	if [ "$(cat "$to/commit" 2>/dev/null)" = "$commit" ]; then
		return
	fi
	mkdir -p out/metal-sources
	tmp=$(mktemp -d out/metal-sources/.fetch.XXXXXX)
	trap 'rm -rf "$tmp"' EXIT
	trap 'exit 1' INT TERM HUP
	echo "fetching the Metal sources of $name from $repository to $to" >&2
	git init --quiet "$tmp/git"
	git -C "$tmp/git" fetch --quiet --depth 1 "$repository" "$commit"
	mkdir "$tmp/files"
	git -C "$tmp/git" archive "$commit" "$@" | tar -x -C "$tmp/files"
	echo "$commit" >"$tmp/files/commit"
	rm -rf "$to"
	mv "$tmp/files" "$to"
	rm -rf "$tmp"
}
fetch mlx 846d176227a0ac13d2667e58d2bb68b322109ab0 https://github.com/ml-explore/mlx.git mlx/backend/metal/kernels LICENSE
