#!/bin/sh
# Makes out/ggmlhost/ggmlhost.so: llama.cpp with ggml's Metal backend, compiled unmodified for Linux on x86-64 against header
# files that declare as much of Apple's as it uses, and a driver (testdata/gen/ggmlhost). Its Metal is the stand-in of package
# fakemetal, on which TestGGML runs it. The source is fetched by digest (scripts/ggml-host.txt, 77 MB); it takes some ten minutes
# of a core the first time, and what is there is left alone.
#
#	scripts/ggml-host.sh
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
here=$PWD/testdata/gen/ggmlhost work=$PWD/out/ggmlhost
if [ "$(uname -sm)" != "Linux x86_64" ]; then
	echo "ggml's Metal backend is compiled on Linux on x86-64 only" >&2
	exit 1
fi
scripts/fetch-clang.sh
mkdir -p "$work/objects" "$work/include" "$work/kernels"
source=$work/llama_cpp_python-0.3.36/vendor/llama.cpp
if [ ! -f "$work/fetched" ]; then
	rm -rf "$work/llama_cpp_python-0.3.36" "$work/sdist"
	echo "fetching llama.cpp's source (77 MB) to $work" >&2
	scripts/pip.sh download --quiet --no-deps --no-binary llama-cpp-python --require-hashes --dest "$work/sdist" --requirement scripts/ggml-host.txt >&2 ||
		{ echo "llama.cpp's source cannot be fetched" >&2; exit 1; }
	tar -xzf "$work"/sdist/llama_cpp_python-0.3.36.tar.gz -C "$work"
	rm -r "$work/sdist"
	touch "$work/fetched"
fi
for name in ggml llama; do
	upper=$(echo $name | tr a-z A-Z)
	[ -f "$work/include/$name-version.h" ] || printf '#define %s_VERSION "0.25.3"\n#define %s_COMMIT "0c1e570"\n' "$upper" "$upper" >"$work/include/$name-version.h"
done

# The Metal sources, as ggml's build embeds them: each behind the headers that it includes.
metal=$source/ggml/src/ggml-metal
for f in "$metal"/kernels/*.metal; do
	name=$(basename "$f" .metal)
	case $name in fa_common | fa_vec_common) continue ;; esac
	headers=$metal/kernels/common.h
	for h in dequantize.h quantize.h fa_common.metal fa_vec_common.metal; do
		if grep -q "#include \"$h\"" "$f"; then headers="$headers $metal/kernels/$h"; fi
	done
	# shellcheck disable=SC2086 # words of a list
	cat $headers "$f" | sed -e '/#include "\(common\|dequantize\|quantize\)\.h"/d' -e '/#include "fa_\(vec_\)*common\.metal"/d' -e '/#pragma once/d' |
		sed -e "/__embed_ggml-common.h__/r $source/ggml/src/ggml-common.h" -e '/__embed_ggml-common.h__/d' |
		sed -e "/#include \"ggml-metal-impl.h\"/r $metal/ggml-metal-impl.h" -e '/#include "ggml-metal-impl.h"/d' >"$work/kernels/$name.metal"
	printf '.globl ggml_metallib_%s_start\nggml_metallib_%s_start:\n.incbin "%s"\n.globl ggml_metallib_%s_end\nggml_metallib_%s_end:\n.byte 0\n' \
		"$name" "$name" "$work/kernels/$name.metal" "$name" "$name"
done >"$work/kernels/kernels.new"
{ echo '.section .rodata'; cat "$work/kernels/kernels.new"; echo '.section .note.GNU-stack,"",@progbits'; } >"$work/kernels/kernels.s"

clang=$(go run ./internal/toolchain/clang/find)
clang=${clang%% clang*} # zig clang → zig c++, which has a C++ library
export clang source here work ZIG_GLOBAL_CACHE_DIR="$work/cache" ZIG_LOCAL_CACHE_DIR="$work/cache"
cat >"$work/compile.sh" <<'SH'
set -eu
f=$1
o=$work/objects/$(echo "${f#"$source"/}" | sed "s,^$here/,," | tr / _).o
case $f in
"$source"/*) [ -s "$o" ] && exit 0 ;; # pinned
*) [ "$o" -nt "$f" ] && exit 0 ;;
esac
flags="-target x86_64-linux-gnu -O2 -fPIC -fno-sanitize=all -fvisibility=hidden -D_GNU_SOURCE -DNDEBUG -DGGML_USE_CPU -DGGML_USE_METAL
	-mavx2 -mfma -mf16c -mbmi2 -I$source/ggml/include -I$source/ggml/src -I$source/ggml/src/ggml-cpu -I$source/include -I$source/src -I$work/include"
case $f in
*runtime.c) "$clang" cc -std=gnu11 -Wall -Wextra -Werror $flags -c "$f" -o "$o.new" ;;
*.m) # Its pages are those of Apple silicon, which the runtime gives.
	"$clang" cc -w $flags -O1 -fblocks -fno-objc-exceptions -fno-exceptions -fobjc-runtime=macosx-10.9 -DGGML_METAL_EMBED_LIBRARY=1 -Dsysconf=ggmlhost_sysconf -I"$here/apple" -c "$f" -o "$o.new" ;;
*.s) "$clang" cc -target x86_64-linux-gnu -c "$f" -o "$o.new" ;;
*.c) "$clang" cc -w -std=gnu11 $flags -c "$f" -o "$o.new" ;;
*driver.cpp) "$clang" c++ -std=gnu++17 -Wall -Wextra -Werror $flags -c "$f" -o "$o.new" ;;
*) "$clang" c++ -w -std=gnu++17 $flags -DGGML_METAL_EMBED_LIBRARY=1 -c "$f" -o "$o.new" ;;
esac
mv "$o.new" "$o"
SH
g=$source/ggml/src
rm -f "$work/objects/kernels.s.o"
ls "$g"/ggml.c "$g"/ggml.cpp "$g"/ggml-alloc.c "$g"/ggml-backend.cpp "$g"/ggml-backend-meta.cpp "$g"/ggml-backend-reg.cpp "$g"/ggml-backend-dl.cpp \
	"$g"/ggml-quants.c "$g"/ggml-threading.cpp "$g"/gguf.cpp "$g"/ggml-opt.cpp "$g"/ggml-cpu/*.c "$g"/ggml-cpu/*.cpp "$g"/ggml-cpu/amx/*.cpp "$g"/ggml-cpu/tiled/*.cpp "$g"/ggml-cpu/arch/x86/quants.c \
	"$g"/ggml-cpu/arch/x86/repack.cpp "$metal"/*.cpp "$metal"/*.m "$source"/src/*.cpp "$source"/src/models/*.cpp "$here/runtime.c" "$here/driver.cpp" \
	"$work/kernels/kernels.s" | xargs -n 1 -P "${JOBS:-1}" sh "$work/compile.sh"
"$clang" c++ -target x86_64-linux-gnu -shared "$work"/objects/*.o -lpthread -ldl -lm -o "$work/ggmlhost.new"
mv "$work/ggmlhost.new" "$work/ggmlhost.so"
