//go:build (amd64 || arm64) && !static

package main

// A program that may drive NVIDIA's GPUs needs the system's dynamic linker at its start, whether there is
// a GPU or not. One that needs nothing, and has no GPU, is built with the tag static.
import _ "github.com/mlxc/mlxc/cmd/internal/gpu/cudagpu"
