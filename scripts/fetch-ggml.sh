#!/bin/sh
# Fetches the Metal source of ggml 0.13.1 (MIT licensed) to out/metal-sources/ggml-0.13.1, which tests
# compile and execute: 4 MB, the library that pywhispercpp's wheel for macOS has it in, headers and all,
# as the text that it gives Metal. Two definitions stand before it, as ggml sets them. What is there is
# left alone.
set -eu
cd "$(dirname "$0")/.."
to=out/metal-sources/ggml-0.13.1
if [ -f "$to/ggml-metal.metal" ]; then
	exit
fi
mkdir -p out/metal-sources
tmp=$(mktemp -d out/metal-sources/.fetch.XXXXXX)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP
echo "fetching the Metal source of ggml 0.13.1 (pywhispercpp, 4 MB) to $to" >&2
# The wheel is for another system, and for one version of Python, whatever runs pip.
scripts/pip.sh download --quiet --no-deps --only-binary=:all: --platform macosx_11_0_arm64 \
	--implementation cp --python-version 3.11 --require-hashes --dest "$tmp" --requirement scripts/ggml-metal.txt >&2 ||
	{ echo "the Metal source of ggml cannot be fetched: tests of its kernels need it in $to" >&2; exit 1; }
mkdir "$tmp/ggml"
python3 - "$tmp"/*.whl "$tmp/ggml/ggml-metal.metal" <<'EOF'
import hashlib, sys, zipfile
library = zipfile.ZipFile(sys.argv[1]).read("libggml-metal.0.13.1.dylib")
begin = library.index(b"#define GGML_COMMON_DECL_METAL\n")
text = b"#define GGML_METAL_EMBED_LIBRARY 1\n#define GGML_METAL_HAS_BF16 1\n" + library[begin:library.index(b"\0", begin)]
if hashlib.sha256(text).hexdigest() != "7e1f181b70528eb77607c678e2cf94116581c928eaf48b355142a78d22391b16":
    sys.exit("the fetched source has the wrong sha256")
open(sys.argv[2], "wb").write(text)
EOF
rm -rf "$to"
mv "$tmp/ggml" "$to"
rm -rf "$tmp"
