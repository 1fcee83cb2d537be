#!/bin/sh
# Prints the number of this run of the tests, 0 to 127, by which samples are taken (internal/testing/sample):
# MLXC_SAMPLE if that is set, else the one behind that of the last run in this folder, and the first of all by
# the clock, so that runs in new folders differ too.
set -eu
cd "$(dirname "$0")/.."
if [ -n "${MLXC_SAMPLE:-}" ]; then
	echo "$MLXC_SAMPLE"
	exit 0
fi
last=$(cat out/sample 2>/dev/null || date +%s)
mkdir -p out
echo $(((last + 1) % 128)) | tee out/sample
