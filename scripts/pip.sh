#!/bin/sh
# Runs pip, and again if it fails (scripts/retry.sh): python3's own, or one in a virtual environment
# under out/ where python3 comes without pip and can make such an environment.
set -eu
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "python3 (3.10 or later) is needed, with pip or with venv" >&2; exit 1; }
python=python3
if ! python3 -m pip --version >/dev/null 2>&1; then
	python=out/pip/bin/python
	if ! "$python" -m pip --version >/dev/null 2>&1; then
		rm -rf out/pip
		python3 -m venv out/pip >&2 || { rm -rf out/pip; echo "python3 has neither pip nor venv: install python3-pip, or python3-venv" >&2; exit 1; }
	fi
fi
export PIP_ROOT_USER_ACTION=ignore
export PIP_DEFAULT_TIMEOUT="${PIP_DEFAULT_TIMEOUT:-60}" # seconds without a byte
exec scripts/retry.sh "$python" -m pip --disable-pip-version-check "$@"
