//go:build !linux

package cmd_test

import (
	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/softmetal"
)

// devices are those that every system has.
var devices = []backend.Driver{cpu.Driver, softmetal.Driver}

// withGPU runs a command, with the GPUs that the machine has.
func withGPU(command func() int) int { return command() }
