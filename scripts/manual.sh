#!/bin/sh
# Writes the manual pages and completions of both programs, as this tree has them, into the folders man and completions of a
# folder that it makes.
#
#	scripts/manual.sh FOLDER
set -eu
[ $# -eq 1 ] || { echo "usage: scripts/manual.sh FOLDER" >&2; exit 2; }
mkdir -p "$1/man" "$1/completions"
to=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
unset GOOS GOARCH # they are run here
for program in mlxc mlxreplay; do
	go build -o "$to/$program" "./cmd/$program"
	"$to/$program" manual >"$to/man/$program.1"
	"$to/$program" completion bash >"$to/completions/$program.bash"
	"$to/$program" completion zsh >"$to/completions/_$program"
	"$to/$program" completion fish >"$to/completions/$program.fish"
	rm "$to/$program"
done
