//go:build !darwin

package main

import (
	"errors"

	"github.com/mlxc/mlxc/backend"
)

var metal = backend.Driver{
	Name: "metal", What: "a GPU of Apple's", GPU: true,
	Missing: errors.New("metal: Metal is on Macs alone"),
	Instead: "use --device cpu, or --device softmetal for the Metal kernels themselves",
}
