// Command mlxreplay: see the package cmd/internal/mlxreplay.
package main

import (
	"os"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/cmd/internal/mlxreplay"
)

// devices are the kinds of devices of the command, in the order in which it lists them and --device auto tries GPUs.
// A program that drives GPUs needs the system's dynamic linker at its start, so what does is linked only where there
// are such GPUs: the variables metal and cuda lie in files for these systems.
var devices = []backend.Driver{cpu.Driver, metal, cuda, softmetal.Driver}

func main() { os.Exit(mlxreplay.Main(os.Args[1:], devices...)) }
