#!/bin/sh
# Makes testdata/ggmlhost: what capture/shim.c logs of llama.cpp on ggml's own Metal backend (scripts/ggml-host.sh makes both), and the
# logits that llama.cpp computes. Its Metal is the stand-in of package fakemetal. The model has two layers with made-up weights; a
# prompt of four tokens and three steps are decoded. Half a minute, once the rest is there.
#
#	scripts/ggml-capture.sh
set -eu
cd "$(dirname "$0")/.."
scripts/ggml-host.sh
python3 testdata/gen/ggmlhost/model.py out/ggmlhost/model.gguf
MLXC_LONG=1 MLXC_GGML_MODEL=$PWD/out/ggmlhost/model.gguf MLXC_GGML_CAPTURE=$PWD/out/ggmlhost/decode \
	go test -count=1 -run 'TestGGMLModel$' ./internal/testing/fakemetal
mkdir -p testdata/ggmlhost
gzip -9 -n -c out/ggmlhost/decode.mlxtrace >testdata/ggmlhost/decode.mlxtrace.gz
cp out/ggmlhost/decode.out testdata/ggmlhost/decode.out
