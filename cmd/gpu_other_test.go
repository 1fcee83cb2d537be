//go:build !linux

package cmd_test

// withGPU runs a command, with the GPUs that the machine has.
func withGPU(command func() int) int { return command() }
