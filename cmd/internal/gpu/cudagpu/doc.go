// Package cudagpu brings NVIDIA's GPUs to a program that imports it (gpu.CUDA).
package cudagpu
