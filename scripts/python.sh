#!/bin/sh
# Prints the path of a Python 3 that has what tests need of it
# (scripts/requirements.txt): python3 as it is if it has it, else a virtual
# environment in out/python, which is made if it is not there.
set -eu
cd "$(dirname "$0")/.."
has() {
	"$1" -s -c 'import msgpack, unicorn' 2>/dev/null # -s: not the packages of one user
}
command -v python3 >/dev/null || { echo "python3 (3.10 or later) is needed, with pip or with venv" >&2; exit 1; }
if has python3; then
	# The program itself: what is called python3 may be a script that looks for it.
	exec python3 -c 'import sys; print(sys.executable)'
fi
venv=out/python
if ! has "$venv/bin/python"; then
	echo "making $venv, a virtual environment with msgpack and unicorn" >&2
	rm -rf "$venv"
	# Without pip, which some systems leave out of venv; pip is told where to install.
	python3 -m venv --without-pip "$venv" >&2 || { echo "python3 makes no virtual environment: install python3-venv" >&2; exit 1; }
	scripts/pip.sh install --quiet --target "$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" --requirement scripts/requirements.txt >&2
fi
echo "$PWD/$venv/bin/python"
