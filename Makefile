# make demo   record, optimize and run a real language model
# make static  the commands as static programs, without GPUs: they run where the C library is another
# make test   every test, of families of kernels and cases a sample
# make test-all  every test whole
# make race   every test under the race detector
# make ptx    compile our own kernels for NVIDIA's GPUs, into an archive of today; ptx-release: into that of a release
# make ptx-same  say that they are what the compiler makes today, if they are
# make sources  compile the Metal sources of MLX, which git fetches
# make arm64  compile kernels for arm64 and run them under an emulator
# make arm64-metal   of these, those of the Metal backend
# make darwin   compile and link every package and test for Macs
# make coverage   compile every kernel of MLX's compiled Metal libraries
# make kernelcases   run all kernels of MLX and ggml that have cases, plain and checked
# make exports    export functions for a GPU by MLX's own host code (MLX=folder, as for captures)
# make captures   record what MLX's own host code sends to Metal (MLX=folder: a clone of MLX)
# make emissions   plant wrong messages and decisions in the Metal backend, in all ways to encode
# make page    the tests of pages (mlxc optimize --html, mlxreplay profile --html) in a browser, which is fetched unless there is one
# make reproducible   build the programs of a release twice, in two folders with two caches, and compare them
# make site    the documentation as a web site, in out/site; its links are checked
# MODEL=path  another GGUF model instead of the demonstration model
# DEVICE=name  what make demo runs it on (auto: a GPU of Apple's or NVIDIA's, or the CPU, and it says why)

export CGO_ENABLED = 0
DEMO_MODEL = testdata/model/SmolLM2-135M-Instruct.Q4_1.gguf
MODEL ?= $(DEMO_MODEL)
DEVICE ?= auto
PROMPT ?= What is the capital of France, and why is it famous?

.PHONY: all demo static test test-all race sources arm64 arm64-metal darwin coverage kernelcases captures exports emissions build model check formatted compiled fetched ptx ptx-release ptx-same ptx-check page reproducible site

all: build

build:
	go build -o out/ ./cmd/...

static:
	go build -tags static -o out/static/ ./cmd/...

site:
	go run ./internal/site/make out/site

# TARGETS="linux/amd64 darwin/arm64" names other systems than this one. Part of test-all.
reproducible:
	scripts/reproducible.sh $(TARGETS)

# A model given by path is taken as it is.
model:
	@if [ "$(MODEL)" = "$(DEMO_MODEL)" ]; then scripts/fetch-model.sh "$(MODEL)"; else test -f "$(MODEL)"; fi

demo: build model
	out/mlxc record "$(MODEL)" -o out/demo.mlxg
	out/mlxc optimize out/demo.mlxg -o out/demo-optimized.mlxg
	out/mlxreplay generate out/demo-optimized.mlxg --device $(DEVICE) --chat --prompt "$(PROMPT)" -n 64

page: model
	scripts/fetch-chromium.sh
	MLXC_LONG=1 MODEL="$(abspath $(MODEL))" go test -count=1 -v -run InABrowser ./cmd/internal/page ./cmd/internal/profile

# What is compiled beforehand for NVIDIA's GPUs: two minutes. The archive in the tree changes with a release alone (make
# ptx-release TAG=v0.1.0); between two of them, kernels that have changed are compiled where they are needed, and make
# ptx-check names them. make ptx leaves an archive of today in out/prebuilt, which scripts/gpu-*.sh build programs with.
PTX = backend/internal/prebuilt/kernels.bin backend/internal/ptxwrite/math.ptx

ptx:
	scripts/fetch-clang.sh
	mkdir -p out/prebuilt
	go run ./backend/internal/prebuilt/make out/prebuilt/kernels.bin backend/internal/ptxwrite/math.ptx
	printf '{"Replace": {"%s": "%s"}}\n' "$(CURDIR)/backend/internal/prebuilt/kernels.bin" "$(CURDIR)/out/prebuilt/kernels.bin" >out/prebuilt/overlay.json

ptx-release:
	@test -n "$(TAG)" || { echo "say of which release: make ptx-release TAG=v0.1.0" >&2; exit 2; }
	scripts/fetch-clang.sh
	go run ./backend/internal/prebuilt/make $(PTX)
	echo "$(TAG) $$({ sha256sum backend/internal/prebuilt/kernels.bin 2>/dev/null || shasum -a 256 backend/internal/prebuilt/kernels.bin; } | cut -d' ' -f1)" >>backend/internal/prebuilt/released.txt

# Where the compiler or sources have changed and their texts have not: compiles all, compares, and says so to the program,
# which compiles the other kernels where it needs them.
ptx-same:
	scripts/fetch-clang.sh
	go run ./backend/internal/prebuilt/make -same backend/internal/prebuilt/same.txt $(PTX)

ptx-check:
	go run ./backend/internal/prebuilt/make -check $(PTX)

# Packages with tests that need a GPU, which are only vetted here.
GPU = ./backend/cuda ./backend/softmetal ./internal/cuda ./internal/testing/ptxrun ./cmd/internal/textgen ./internal/air/calls

# That everything has types on Macs, and that assembly for arm64 is some, are tests (internal/testing/targets);
# make darwin, and test-all, compile and link all of it.
check: formatted
	go vet ./...
	go vet -tags gpu $(GPU)

formatted:
	@test -z "$$(gofmt -l .)" || { echo "gofmt would change:"; gofmt -l .; exit 1; }

compiled:
	go build ./...

# What the tests need beside Go: a clang and the oldest clang that will do, a Python with two
# packages, two compiled Metal libraries of MLX (63 MB to fetch), the Metal source of ggml (4 MB),
# and the demonstration model, with whose stored results those of the model itself compare.
fetched:
	scripts/fetch-clang.sh
	scripts/fetch-clang.sh oldest
	scripts/fetch-metallib.sh
	scripts/fetch-ggml.sh
	scripts/fetch-model.sh $(DEMO_MODEL)
	@scripts/python.sh >/dev/null

# Of families of kernels, cases and faults each run tests the first member and a sample of the others; the
# number of the run says which, and 128 runs take nearly all (docs/tests.md, which also says what takes how long).
# The time limit of a package is five times what the longest takes on two idle cores. Tests and the compiler make
# much garbage and hold little, so that it is collected only when it is eight times what is held, or a process has 1.5 GB:
# by default all takes a third more time. Without any collection the system has more new pages to clear, which costs more than it saves. Vet,
# which takes a minute of a core, sees the tests in one run of sixteen, which has no slow test. Nobody debugs these programs: without DWARF
# compiling them takes a tenth less. Some packages wait for other processes, so three run at a time.
test: export GOFLAGS := $(GOFLAGS) -gcflags=all=-dwarf=false
test: export GOGC = 800
test: export GOMEMLIMIT = 1500MiB
test:
	@scripts/retry.sh go mod download || :
	@MLXC_SAMPLE="$$(scripts/sample.sh)" && export MLXC_SAMPLE && echo "sample $$MLXC_SAMPLE of 0 to 127: MLXC_SAMPLE=$$MLXC_SAMPLE make test repeats it" && \
	$(MAKE) --no-print-directory -j 2 formatted "$$([ $$(((MLXC_SAMPLE + 5 * (MLXC_SAMPLE / 16)) % 16)) = 0 ] && echo check || echo compiled)" fetched && \
	PYTHON="$$(scripts/python.sh)" && export PYTHON MODEL="$(CURDIR)/$(DEMO_MODEL)" && \
	go run ./internal/testing/warm && \
	go test -p 3 -vet=off -ldflags=-w -timeout 5m ./...

# Every member of every family, in shards that may be broken off and go on later (docs/tests.md).
test-all:
	@GOGC=300 $(MAKE) --no-print-directory -j 2 check fetched
	$(MAKE) --no-print-directory darwin
	$(MAKE) --no-print-directory reproducible
	scripts/test-all.sh

# Every test under the race detector, which needs cgo and a C compiler: much
# slower, so not part of test.
race:
	scripts/fetch-clang.sh
	scripts/fetch-clang.sh oldest
	scripts/fetch-metallib.sh
	scripts/fetch-ggml.sh
	scripts/fetch-model.sh $(DEMO_MODEL)
	PYTHON="$$(scripts/python.sh)" && export PYTHON && \
	MODEL="$(CURDIR)/$(DEMO_MODEL)" CGO_ENABLED=1 go test -race -timeout 300m ./...

# The tests of Metal's backend that hang on the calling convention, as programs of linux/arm64 that
# qemu runs, with the stand-in for Apple's libraries built for that: messages, orders, params, errors,
# and every test graph by three plans and live, whole layers among them. Two minutes. Not part of
# test: the emulator comes from Debian. It cannot map the memory of buffers without a copy.
arm64-metal:
	scripts/fetch-clang.sh
	EMULATE="$$(scripts/arm64.sh)" && export MLXC_EMULATE="$$EMULATE" GOARCH=arm64 && \
	go test -vet=off -timeout 20m -exec "$${EMULATE#* }" ./internal/objc && \
	go test -vet=off -timeout 20m -exec "$${EMULATE#* }" -skip 'TestNoCopy|TestRules/no-copy' ./internal/testing/fakemetal && \
	go test -vet=off -timeout 20m -exec "$${EMULATE#* }" -run '^TestConformance$$/^(order|param|params|error)/' ./backend/metal && \
	go test -vet=off -timeout 20m -exec "$${EMULATE#* }" -run '^TestGraphs$$/^(concurrent|parallel|indirect|live)$$' ./backend/metal

# Every package and every test, as programs for Macs. Vet, which is part of test, compiles all of
# it too, but links nothing.
darwin:
	GOOS=linux GOARCH=arm64 go build ./...
	GOOS=darwin GOARCH=arm64 go build ./...
	GOOS=windows GOARCH=amd64 go build -o out/windows/ ./cmd/...
	GOOS=darwin GOARCH=arm64 go test -vet=off -exec true ./...

# What the tests of software Metal and of AIR's functions run, compiled for arm64 and run by
# qemu; and the inner loops of the CPU device. Not part of test: it takes half an hour.
arm64: arm64-metal
	scripts/fetch-clang.sh
	scripts/fetch-metallib.sh
	scripts/fetch-ggml.sh
	EMULATE="$$(scripts/arm64.sh)" && set -- $$EMULATE && \
	MLXC_EMULATE="$$EMULATE" go test -timeout 60m -skip 'TestLevels|TestVector$$' ./internal/air/calls && \
	MLXC_EMULATE="$$EMULATE" go test -timeout 60m -skip 'TestVersions|TestOldest|TestDeterminism' ./backend/softmetal && \
	GOARCH=arm64 go test -timeout 60m -exec "$${EMULATE#* }" ./internal/testing/kernelcases && \
	GOARCH=arm64 go test -timeout 60m -exec "$$2" ./backend/cpu/internal/simd

# Every kernel of two libraries, 27,117 in all: half an hour on two cores. What passed
# is remembered in out/coverage.jsonl, so that it may be broken off. COVERAGE="-shard 1/4" takes
# a quarter, COVERAGE="-limit 1000" the first thousand of each library.
coverage:
	scripts/fetch-clang.sh
	scripts/fetch-metallib.sh
	go run ./internal/testing/coverage -results out/coverage.jsonl $(COVERAGE) out/metallib/mlx-0.32.4.metallib out/metallib/mlx-0.16.3.metallib

# Every case of testdata/kernelcases (docs/softmetal-coverage.md), of which test runs those of one
# kernel of each family, and of testdata/ggml (docs/metal-source.md), of which it runs two of
# three; and every kernel of ggml is compiled: six minutes on two cores.
kernelcases:
	scripts/fetch-clang.sh
	scripts/fetch-metallib.sh
	scripts/fetch-ggml.sh
	MLXC_LONG=1 go test -count=1 -v -timeout 60m -run 'KernelCases|GGML' ./internal/testing/kernelcases
	MLXC_LONG=1 go test -count=1 -v -timeout 60m -run GGML ./internal/toolchain/mslc

# Every wrong message in every way to encode that sends it, of which test plants each in one; wrong
# decisions, for which the package is built anew; order edges of all test graphs: two minutes.
emissions:
	scripts/fetch-clang.sh
	MLXC_LONG=1 go test -count=1 -v -timeout 60m -run 'TestWorkload|TestWrong|TestOrderEdges' ./backend/metal

# Compiles the Metal sources of MLX, from the commit that scripts/fetch-metal-sources.sh names. Not
# part of test: they come from a git host, which not every machine that tests can reach.
sources:
	scripts/fetch-clang.sh
	scripts/fetch-metallib.sh
	scripts/fetch-metal-sources.sh
	go test -tags sources -timeout 60m ./internal/toolchain/mslc

# What recording MLX's operations is held against (testdata/mlxhost). Not part of test: its results are stored.
captures:
	scripts/captures.sh $(MLX)

# What imports of a program's log are held against (testdata/ggmlhost): llama.cpp on ggml's own Metal backend. Not part of test.
ggml-capture:
	scripts/ggml-capture.sh

# Functions that MLX's own C++ exports for a GPU (testdata/mlxfn/host). They are stored as well.
exports:
	scripts/exports.sh $(MLX)
