#!/bin/sh
# Makes the files of a release that later programs must read (docs/stability.md): builds the programs of a commit, and has these
# write one file of each form from testdata/compat/tiny.gguf, into testdata/compat/NAME. Measuring a device takes some minutes.
#
#	scripts/compat.sh v0.2.0            the tag
#	scripts/compat.sh v0.1.0 0e6d409d   a commit, where the tag is not to be had
set -eu
cd "$(dirname "$0")/.."
[ $# -ge 1 ] && [ $# -le 2 ] || { echo "usage: scripts/compat.sh NAME [COMMIT]" >&2; exit 2; }
name=$1 commit=$(git rev-parse "${2:-$1}^{commit}") to=$PWD/testdata/compat/$1 model=$PWD/testdata/compat/tiny.gguf log=$PWD/testdata/compat/log.py
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP
git clone --quiet --shared --no-checkout . "$tmp/tree"
git -C "$tmp/tree" checkout --quiet --detach "$commit"
(cd "$tmp/tree" && CGO_ENABLED=0 go build -o "$tmp/" ./cmd/mlxc ./cmd/mlxreplay)
mkdir -p "$tmp/made" "$to"
(
	cd "$tmp/made" # what is written names no path of this machine
	cp "$model" .
	"$tmp/mlxc" record tiny.gguf -o recorded.mlxg
	"$tmp/mlxc" optimize recorded.mlxg -o optimized.mlxg
	"$tmp/mlxc" disasm recorded.mlxg -o recorded.mlxt
	"$tmp/mlxreplay" generate recorded.mlxg --device cpu --prompt ABC -n 16 --ignore-eos --logits logits.npy >text.txt
	"$tmp/mlxreplay" doctor --device cpu --quick --profile cpu.profile >doctor.txt
	if [ -d "$tmp/tree/python/mlxc" ]; then # logs are younger than the first release
		PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$tmp/tree/python" python3 "$log" log.mlxtrace
	fi
	rm tiny.gguf doctor.txt
)
cp "$tmp/made"/* "$to/"
echo "$name $commit" >"$to/COMMIT"
ls -l "$to"
