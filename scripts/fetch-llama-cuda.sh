#!/bin/sh
# Makes out/llama-cuda/llama-peer: llama.cpp with its CUDA backend for a Hopper GPU (sm_90) and a driver of
# CUDA 13.0 or later, as a program that times one model (testdata/gen/llama_peer.cpp), to run beside ours in
# scripts/gpu-bench.sh. No GPU is needed here. It fetches 0.6 GB by digest (scripts/llama-cuda.txt) and
# compiles llama.cpp with NVIDIA's compiler and the flags of llama.cpp's own build, which takes cmake, ninja,
# a C++ compiler and some 12 minutes of processor time. JOBS says how many files are compiled at once (1).
# What is there is left alone; a build that was broken off goes on, in out/llama-cuda-build (2 GB, removed
# at the end).
#
# Compiled is what models of Llama's form use with weights of q4_0, q4_1, q8_0, q4_k and q6_k, a float16 cache, flash
# attention, heads of 64 to 256 values, of which three or four share a key, and prompts of two tokens or more (of nine where
# three share a key). Every other function of the backend is left out: out/llama-cuda/BUILD lists them, and a call of one
# ends the program with its name. So what runs is what llama.cpp itself would have run.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
root=$PWD to=out/llama-cuda build=$PWD/out/llama-cuda-build
if [ -x "$to/llama-peer" ]; then
	exit
fi
if [ "$(uname -sm)" != "Linux x86_64" ]; then
	echo "llama.cpp's CUDA backend is built on Linux on x86-64 only" >&2
	exit 1
fi
for tool in cmake ninja c++ python3; do
	command -v $tool >/dev/null || { echo "$tool is needed to build llama.cpp (Debian's packages: cmake, ninja-build, g++, python3)" >&2; exit 1; }
done
cuda=$build/nvidia/cu13 source=$build/llama_cpp_python-0.3.36/vendor/llama.cpp
if [ ! -f "$build/fetched" ]; then
	rm -rf "$build"
	mkdir -p "$build/wheels"
	echo "fetching llama.cpp's source and NVIDIA's compiler (600 MB) to $build" >&2
	scripts/pip.sh download --quiet --no-deps --no-binary llama-cpp-python --require-hashes --dest "$build/wheels" --requirement scripts/llama-cuda.txt >&2 ||
		{ echo "llama.cpp or NVIDIA's compiler cannot be fetched" >&2; exit 1; }
	for wheel in "$build"/wheels/*.whl; do
		python3 -m zipfile -e "$wheel" "$build"
	done
	tar -xzf "$build"/wheels/llama_cpp_python-0.3.36.tar.gz -C "$build"
	rm -r "$build/wheels"
	chmod +x "$cuda"/bin/* "$cuda"/nvvm/bin/*
	ln -s lib "$cuda/lib64"
	for library in cudart cublas cublasLt; do
		ln -s "lib$library.so.13" "$cuda/lib/lib$library.so"
	done
	: >"$build/fetched"
fi

# cmake asks for the driver's library; the functions of it that are called are added before the link.
mkdir -p "$cuda/lib/stubs"
driver() {
	for f in "$@"; do
		echo "int $f(void) { return 100; }" # no device
	done | cc -x c -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$cuda/lib/stubs/libcuda.so" -
}
driver cuInit
cd "$build"
if [ ! -f make/build.ninja ]; then
	cmake -G Ninja -S "$source" -B make -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=OFF -DGGML_OPENMP=OFF \
		-DGGML_CUDA=ON -DGGML_CUDA_NCCL=OFF -DCMAKE_CUDA_ARCHITECTURES=90-real -DGGML_CUDA_FA_QUANTS=f16-f16 \
		-DCMAKE_CUDA_COMPILER="$cuda/bin/nvcc" -DCUDAToolkit_ROOT="$cuda" \
		-DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_APP=OFF >cmake.log 2>&1 ||
		{ tail -20 cmake.log >&2; exit 1; }
fi
cd make
of=ggml/src/ggml-cuda/CMakeFiles/ggml-cuda.dir
ninja -t targets all | sed -n 's/\.o: .*/.o/p' >objects
host=$(grep -E '^(src/CMakeFiles/llama\.dir|ggml/src/CMakeFiles)/' objects)
kernels=
# What a graph of such a model runs, and what is asked when one is planned: allreduce, fwht, lightning-indexer,
# mmf, mmvf and topk-moe.
for name in ggml-cuda allreduce binbcast convert cpy fattn fattn-tile fwht getrows lightning-indexer mmf mmid mmq mmvf mmvq norm \
	quantize rope scale set-rows topk-moe unary template-instances/fattn-vec-instance-f16-f16 \
	template-instances/fattn-mma-f16-instance-ncols1_16-ncols2_4 template-instances/fattn-mma-f16-instance-ncols1_8-ncols2_4 \
	template-instances/fattn-mma-f16-instance-ncols1_4-ncols2_4 template-instances/fattn-mma-f16-instance-ncols1_2-ncols2_4 template-instances/mmq-instance-q4_0 \
	template-instances/mmq-instance-q4_1 template-instances/mmq-instance-q8_0 template-instances/mmq-instance-q4_k \
	template-instances/mmq-instance-q6_k; do
	kernels="$kernels $of/$name.cu.o"
done
echo "compiling llama.cpp: $(echo $host $kernels | wc -w) files, ${JOBS:-1} at a time" >&2
# shellcheck disable=SC2086 # names of files are words
nice -n 19 ninja -j "${JOBS:-1}" $host $kernels >ninja.log 2>&1 || { tail -20 ninja.log >&2; exit 1; }

# What is left out, and only that, gets a function in its place that says so.
# shellcheck disable=SC2086
nm --undefined-only $kernels | sed -n 's/^ *U //p' | sort -u >undefined
# shellcheck disable=SC2086
nm --defined-only $kernels $host | awk 'NF == 3 { print $3 }' | sort -u >defined
comm -23 undefined defined | grep -E '^_Z(L|N|[0-9])*(ggml_cuda_|mul_mat_)' >left-out || true
{
	echo '#include <stdio.h>'
	echo '#include <stdlib.h>'
	echo 'static void left_out(const char *name) { fputs(name, stderr); fputs(" is left out of this build of llama.cpp", stderr); fputc(10, stderr); abort(); }'
	n=0
	while read -r name; do
		n=$((n + 1))
		echo "void f$n(void) __asm__(\"$name\"); void f$n(void) { left_out(\"$(c++filt "$name")\"); }"
	done <left-out
} >left-out.c
cc -O1 -c left-out.c -o left-out.o
driver $(comm -23 undefined defined | grep -E '^cu[A-Z]' || true)
c++ -O2 -std=c++17 -I"$source/include" -I"$source/ggml/include" -c "$root/testdata/gen/llama_peer.cpp" -o llama-peer.o
# shellcheck disable=SC2086
c++ -o llama-peer llama-peer.o $host $kernels left-out.o -L"$cuda/lib" -L"$cuda/lib/stubs" -Wl,-rpath-link,"$cuda/lib" \
	-l:libcudart_static.a -lcublas -lcuda -static-libgcc -static-libstdc++ -lpthread -ldl -lrt
strip llama-peer
cd "$root"
rm -rf "$to"
mkdir "$to"
{
	echo "llama.cpp commit 0c1e570, ggml 0.25.3, CUDA 13.0, sm_90. Left out:"
	c++filt <"$build/make/left-out"
} >"$to/BUILD"
mv "$build/make/llama-peer" "$to/"
rm -rf "$build"
