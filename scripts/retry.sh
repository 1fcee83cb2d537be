#!/bin/sh
# Runs a command that fetches something, three times at most: a network may fail for a moment.
set -u
[ $# -gt 0 ] || { echo "usage: scripts/retry.sh COMMAND…" >&2; exit 2; }
trap 'exit 130' INT
trap 'exit 143' TERM
for pause in ${RETRY_PAUSES-3 15}; do
	"$@" && exit
	echo "$1 has failed: once more in $pause seconds" >&2
	sleep "$pause"
done
exec "$@"
