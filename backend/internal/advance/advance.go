// Package advance has the Metal source of the kernel by which the CUDA backend computes what depends on params on
// the GPU (backend/cuda, rules.go).
package advance

import _ "embed"

// Source is the source, File its name.
//
//go:embed advance.metal
var Source string

// The name of the source, and the kernel in it.
const (
	File  = "advance.metal"
	Entry = "mlxc_advance"
)
