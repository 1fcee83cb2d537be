#!/bin/sh
# Writes what a program is made of, as its own build info says it, as CycloneDX: by cyclonedx-gomod, with the time of the commit in
# place of that of the call, so that two of one program are the same bytes.
#
#	scripts/sbom.sh PROGRAM FILE.json
set -eu
[ $# -eq 2 ] || { echo "usage: scripts/sbom.sh PROGRAM FILE.json" >&2; exit 2; }
at=$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd)
cyclonedx-gomod bin -json -std -noserial -output "$2.partial" "$1"
sed "s/^    \"timestamp\": \".*\"/    \"timestamp\": \"$at\"/" "$2.partial" >"$2"
rm "$2.partial"
grep -q "\"timestamp\": \"$at\"" "$2" || { echo "no timestamp was replaced in $2" >&2; exit 1; }
