#!/bin/sh
# Prints the path of a Python 3 that has what examples/python needs: python3 as
# it is if it has msgpack, else a virtual environment in out/python, which is
# made if it is not there.
set -eu
cd "$(dirname "$0")/.."
has() {
	"$1" -s -c 'import msgpack' 2>/dev/null # -s: not the packages of one user
}
command -v python3 >/dev/null || { echo "python3 (3.10 or later) is needed, with msgpack or with venv and pip" >&2; exit 1; }
if has python3; then
	# The program itself: what is called python3 may be a script that looks for it.
	exec python3 -c 'import sys; print(sys.executable)'
fi
venv=out/python
if ! has "$venv/bin/python"; then
	echo "making $venv, a virtual environment with msgpack" >&2
	rm -rf "$venv"
	python3 -m venv "$venv" >&2 || { echo "python3 has no msgpack and makes no virtual environment: install python3-msgpack, or python3-venv" >&2; exit 1; }
	"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement examples/python/requirements.txt >&2
fi
echo "$PWD/$venv/bin/python"
